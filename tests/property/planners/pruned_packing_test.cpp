#include "planners/packing/pruned_packing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <optional>

#include "base/random.h"
#include "planners/bounds/cut_bound.h"
#include "planners/bounds/cut_rate.h"
#include "planners/packing/packing.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "topology/analysis/flow_network.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

struct Measured {
  Rational time;
  ScheduleShape shape;
};

Measured measure(const Topology& topology, const Schedule& schedule) {
  const VerifyReport report = verify(schedule, topology, 3);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  return {compute_loads(schedule, topology).time_per_byte, measure_shape(schedule)};
}

Measured planned(const Topology& topology, const Collective& collective, const PackingLimits& limits) {
  const auto schedule = plan_pruned_packing(topology, collective, limits);
  EXPECT_TRUE(schedule) << schedule.error().message;
  return schedule ? measure(topology, *schedule) : Measured{};
}

/// On parallel links one tree of ranks may become several of links.
bool has_parallel_links(const Topology& topology) {
  return std::any_of(topology.links().begin(), topology.links().end(),
                     [&](const Link& link) { return topology.links_between(link.tail, link.head).size() > 1; });
}

Topology random_machine(Random& random) {
  return *generate_random({.ranks = random.between(3, 8),
                           .switches = random.between(0, 3),
                           .extra = random.between(2, 12),
                           .one_way = random.below(2) == 0,
                           .seed = random.next()});
}

TEST(PrunedPacking, KeepsItsLimitsAndNeverBeatsTheBound) {
  constexpr CollectiveKind kinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      CollectiveKind::broadcast, CollectiveKind::all_reduce};
  Random random(41);
  for (int round = 0; round < 80; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_machine(random);
    const Collective collective = *make_collective(kinds[round % 4], topology.rank_count(), std::nullopt);
    const auto best = plan_packing(topology, collective);
    ASSERT_TRUE(best);
    const auto few = static_cast<std::uint32_t>(random.between(1, 3));
    const Measured fewer = planned(topology, collective, {.max_trees = few});
    const std::uint32_t most = few * (collective.kind == CollectiveKind::all_reduce ? few : 1);
    if (!has_parallel_links(topology)) {
      EXPECT_LE(fewer.shape.trees_per_root, most);
    }
    const auto high = static_cast<std::uint32_t>(topology.rank_count() - 1);
    const Measured lower = planned(topology, collective, {.max_height = high});
    EXPECT_LE(lower.shape.height, high);
    if (collective.kind == CollectiveKind::all_reduce) continue;  // its best is no pair of packings
    const Rational bound = cut_bound(topology, collective)->time_per_byte;
    EXPECT_GE(fewer.time, bound);
    EXPECT_GE(lower.time, bound);
  }
}

TEST(PrunedPacking, TheLeastHeightOfATorusCostsNothing) {
  const Topology torus = *generate_torus({{4, 4}, {}});
  const Collective collective{CollectiveKind::all_gather, 16, Rank()};
  const Measured lowest = planned(torus, collective, {.max_height = 4});
  EXPECT_EQ(lowest.shape.height, 4U);
  EXPECT_EQ(lowest.time, cut_bound(torus, collective)->time_per_byte);
  const auto refused = plan_pruned_packing(torus, collective, {.max_height = 3});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_EQ(refused.error().help, "allow a height of 4 or more");
}

TEST(PrunedPacking, EqualTreesHaveEqualWeights) {
  const Topology mesh = *generate_mesh({{3, 3}, {}});
  const Collective collective{CollectiveKind::all_gather, 9, Rank()};
  for (const std::uint32_t count : {1U, 2U, 3U, 5U}) {
    const auto schedule = plan_pruned_packing(mesh, collective, {.equal_trees = count});
    ASSERT_TRUE(schedule);
    EXPECT_LE(measure(mesh, *schedule).shape.trees_per_root, count);
    for (const Slice& slice : schedule->slices) EXPECT_EQ(slice.length * 9 * count % schedule->units, 0) << count;
  }
}

/// Where the smallest cut of a broadcast lets k units of the rates' common divisor through, k trees of one unit each
/// reach its bound (J. Edmonds, "Edge-disjoint branchings", 1973).
TEST(PrunedPacking, UnitTreesReachTheBoundOfABroadcast) {
  Random random(45);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_machine(random);
    const Collective collective{CollectiveKind::broadcast, static_cast<std::uint32_t>(topology.rank_count()),
                                Rank(random.below(topology.rank_count()))};
    const FlowNetwork network(topology, Direction::forward);
    const CutRate cut = broadcast_cut(network, collective.root);
    const auto units = static_cast<std::uint32_t>(cut.capacity);
    if (units > 64) continue;
    for (const std::uint32_t count : {units, 2 * units}) {
      const Measured equal = planned(topology, collective, {.equal_trees = count});
      EXPECT_EQ(equal.time, cut_bound(topology, collective)->time_per_byte) << count;
    }
  }
}

TEST(PrunedPacking, AMultipleOfEqualTreesIsNeverSlower) {
  constexpr CollectiveKind kinds[] = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
                                      CollectiveKind::broadcast, CollectiveKind::reduce};
  Random random(46);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_machine(random);
    const CollectiveKind kind = kinds[round % 4];
    const auto root = has_root(kind) ? std::optional(Rank(0)) : std::nullopt;
    const Collective collective = *make_collective(kind, topology.rank_count(), root);
    for (const std::uint32_t count : {1U, 2U, 3U}) {
      const Rational time = planned(topology, collective, {.equal_trees = count}).time;
      for (const std::uint32_t times : {2U, 3U}) {
        EXPECT_LE(planned(topology, collective, {.equal_trees = times * count}).time, time) << times << " x " << count;
      }
    }
  }
}

TEST(PrunedPacking, AGapIsNeverExceeded) {
  Random random(42);
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_machine(random);
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::broadcast, CollectiveKind::all_reduce}) {
      const auto root = has_root(kind) ? std::optional(Rank(0)) : std::nullopt;
      const Collective collective = *make_collective(kind, topology.rank_count(), root);
      const Measured best = measure(topology, *plan_packing(topology, collective));
      for (const Rational& gap : {make_rational(1, 100), make_rational(1, 5)}) {
        const Measured relaxed = planned(topology, collective, {.gap = gap});
        EXPECT_LE(relaxed.time, best.time * (1 + gap));
      }
      if (kind == CollectiveKind::all_reduce) continue;  // its best is no pair of packings
      const Measured relaxed = planned(topology, collective, {.gap = make_rational(1, 5)});
      EXPECT_LE(relaxed.shape.height, planned(topology, collective, {}).shape.height);
    }
  }
}

TEST(PrunedPacking, ParetoPointsBeatEachOtherInSomething) {
  Random random(43);
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = random_machine(random);
    const Collective collective = *make_collective(CollectiveKind::all_gather, topology.rank_count(), std::nullopt);
    const auto best = plan_packing(topology, collective);
    ASSERT_TRUE(best);
    const std::vector<PackingPoint> points = pareto_packings(topology, *best);
    for (const PackingPoint& point : points) {
      const Measured measured = measure(topology, point.schedule);
      EXPECT_EQ(measured.time, point.time_per_byte);
      for (const PackingPoint& other : points) {
        if (&other == &point) continue;
        EXPECT_FALSE(other.time_per_byte <= point.time_per_byte && other.shape.height <= point.shape.height &&
                     other.shape.trees_per_root <= point.shape.trees_per_root);
      }
    }
  }
}

TEST(PrunedPacking, RefusesWhatHasNoSpanningTrees) {
  const Topology torus = *generate_torus({{2, 2}, {}});
  const auto refused = plan_pruned_packing(torus, {CollectiveKind::all_to_all, 4, Rank()}, {.max_trees = 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
}

}  // namespace
}  // namespace espalier::planners
