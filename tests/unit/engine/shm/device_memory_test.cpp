// Device memory between ranks of a machine: copied once where their devices open it, else staged.
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/late_device.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

constexpr std::size_t element_count = 60'000;

/// Bytes that the devices of two ranks copy in a collective, fills and checks included.
std::size_t copied_bytes(CollectiveKind kind, bool shares) {
  std::atomic<std::size_t> copied = 0;
  JobOptions options;
  options.transport = TransportChoice::shm;
  options.make_device = [&] {
    return std::make_unique<test::LateDevice>(test::LateDeviceOptions{.copied = &copied, .shares = shares});
  };
  test::PlannedSource source("ring", Bytes{4096});
  run_ranks(2, source.source(), std::move(options), [&](Communicator& world) {
    test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 2, 0, element_count, 2});
  });
  return copied;
}

TEST(DeviceMemory, IsCopiedOnceWhereDevicesOpenIt) {
  constexpr std::size_t bytes = element_count * sizeof(std::int32_t);
  // Each rank's half goes to the other: once, or to the staging memory and on.
  EXPECT_EQ(copied_bytes(CollectiveKind::all_gather, false) - copied_bytes(CollectiveKind::all_gather, true), bytes);
  EXPECT_EQ(copied_bytes(CollectiveKind::broadcast, false) - copied_bytes(CollectiveKind::broadcast, true), bytes);
  // What is added is read where it lies, so that only the half that then goes on is copied.
  EXPECT_GE(copied_bytes(CollectiveKind::all_reduce, false) - copied_bytes(CollectiveKind::all_reduce, true), bytes);
}

/// One device opens memory of others, and theirs does not: what they must not reach is staged, on both ends alike.
TEST(DeviceMemory, IsStagedForRanksWhoseDevicesDoNotOpenIt) {
  JobOptions options;
  options.transport = TransportChoice::shm;
  options.make_device = [made = std::make_shared<std::atomic<int>>(0)] {
    return std::make_unique<test::LateDevice>(test::LateDeviceOptions{.shares = made->fetch_add(1) != 0});
  };
  test::PlannedSource source("ring", Bytes{4096});
  run_ranks(3, source.source(), std::move(options), [](Communicator& world) {
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const std::size_t count : {std::size_t{5}, element_count}) {
        test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 0, count, 2});
        if (::testing::Test::HasFailure()) return world.abort("a test failed");
      }
    }
  });
}

}  // namespace
}  // namespace espalier::engine
