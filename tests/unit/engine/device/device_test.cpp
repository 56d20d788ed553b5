// What every device must do, whenever it does its work. A new one is a row at the end.
#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <vector>

#include "tests/support/late_device.h"

namespace espalier::engine {
namespace {

struct DeviceCase {
  const char* name;
  std::function<std::unique_ptr<Device>()> make;
};

class DeviceConformance : public ::testing::TestWithParam<DeviceCase> {
 protected:
  /// Looks until the work before the mark is done.
  void await(std::uint64_t mark) {
    for (int looks = 0; !device->is_done(mark); ++looks) ASSERT_LT(looks, 10'000) << "it never ends";
  }
  static std::byte* bytes(std::vector<float>& values) { return reinterpret_cast<std::byte*>(values.data()); }

  std::unique_ptr<Device> device = GetParam().make();
};

TEST_P(DeviceConformance, DoesItsWorkInOrder) {
  std::vector<float> a(1000, 1);
  std::vector<float> b(1000, 2);
  std::vector<float> sum(1000, 0);
  std::vector<float> copy(1000, 0);
  const std::array<void*, 1> targets = {sum.data()};
  const std::array<const void*, 2> sources = {b.data(), b.data()};
  device->reduce(ElementType::float32, ReduceOperation::sum, targets, a.data(), sources, 1000);  // 1 + 2 + 2
  device->copy(bytes(copy), bytes(sum), 1000 * sizeof(float));
  device->divide(ElementType::float32, copy.data(), 500, 5);  // The first half becomes 1.
  await(device->mark());
  EXPECT_EQ(sum, std::vector<float>(1000, 5));
  EXPECT_EQ(copy[0], 1);
  EXPECT_EQ(copy[499], 1);
  EXPECT_EQ(copy[500], 5);
}

TEST_P(DeviceConformance, WritesAResultToManyTargets) {
  std::vector<std::int32_t> own(77, 3);
  std::vector<std::int32_t> other(77, 4);
  std::vector<std::int32_t> kept(77);
  std::vector<std::int32_t> forwarded(77);
  {
    std::array<void*, 2> targets = {kept.data(), forwarded.data()};
    std::array<const void*, 1> sources = {other.data()};
    device->reduce(ElementType::int32, ReduceOperation::max, targets, own.data(), sources, 77);
    targets = {};  // The lists are the caller's again.
    sources = {};
  }
  await(device->mark());
  EXPECT_EQ(kept, other);
  EXPECT_EQ(forwarded, other);
}

TEST_P(DeviceConformance, PassesMarksInTheirOrder) {
  std::vector<float> from(8, 1);
  std::vector<float> first(8, 0);
  std::vector<float> second(8, 0);
  device->copy(bytes(first), bytes(from), 8 * sizeof(float));
  const std::uint64_t mark = device->mark();
  device->copy(bytes(second), bytes(from), 8 * sizeof(float));
  const std::uint64_t last = device->mark();
  await(last);
  EXPECT_TRUE(device->is_done(mark));
  EXPECT_EQ(first, from);
  EXPECT_EQ(second, from);
}

/// Of two copies that follow each other the second never happens alone, and none after the device was drained.
TEST_P(DeviceConformance, TouchesNothingOnceItIsDrained) {
  std::vector<float> from(8, 1);
  std::vector<float> to(8, 0);
  device->copy(bytes(to), bytes(from), 8 * sizeof(float));
  const std::uint64_t mark = device->mark();
  device->drain();
  std::ranges::fill(to, 9.0F);
  for (int looks = 0; looks < 20; ++looks) EXPECT_TRUE(device->is_done(mark));
  EXPECT_EQ(to, std::vector<float>(8, 9));
  device->copy(bytes(to), bytes(from), 8 * sizeof(float));  // It is of use again.
  await(device->mark());
  EXPECT_EQ(to, from);
}

TEST_P(DeviceConformance, GivesZeroedPages) {
  constexpr std::int64_t size = 3 * 4096;
  const auto memory = device->allocate(size, MemorySpace::host);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(*memory) % 4096, 0U);
  EXPECT_TRUE(std::all_of(*memory, *memory + size, [](std::byte byte) { return byte == std::byte{0}; }));
  device->release(*memory, size);
  EXPECT_FALSE(device->allocate(std::int64_t{1} << 50, MemorySpace::host));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceConformance,
                         ::testing::Values(DeviceCase{"host", [] { return std::make_unique<HostDevice>(); }},
                                           DeviceCase{"late", [] { return std::make_unique<test::LateDevice>(); }}),
                         [](const auto& device) { return std::string(device.param.name); });

}  // namespace
}  // namespace espalier::engine
