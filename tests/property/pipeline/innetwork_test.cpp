#include "planners/innetwork/innetwork.h"

#include <gtest/gtest.h>

#include <array>

#include "base/check.h"
#include "base/random.h"
#include "tests/support/networks/computing.h"
#include "tests/support/pipeline.h"
#include "tests/support/sanitized.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

/// A random machine whose switches copy, add, do both or neither, some with a limit on what they take in or add.
Topology random_machine(Random& random) {
  RandomOptions options;
  options.ranks = random.between(2, 9);
  options.switches = random.between(1, 5);
  options.extra = random.between(0, 8);
  options.one_way = random.below(4) == 0;
  options.balanced = random.below(4) != 0;
  options.seed = random.next();
  const auto topology = generate_random(options);
  ESPALIER_CHECK(topology.has_value(), "random options are in range");
  const bool all = random.below(2) == 0;
  const Topology computing = test::with_computing_switches(
      *topology, [&](const Node&) { return std::pair(all || random.below(3) > 0, all || random.below(3) > 0); });
  std::vector<Node> nodes(computing.nodes().begin(), computing.nodes().end());
  for (Node& node : nodes) {
    if (node.is_rank) continue;
    if (random.below(6) == 0) node.bandwidth = {random.between(1, 60) * 1'000'000'000};
    if (random.below(4) == 0) node.reduce_bandwidth = {random.between(1, 60) * 1'000'000'000};
  }
  return *Topology::make("random", std::move(nodes), {computing.links().begin(), computing.links().end()});
}

TEST(InNetworkPipeline, RandomMachinesWithSwitchesThatCompute) {
  constexpr std::array kinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather,
                                CollectiveKind::broadcast, CollectiveKind::reduce};
  Random random(20'261'121);
  int planned = 0;
  for (int i = 0; i < test::random_cases(300); ++i) {
    SCOPED_TRACE(i);
    const Topology topology = random_machine(random);
    const CollectiveKind kind = kinds[static_cast<std::size_t>(i) % kinds.size()];
    SCOPED_TRACE(to_string(kind));
    const auto root = has_root(kind) ? std::optional(Rank(random.below(topology.rank_count()))) : std::nullopt;
    const auto collective = make_collective(kind, topology.rank_count(), root);
    const auto bound = planners::compute_bound(topology, *collective);
    ASSERT_TRUE(bound);
    const auto schedule = planners::plan_innetwork(topology, *collective);
    if (!schedule) {
      EXPECT_EQ(schedule.error().code, ErrorCode::unsupported) << schedule.error().message;
      continue;
    }
    ++planned;
    test::expect_schedule_right(*schedule, topology, bound->time_per_byte);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(planned, test::random_cases(200));
}

}  // namespace
}  // namespace espalier
