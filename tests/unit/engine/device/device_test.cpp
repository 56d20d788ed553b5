// Devices of the processor's own memory against the suite of all devices, and one that fails.
#include "engine/device/device.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>

#include "tests/support/device_conformance.h"
#include "tests/support/late_device.h"

namespace espalier::engine {
namespace {

/// What failed is never done, and says why; a drain ends it like all else.
TEST(FailingDevice, SaysWhyItsWorkIsNeverDone) {
  test::LateDevice device({.works = 1});
  const auto queue = device.make_queue();
  ASSERT_TRUE(queue);
  std::array<std::byte, 8> from{};
  std::array<std::byte, 8> to{};
  (*queue)->copy(to.data(), from.data(), 8);
  const std::uint64_t first = (*queue)->mark();
  (*queue)->copy(to.data(), from.data(), 8);
  const std::uint64_t second = (*queue)->mark();
  for (int looks = 0; looks < 100; ++looks) EXPECT_FALSE((*queue)->is_done(second));
  EXPECT_TRUE((*queue)->is_done(first));
  ASSERT_TRUE((*queue)->has_failed());
  EXPECT_EQ((*queue)->error().message, "it is worn out");
  (*queue)->drain(DeviceQueue::patience);
  EXPECT_TRUE((*queue)->is_done(second));
}

INSTANTIATE_TEST_SUITE_P(All, DeviceConformance,
                         ::testing::Values(DeviceCase{"host", [] { return std::make_unique<HostDevice>(); }},
                                           DeviceCase{"late", [] { return std::make_unique<test::LateDevice>(); }},
                                           DeviceCase{"lateAndShared",
                                                      [] {
                                                        return std::make_unique<test::LateDevice>(
                                                            test::LateDeviceOptions{.shares = true});
                                                      }}),
                         [](const auto& device) { return std::string(device.param.name); });

}  // namespace
}  // namespace espalier::engine
