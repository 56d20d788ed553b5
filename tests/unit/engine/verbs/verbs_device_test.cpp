#include "engine/verbs/verbs_device.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <utility>

#include "engine/communicator/make_transports.h"
#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"
#include "tests/support/rdma_devices.h"

namespace espalier::engine {
namespace {

/// How much receive work the queue pairs of a device share; 0: each has its own.
std::vector<std::uint32_t> shared_receives_here() {
  return has_verbs() ? std::vector<std::uint32_t>{0, 2, 4096} : std::vector<std::uint32_t>{};
}

class SharedReceives : public ::testing::TestWithParam<std::uint32_t> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SharedReceives);

/// With two for all, senders find none left again and again.
TEST_P(SharedReceives, AreEnoughForAllQueuePairs) {
  test::PlannedSource source{"flat", Bytes{512}};
  JobOptions options;
  options.transport = TransportChoice::verbs;
  options.timeout = std::chrono::milliseconds(20000);
  options.sockets_per_peer = 2;
  options.verbs.shared_receives = GetParam();
  run_ranks(3, source.source(), std::move(options), [](Communicator& world) {
    for (std::uint64_t round = 0; round < 3; ++round) {
      for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
        test::run_case(world, {kind, ElementType::int64, ReduceOperation::sum, 3, 0, 3001, round}, test::Memory::plain,
                       false);
      }
    }
  });
}

INSTANTIATE_TEST_SUITE_P(All, SharedReceives, ::testing::ValuesIn(shared_receives_here()),
                         [](const auto& receives) { return "verbs" + std::to_string(receives.param); });

/// Only in a machine that has a device; those of rdma_rxe have one port.
class VerbsPort : public ::testing::TestWithParam<std::string> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VerbsPort);

TEST_P(VerbsPort, IsTheOneThatIsNamed) {
  const auto opened = VerbsDevice::open(GetParam() + ":1", {});
  ASSERT_TRUE(opened) << opened.error().message;
  EXPECT_EQ((*opened)->port(), 1);
  EXPECT_EQ((*opened)->name(), GetParam());
}

TEST_P(VerbsPort, IsRefusedWithThoseThatThereAreWhereTheDeviceHasNoSuch) {
  const auto expect_refusal = [](const Result<std::unique_ptr<VerbsDevice>>& opened) {
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, "RDMA device '" + GetParam() + "' has no port 2");
    EXPECT_EQ(opened.error().help, "it has port 1 (active); see `rdma link`");
  };
  expect_refusal(VerbsDevice::open(GetParam() + ":2", {}));
  VerbsOptions options;
  options.port = 2;
  expect_refusal(VerbsDevice::open(GetParam(), options));
  EXPECT_TRUE(VerbsDevice::open(GetParam() + ":1", options)) << "the port of the name is what counts";
}

TEST_P(VerbsPort, OfNoDeviceIsRefusedWithAllThatThereAre) {
  VerbsOptions options;
  options.port = 2;
  for (const auto& [name, message] : {std::pair{"", "no active port 2 on any RDMA device"},
                                      std::pair{"none0:1", "there is no RDMA device 'none0'"}}) {
    const auto opened = VerbsDevice::open(name, options);
    ASSERT_FALSE(opened);
    EXPECT_EQ(opened.error().message, message);
    EXPECT_NE(opened.error().help.find(GetParam() + " with port 1 (active)"), std::string::npos) << opened.error().help;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VerbsPort, ::testing::ValuesIn(test::rdma_devices()),
                         [](const auto& device) { return "verbs" + device.param; });

}  // namespace
}  // namespace espalier::engine
