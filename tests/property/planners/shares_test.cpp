#include <gtest/gtest.h>

#include <numeric>
#include <sstream>

#include "planners/bounds/cut_bound.h"
#include "planners/lp/orbit_graph.h"
#include "planners/planning_problem.h"
#include "schedule/json/schedule_json.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/pipeline.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

constexpr std::array sharded = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::gather,
                                CollectiveKind::scatter};

/// Shares of which some are zero; now and then all but one.
std::vector<std::int64_t> random_shares(std::size_t ranks, Random& random) {
  std::vector<std::int64_t> shares(ranks, 0);
  const bool lonely = random.below(8) == 0;
  for (std::int64_t& share : shares) share = lonely || random.below(3) == 0 ? 0 : random.between(1, 6);
  shares[random.below(ranks)] += 1;
  return shares;
}

Collective random_collective(CollectiveKind kind, std::size_t ranks, Random& random) {
  const auto root = has_root(kind) ? std::optional(Rank(random.below(ranks))) : std::nullopt;
  return *make_collective(kind, ranks, root, random_shares(ranks, random));
}

TEST(Shares, PackingReachesTheBoundWhereSwitchesAreBalanced) {
  Random random(41);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {8, 4, round % 3 == 0 ? 3 : 20, true});
    const Topology topology = test::make_topology(graph, 1'000'000'000);
    for (const CollectiveKind kind : sharded) {
      const Collective collective = random_collective(kind, graph.ranks, random);
      const Rational bound = cut_bound(topology, collective)->time_per_byte;
      const auto schedule = plan_unbounded(topology, collective, *find_planner("packing"));
      ASSERT_TRUE(schedule) << schedule.error().message;
      ASSERT_EQ(compute_loads(*schedule, topology).time_per_byte, bound) << to_string(kind);
      test::expect_schedule_right(*schedule, topology, bound);
    }
  }
}

/// Shares that keep a symmetry are planned on its orbits: alternating ones, one rank with more, ranks with none.
TEST(Shares, PackingReachesTheBoundOnRegularNetworks) {
  const std::vector<Topology> networks = {*generate_torus({{3, 4}, {}}), *generate_hypercube({.dimensions = 4}),
                                          *generate_rail_boxes({.boxes = 2}), *generate_fat_tree({.k = 4}),
                                          *generate_dragonfly({.routers = 3, .ranks = 2})};
  for (const Topology& topology : networks) {
    for (const auto& pattern : std::vector<std::vector<std::int64_t>>{{1, 2}, {3, 0, 1}, {0, 1}, {1, 1, 1, 7}}) {
      std::vector<std::int64_t> shares;
      for (std::size_t r = 0; r < topology.rank_count(); ++r) shares.push_back(pattern[r % pattern.size()]);
      for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
        SCOPED_TRACE(topology.name());
        const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt, shares);
        const Rational bound = cut_bound(topology, collective)->time_per_byte;
        const auto schedule = plan_unbounded(topology, collective, *find_planner("packing"));
        ASSERT_TRUE(schedule) << schedule.error().message;
        EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, bound);
        test::expect_schedule_right(*schedule, topology, bound);
      }
    }
  }
}

/// A symmetry that does not keep the shares is none: marks tell ranks apart that are otherwise alike.
TEST(Shares, MarksTellRanksApart) {
  const Topology topology = *generate_torus({{4, 4}, {}});
  std::vector<std::int64_t> marks(16, 1);
  EXPECT_EQ(make_orbit_graph(topology, false, Symmetry::any, marks).ranks.count(), 1U);
  for (std::size_t r = 0; r < 16; r += 2) marks[r] = 2;
  const OrbitGraph orbits = make_orbit_graph(topology, false, Symmetry::any, marks);
  EXPECT_GE(orbits.ranks.count(), 2U);
  for (std::size_t r = 0; r < 16; ++r) EXPECT_EQ(marks[r], marks[orbits.ranks.first[orbits.ranks.of[r]]]);
}

/// Every planner's schedule is right and none beats the bound; what a planner does not make it refuses.
TEST(Shares, AllPlannersAreHonest) {
  Random random(42);
  std::map<std::string_view, int> made;
  for (int round = 0; round < 120; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {7, 3, 20, round % 2 == 0});
    const Topology topology = test::make_topology(graph, 1'000'000'000);
    for (const CollectiveKind kind : sharded) {
      const Collective collective = random_collective(kind, graph.ranks, random);
      const Rational bound = cut_bound(topology, collective)->time_per_byte;
      for (const Planner& planner : all_planners()) {
        const auto schedule = plan_unbounded(topology, collective, planner);
        if (!schedule) {
          EXPECT_EQ(schedule.error().code, ErrorCode::unsupported) << schedule.error().message;
          continue;
        }
        SCOPED_TRACE(planner.name);
        test::expect_schedule_right(*schedule, topology, bound);
        ++made[planner.name];
      }
    }
  }
  for (const std::string_view planner : {"packing", "flat", "ring", "tree", "binomial"}) EXPECT_GT(made[planner], 0);
}

TEST(Shares, PlansAreReadAsTheyWereWritten) {
  Random random(43);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {6, 3, 20, true});
    const Topology topology = test::make_topology(graph, 1'000'000'000);
    const Collective collective = random_collective(sharded.at(random.below(sharded.size())), graph.ranks, random);
    const auto schedule = plan_unbounded(topology, collective, *find_planner("flat"));
    ASSERT_TRUE(schedule) << schedule.error().message;
    std::ostringstream text;
    ASSERT_TRUE(write_schedule(text, *schedule, topology, WriteOptions{}));
    const auto read = read_plan(text.str(), "plan.json", nullptr);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->schedule.collective, collective);
    EXPECT_EQ(read->schedule.slices, schedule->slices);
    std::ostringstream again;
    ASSERT_TRUE(write_schedule(again, read->schedule, read->topology, WriteOptions{}));
    EXPECT_EQ(again.str(), text.str());
    EXPECT_TRUE(verify(read->schedule, read->topology).ok());
  }
}

/// Deleting a transfer of a shard that has a share breaks the promise.
TEST(Shares, EveryTransferIsNeeded) {
  Random random(44);
  const auto graph = test::random_graph(random, {6, 2, 9, true});
  const Topology topology = test::make_topology(graph, 1);
  for (const CollectiveKind kind : sharded) {
    const Collective collective = random_collective(kind, graph.ranks, random);
    const auto schedule = plan_unbounded(topology, collective, *find_planner("packing"));
    ASSERT_TRUE(schedule);
    for (std::size_t i = 0; i < schedule->transfers.size(); ++i) {
      Schedule broken = *schedule;
      broken.transfers.erase(broken.transfers.begin() + static_cast<std::ptrdiff_t>(i));
      EXPECT_FALSE(verify(broken, topology).ok()) << to_string(kind) << " without transfer " << i;
    }
  }
}

}  // namespace
}  // namespace espalier::planners
