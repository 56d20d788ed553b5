#include <gtest/gtest.h>

#include <algorithm>

#include "planners/bounds/bound.h"
#include "planners/bounds/less_hardware.h"
#include "planners/damage/failures.h"
#include "planners/planner.h"
#include "planners/symmetric/repaired_plan.h"
#include "schedule/loads.h"
#include "tests/support/networks/random_graph.h"
#include "topology/generate/generate.h"
#include "topology/without.h"

namespace espalier::planners {
namespace {

/// What every planner makes of every collective loads some link for at least as long as the bound says.
void expect_bounds_hold(const Topology& topology, Rank root, int& compared) {
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto collective =
        make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(root) : std::nullopt);
    ASSERT_TRUE(collective);
    const auto bound = compute_bound(topology, *collective);
    ASSERT_TRUE(bound) << bound.error().message;
    for (const Planner& planner : all_planners()) {
      const auto schedule = planner.plan(topology, *collective, {});
      if (!schedule) continue;
      ++compared;
      EXPECT_GE(compute_loads(*schedule, topology).time_per_byte, bound->time_per_byte)
          << planner.name << " " << to_string(kind) << ": " << bound->what;
    }
  }
}

TEST(Bound, NoScheduleBeatsIt) {
  Random random(31);
  int compared = 0;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    test::PlainGraph graph = test::random_graph(random, {6, 3, 9, round % 2 == 0});
    const Topology plain = test::make_topology(graph);
    std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
    for (Node& node : nodes) {
      if (round % 4 == 3 && random.below(3) == 0) node.bandwidth = {random.between(1, 20) * 1'000'000'000};
    }
    const auto topology = Topology::make("random", nodes, {plain.links().begin(), plain.links().end()});
    ASSERT_TRUE(topology);
    expect_bounds_hold(*topology, Rank(random.below(graph.ranks)), compared);
  }
  EXPECT_GT(compared, 2'000);
}

/// What is left after any failure takes at least as long as the whole, by what is known of both. Counts how often that
/// was compared, and how often only the whole's bound says so.
struct LessHardware {
  int compared = 0;
  int kept = 0;

  void check(const Topology& whole, const Failure& failure, const Collective& collective) {
    const auto rest = without(whole, failure.parts, failure.name);
    if (!rest || rest->rank_count() != whole.rank_count()) return;
    const Bound of_whole = *compute_bound(whole, collective);
    const Bound alone = *compute_bound(*rest, collective);
    if (!alone.is_floor) {
      EXPECT_GE(alone.time_per_byte, of_whole.time_per_byte) << failure.name << ": " << alone.what;
    }
    const LostParts lost{whole, failure.parts};
    const auto priced = compute_priced_bound(*rest, &lost, collective);
    ASSERT_TRUE(priced) << priced.error().message;
    EXPECT_EQ(priced->bound.time_per_byte, std::max(alone.time_per_byte, of_whole.time_per_byte)) << failure.name;
    EXPECT_EQ(priced->bound.is_floor, alone.is_floor);
    ++compared;
    if (priced->bound.time_per_byte != alone.time_per_byte) ++kept;
  }
};

TEST(Bound, IsNoHigherWithLessHardware) {
  Random random(32);
  LessHardware less;
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology whole = test::make_topology(test::random_graph(random, {6, 3, 9, round % 2 == 0}));
    for (const Failure& failure : single_failures(whole)) {
      for (const CollectiveKind kind :
           {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::all_to_all}) {
        less.check(whole, failure, *make_collective(kind, whole.rank_count(), std::nullopt));
      }
    }
  }
  EXPECT_GT(less.compared, 200);
}

/// The whole has an optimum by its symmetry, what is left past the size of programs a floor alone.
TEST(Bound, OfBoxesOnRailsIsNoHigherWithoutACable) {
  constexpr std::uint32_t boxes = min_symmetric_ranks / 8 + 1;
  const Topology whole = *generate_rail_boxes({.boxes = boxes});
  const Collective collective = *make_collective(CollectiveKind::all_reduce, whole.rank_count(), std::nullopt);
  LessHardware less;
  less.check(whole, {"box0.nic0", "nic", *find_parts(whole, "box0.nic0"), {}}, collective);
  EXPECT_EQ(less.compared, 1);
  EXPECT_EQ(less.kept, 1);
}

}  // namespace
}  // namespace espalier::planners
