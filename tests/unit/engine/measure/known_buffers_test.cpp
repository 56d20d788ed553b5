// Known data that a GPU writes and compares itself: as the host does, for every type, with nothing but a count brought
// back.
#include "engine/measure/known_buffers.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/random.h"
#include "tests/support/fake_gpus.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::chrono::seconds longest{10};

/// A queue that counts what it copies, on the host's memory: the fake GPU's memory is the processor's.
class CopyCounter final : public DeviceQueue {
 public:
  CopyCounter(DeviceQueue& queue, bool has_code) : DeviceQueue(queue.device()), queue_(queue), has_code_(has_code) {}
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    copied += bytes;
    queue_.copy(to, from, bytes);
  }
  void reduce(ElementType, ReduceOperation, std::span<void* const>, const void*, std::span<const void* const>,
              std::size_t) override {}
  void divide(ElementType, void*, std::size_t, std::uint32_t) override {}
  bool run_pattern(const PatternCall& call) override { return has_code_ && queue_.run_pattern(call); }
  std::uint64_t hold() override { return 0; }
  void release(std::uint64_t) override {}
  void drain(std::chrono::milliseconds most) override { queue_.drain(most); }

  std::size_t copied = 0;

 private:
  std::uint64_t look() override { return 0; }
  DeviceQueue& queue_;
  bool has_code_;
};

class KnownBuffers : public testing::Test {
 protected:
  void SetUp() override {
    if (std::getenv("ESPALIER_TEST_DRIVER") != nullptr) GTEST_SKIP() << "looks into the fake GPU's memory";
    gpu_ = std::move(*fake_.open(0));
    queue_ = std::move(*gpu_->make_queue());
  }
  std::byte* allocate(std::size_t bytes) {
    return *gpu_->allocate(static_cast<std::int64_t>(bytes), MemorySpace::device);
  }

  test::FakeGpus fake_;
  std::unique_ptr<CudaDevice> gpu_;
  std::unique_ptr<DeviceQueue> queue_;
};

std::vector<DataCase> cases() {
  std::vector<DataCase> made;
  for (const ElementType type : all_element_types) {
    for (const CollectiveKind kind : all_collective_kinds)
      made.push_back({kind, type, ReduceOperation::sum, 3, 1, 6000, 5});
    for (const ReduceOperation operation : {ReduceOperation::prod, ReduceOperation::avg}) {
      made.push_back({CollectiveKind::reduce_scatter, type, operation, 3, 0, 6001});
    }
  }
  return made;
}

TEST_F(KnownBuffers, AreWrittenAsTheHostWritesThem) {
  for (const bool has_code : {true, false}) {
    for (const DataCase& data : cases()) {
      CopyCounter queue(*queue_, has_code);
      const std::size_t bytes = data.send_count(1) * static_cast<std::size_t>(size_of(data.type));
      std::byte* const sent = allocate(std::max<std::size_t>(bytes, 1));
      ASSERT_TRUE(fill_on_device(queue, data, 1, sent, longest));
      std::vector<std::byte> right(bytes);
      fill_send_buffer(data, 1, right.data());
      EXPECT_EQ(std::memcmp(sent, right.data(), bytes), 0) << to_string(data.kind) << " " << to_string(data.type);
      gpu_->release(sent, static_cast<std::int64_t>(bytes));
    }
  }
}

/// What a rank has to receive is written by its expected ranges; of averages of floats the type's nearest number. Then
/// one element is spoilt. A right buffer stays on the device: only the table goes there, and a count comes back.
TEST_F(KnownBuffers, AreComparedOnTheDeviceAndOneWrongElementIsFound) {
  Random random(3);
  for (const DataCase& data : cases()) {
    const auto element = static_cast<std::size_t>(size_of(data.type));
    const std::size_t count = data.receive_count(1);
    const KnownData known = expected_data(data, 1);
    std::byte* const received = allocate(count * element);
    for (const PatternRange& range : known.ranges) {
      for (std::uint64_t i = 0; i < range.length; ++i) {
        const std::uint64_t place = pattern_element(range.first + i, known.salt, range.shift);
        std::memcpy(received + (range.begin + i) * element, known.table.data() + place * element, element);
      }
    }
    ASSERT_EQ(check_receive_buffer(data, 1, received).wrong, 0U);
    CopyCounter queue(*queue_, true);
    auto checked = check_on_device(queue, data, 1, received, longest);
    ASSERT_TRUE(checked) << checked.error().message;
    EXPECT_EQ(checked->wrong, 0U) << to_string(data.kind) << " " << to_string(data.type);
    EXPECT_EQ(queue.copied, known.table.size() + sizeof(std::uint64_t));

    const std::size_t at = random.below(count);
    received[at * element + element - 1] ^= std::byte{0x20};
    checked = check_on_device(queue, data, 1, received, longest);
    ASSERT_TRUE(checked);
    EXPECT_EQ(checked->wrong, 1U) << to_string(data.kind) << " " << to_string(data.type);
    EXPECT_EQ(checked->first.index, at);
    gpu_->release(received, static_cast<std::int64_t>(count * element));
  }
}

}  // namespace
}  // namespace espalier::engine::cuda
