#include "planners/innetwork/innetwork.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

#include "planners/bounds/bound.h"
#include "planners/innetwork/tree_grower.h"
#include "planners/packing/packing.h"
#include "schedule/loads.h"
#include "schedule/relays.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/computing.h"
#include "tests/support/networks/relay_star.h"

namespace espalier::planners {
namespace {

Collective collective_of(CollectiveKind kind, const Topology& topology) {
  return *make_collective(kind, topology.rank_count(), std::nullopt);
}

Result<Schedule> plan_of(CollectiveKind kind, const Topology& topology) {
  return plan_innetwork(topology, collective_of(kind, topology));
}

constexpr std::array planned_kinds = {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter,
                                      CollectiveKind::all_gather, CollectiveKind::broadcast, CollectiveKind::reduce};

/// Ranks with a cable to a switch in each plane; all switches copy and add. Rates in GB/s.
Topology planes(std::size_t ranks, std::initializer_list<std::int64_t> rates) {
  test::FabricMaker maker;
  std::vector<NodeId> nodes;
  for (std::size_t r = 0; r < ranks; ++r) nodes.push_back(maker.add_rank());
  for (const std::int64_t rate : rates) {
    const NodeId hub = maker.add_switch();
    for (const NodeId rank : nodes) maker.add_cable(rank, hub, Bandwidth{rate * 1'000'000'000});
  }
  return test::with_computing_switches(maker.build("planes"));
}

/// Racks of hosts on a leaf each, every leaf with one cable to every spine; all switches copy and add.
Topology racks(std::size_t leaves, std::size_t hosts, std::size_t spines) {
  test::FabricMaker maker;
  std::vector<NodeId> ranks;
  for (std::size_t r = 0; r < leaves * hosts; ++r) ranks.push_back(maker.add_rank());
  std::vector<NodeId> leaf;
  for (std::size_t l = 0; l < leaves; ++l) leaf.push_back(maker.add_switch());
  for (std::size_t r = 0; r < ranks.size(); ++r) maker.add_cable(ranks[r], leaf[r / hosts]);
  for (std::size_t s = 0; s < spines; ++s) {
    const NodeId spine = maker.add_switch();
    for (const NodeId below : leaf) maker.add_cable(below, spine);
  }
  return test::with_computing_switches(maker.build("racks"));
}

TEST(InNetwork, OneSwitchAddsAndCopiesInTwoStepsPerRank) {
  const Topology star = test::computing_star(8);
  const auto schedule = plan_of(CollectiveKind::all_reduce, star);
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_EQ(schedule->relays, std::vector<NodeId>{star.find_node("s0")});
  EXPECT_EQ(schedule->transfers.size(), 16U);
  EXPECT_TRUE(verify(*schedule, star).ok());
  // S bytes each way over 25 GB/s; ranks alone have to send 2 x 7/8 S.
  const Rational time = compute_loads(*schedule, star).time_per_byte;
  EXPECT_EQ(time, make_rational(1, 25'000'000'000));
  const auto ranks_alone = plan_packing(star, collective_of(CollectiveKind::all_reduce, star));
  EXPECT_EQ(compute_loads(*ranks_alone, star).time_per_byte, time * make_rational(7, 4));
}

TEST(InNetwork, ReachesTheBoundOnStarsPlanesAndRacks) {
  for (const Topology& topology : {test::computing_star(2), test::computing_star(5), planes(4, {10, 17, 23}),
                                   planes(8, {25, 25, 25, 25}), racks(3, 4, 2), racks(4, 2, 1)}) {
    for (const CollectiveKind kind : planned_kinds) {
      SCOPED_TRACE(topology.name() + " " + std::string(to_string(kind)));
      const auto schedule = plan_of(kind, topology);
      ASSERT_TRUE(schedule) << schedule.error().message;
      EXPECT_TRUE(verify(*schedule, topology).ok());
      EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte,
                compute_bound(topology, collective_of(kind, topology))->time_per_byte);
    }
  }
}

TEST(InNetwork, PlanesShareByWhatTheyCarry) {
  const auto schedule = plan_of(CollectiveKind::broadcast, planes(4, {10, 30}));
  ASSERT_TRUE(schedule);
  ASSERT_EQ(schedule->slices.size(), 2U);
  EXPECT_EQ(schedule->units, 4);
  EXPECT_EQ(std::max(schedule->slices[0].length, schedule->slices[1].length), 3);
}

TEST(InNetwork, OneFlagIsUsedForWhatItIsGoodFor) {
  const Topology adds = test::computing_star(4, false, true);
  const Topology copies = test::computing_star(4, true, false);
  for (const auto& [topology, kind] :
       {std::pair(&adds, CollectiveKind::all_reduce), std::pair(&adds, CollectiveKind::reduce),
        std::pair(&adds, CollectiveKind::reduce_scatter), std::pair(&copies, CollectiveKind::all_reduce),
        std::pair(&copies, CollectiveKind::broadcast), std::pair(&copies, CollectiveKind::all_gather)}) {
    const auto schedule = plan_of(kind, *topology);
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, *topology).ok());
    EXPECT_FALSE(schedule->relays.empty());
  }
}

TEST(InNetwork, ShardsMayBeUnequal) {
  const Topology star = test::computing_star(3);
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    const auto collective = make_collective(kind, 3, std::nullopt, {3, 0, 1});
    ASSERT_TRUE(collective);
    const auto schedule = plan_innetwork(star, *collective);
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, star).ok());
    EXPECT_EQ(compute_loads(*schedule, star).time_per_byte, compute_bound(star, *collective)->time_per_byte);
  }
}

TEST(InNetwork, RefusesByName) {
  const auto message = [](CollectiveKind kind, const Topology& topology) {
    const auto schedule = plan_of(kind, topology);
    return schedule ? "planned" : schedule.error().message + "; " + schedule.error().help;
  };
  EXPECT_EQ(message(CollectiveKind::all_reduce, test::star_of(3)),
            "no switch of star-3 copies or adds, for all_reduce; declare the switches that do with multicast: true and "
            "reduction: true, or use the planner packing");
  EXPECT_EQ(message(CollectiveKind::broadcast, test::computing_star(3, false, true)),
            "no switch of star-3 copies, for broadcast; declare the switches that do with multicast: true, or use the "
            "planner packing");
  EXPECT_EQ(
      message(CollectiveKind::reduce_scatter, test::computing_star(3, true, false)),
      "no switch of star-3 adds, for reduce_scatter; declare the switches that do with reduction: true, or use the "
      "planner packing");
  EXPECT_EQ(message(CollectiveKind::gather, test::computing_star(3)),
            "innetwork plans no gather: it has nothing to copy or add on the way; use the planner packing");
  EXPECT_EQ(message(CollectiveKind::all_to_all, test::computing_star(3)),
            "innetwork plans no all_to_all: it has nothing to copy or add on the way; use the planner pairwise");
}

TEST(InNetwork, OneRankNeedsNothing) {
  const auto schedule = plan_of(CollectiveKind::all_reduce, test::computing_star(1));
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(schedule->transfers.empty());
}

/// g0 - s0 - s1 - g1, g2: s0 has one child and is passed, s1 branches.
TEST(TreeGrower, PassesSwitchesWithOneChild) {
  test::FabricMaker maker;
  const NodeId g0 = maker.add_rank();
  const NodeId g1 = maker.add_rank();
  const NodeId g2 = maker.add_rank();
  const NodeId s0 = maker.add_switch();
  const NodeId s1 = maker.add_switch();
  for (const auto& [a, b] : {std::pair(g0, s0), std::pair(s0, s1), std::pair(s1, g1), std::pair(s1, g2)}) {
    maker.add_cable(a, b);
  }
  const Topology topology = test::with_computing_switches(maker.build("chain"));
  const RelayResources resources(topology);
  const std::vector<double> prices(resources.rates.size(), 1);
  const auto out = TreeGrower(topology, resources, Direction::forward).grow(g0, prices);
  ASSERT_TRUE(out);
  EXPECT_EQ(out->hops,
            (std::vector<RelayHop>{{g0, s1, {LinkId(0), LinkId(2)}}, {s1, g1, {LinkId(4)}}, {s1, g2, {LinkId(6)}}}));
  const auto in = TreeGrower(topology, resources, Direction::reversed).grow(g0, prices);
  ASSERT_TRUE(in);
  EXPECT_EQ(in->hops,
            (std::vector<RelayHop>{{g0, s1, {LinkId(3), LinkId(1)}}, {s1, g1, {LinkId(5)}}, {s1, g2, {LinkId(7)}}}));
}

TEST(TreeGrower, SaysWhenARankIsOutOfReach) {
  test::FabricMaker maker;
  const NodeId g0 = maker.add_rank();
  const NodeId s0 = maker.add_switch();
  maker.add_link(g0, s0);
  const Topology topology = test::with_computing_switches(maker.build("one-way"));
  const RelayResources resources(topology);
  EXPECT_FALSE(TreeGrower(topology, resources, Direction::forward).grow(s0, std::vector<double>{1}));
  EXPECT_TRUE(TreeGrower(topology, resources, Direction::reversed).grow(s0, std::vector<double>{1}));
}

}  // namespace
}  // namespace espalier::planners
