// Ranks with two RDMA devices, their rails, of which one fails during a call: its port goes down, or the device is
// removed. Only in the machine of scripts/verbs-vm, whose devices rxe0 and rxe1 are on the interfaces rd0 and rd1.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/faults/rank_processes.h"
#include "tests/support/rdma_devices.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using test::RankProcesses;

/// A way to lose rxe1, and to have it again.
struct Loss {
  const char* name;
  const char* lose;
  const char* restore;
};

std::vector<Loss> losses_here() {
  if (test::rdma_devices() != std::vector<std::string>{"rxe0", "rxe1"}) return {};
  if (!std::filesystem::exists("/sys/class/net/rd1")) return {};
  return {{"verbsPortDown", "ip link set rd1 down", "ip link set rd1 up"},
          // The kernel has this wait until the ranks have closed the device, and tells them nothing.
          {"verbsLinkDeleted", "rdma link delete rxe1 &",
           "for try in $(seq 100); do rdma link add rxe1 type rxe netdev rd1 2> /dev/null && exit 0; sleep 0.1; done; "
           "exit 1"},
          {"verbsDeviceRemoved", "ip link delete rd1",
           "ip link add rd1 type dummy && ip link set rd1 mtu 4200 && ip addr add 10.78.0.1/24 dev rd1 && "
           "ip link set rd1 up && rdma link add rxe1 type rxe netdev rd1"}};
}

void run_line(const char* line) { ASSERT_EQ(std::system(line), 0) << line; }

JobOptions options_with(std::vector<std::string> rails) {
  JobOptions options;
  options.transport = TransportChoice::verbs;
  options.timeout = milliseconds(30000);
  options.rendezvous.timeout = milliseconds(30000);
  options.verbs.devices = {std::move(rails)};
  return options;
}

/// Every rank makes calls over the rails until one fails.
RankProcesses start(std::uint32_t world, const std::vector<std::string>& rails) {
  return RankProcesses(world, options_with(rails), [rails](RankProcesses::Rank&& own) {
    own.options.verbs.devices = {rails};
    return test::call_until_failure(std::move(own), CollectiveKind::all_reduce, 60'000, test::Memory::registered);
  });
}

class Rails : public ::testing::TestWithParam<Loss> {};
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(Rails);

TEST_P(Rails, TheLossOfOneEndsTheCallOnEveryRank) {
  constexpr std::uint32_t world = 3;
  {
    RankProcesses ranks = start(world, {"rxe0", "rxe1"});
    ASSERT_TRUE(ranks.await_calls(3)) << ranks.message(0);
    const std::int64_t lost_ns = engine::now_ns();
    run_line(GetParam().lose);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_EQ(ranks.exit_code(rank), 7) << ranks.message(rank);
      const std::int64_t took_ns = ranks.report(rank).failed_at_ns.load() - lost_ns;
      EXPECT_LT(took_ns / 1'000'000, 25'000) << "near the deadline: " << ranks.message(rank);
      EXPECT_NE(ranks.message(rank).find("rxe1"), std::string::npos) << ranks.message(rank);
    }
  }
  // Nothing of it is left in the kernel, and the other rail carries a new job.
  EXPECT_EQ(test::rdma_objects("rxe0"), test::objects_of_the_kernel);
  {
    RankProcesses ranks = start(world, {"rxe0"});
    EXPECT_TRUE(ranks.await_calls(3)) << ranks.message(0);
  }
  run_line(GetParam().restore);
  EXPECT_EQ(test::rdma_objects("rxe1"), test::objects_of_the_kernel);
  RankProcesses ranks = start(world, {"rxe0", "rxe1"});
  EXPECT_TRUE(ranks.await_calls(3)) << ranks.message(0);
}

INSTANTIATE_TEST_SUITE_P(All, Rails, ::testing::ValuesIn(losses_here()),
                         [](const auto& loss) { return std::string(loss.param.name); });

}  // namespace
}  // namespace espalier
