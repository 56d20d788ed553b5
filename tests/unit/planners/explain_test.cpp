#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/explain/class_loads.h"
#include "planners/explain/cut_proof.h"
#include "planners/explain/more_cables.h"
#include "planners/planner.h"
#include "tests/support/networks/real_machines.h"

namespace espalier::planners {
namespace {

using test::dgx1v_nvlinks;
using test::FabricMaker;
using test::line_of;
using test::random_fabric;
using test::ring_of;
using test::star_of;

Collective collective_between(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  return *make_collective(kind, topology.rank_count(), root);
}

TEST(CutProof, ASlowRankOfADamagedMachine) {
  const Topology topology = dgx1v_nvlinks(true);
  const Collective collective = collective_between(topology, CollectiveKind::all_gather);
  const auto proof = prove_cut(topology, collective, *compute_bound(topology, collective));
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->direction, Direction::forward);
  EXPECT_EQ(proof->ranks_inside, 7U);
  EXPECT_EQ(proof->demand, make_rational(7, 8));
  EXPECT_EQ(proof->links.size(), 5U);
  EXPECT_EQ(proof->capacity, BigInteger(5 * 22'000'000'000LL));
}

TEST(CutProof, ABackplaneStandsForItsLinks) {
  // Two ranks with 25 GB/s each on a switch that forwards 10 GB/s.
  FabricMaker maker;
  std::vector<NodeId> ranks;
  for (int i = 0; i < 2; ++i) ranks.push_back(maker.add_rank());
  Node slow;
  slow.id = "slow";
  slow.kind = NodeKind::switch_node;
  slow.is_rank = false;
  slow.bandwidth = {10'000'000'000};
  const NodeId hub = maker.add_node(slow);
  for (const NodeId rank : ranks) maker.add_cable(rank, hub);
  const Topology topology = maker.build("backplane");
  const Collective collective = collective_between(topology, CollectiveKind::broadcast);
  const auto proof = prove_cut(topology, collective, *compute_bound(topology, collective));
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->demand, 1);
  EXPECT_EQ(proof->capacity, BigInteger(10'000'000'000));
  EXPECT_EQ(proof->backplanes, std::vector<NodeId>{hub});
  EXPECT_TRUE(proof->links.empty());
}

TEST(CutProof, ARanksOwnBackplane) {
  std::vector<Node> nodes(2);
  std::vector<Link> links(2);
  nodes[0].id = "a";
  nodes[0].bandwidth = {10};
  nodes[1].id = "b";
  for (std::size_t i = 0; i < 2; ++i) links[i] = {NodeId(i), NodeId(1 - i), {.nominal = {100}}};
  const Topology topology = *Topology::make("pair", nodes, links);
  const Collective collective = collective_between(topology, CollectiveKind::all_gather);
  const auto proof = prove_cut(topology, collective, *compute_bound(topology, collective));
  ASSERT_TRUE(proof);
  EXPECT_EQ(proof->backplanes, std::vector<NodeId>{NodeId(0)});
  EXPECT_EQ(proof->demand / Rational(proof->capacity), make_rational(1, 10));
}

TEST(CutProof, CountingMessagesIsNoCut) {
  const Topology topology = star_of(4);
  const Collective collective = collective_between(topology, CollectiveKind::all_reduce);
  EXPECT_FALSE(prove_cut(topology, collective, *compute_bound(topology, collective)));
}

// Every bound that one cut proves is proven again from the cut alone, whatever the collective and its root.
TEST(CutProof, ProvesEveryCutBoundOfRandomFabrics) {
  Random random(7);
  for (int round = 0; round < 60; ++round) {
    const Topology topology = random_fabric(2 + random.below(5), random.below(4), random.below(8), random);
    const Rank root(random.below(topology.rank_count()));
    for (const CollectiveKind kind :
         {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::broadcast, CollectiveKind::reduce,
          CollectiveKind::gather, CollectiveKind::scatter}) {
      const Collective collective =
          collective_between(topology, kind, has_root(kind) ? std::optional(root) : std::nullopt);
      const Bound bound = *compute_bound(topology, collective);
      const auto proof = prove_cut(topology, collective, bound);
      ASSERT_TRUE(proof) << to_string(kind) << ", round " << round;
      EXPECT_EQ(proof->demand / Rational(proof->capacity), bound.time_per_byte);
    }
  }
}

// What must cross any cut takes no longer than the bound of all_to_all and send_recv allows: a larger demand would be a
// better bound.
TEST(CutProof, NoCutAsksForMoreThanTheProgramsGive) {
  Random random(11);
  for (int round = 0; round < 20; ++round) {
    const Topology topology = random_fabric(2 + random.below(4), random.below(3), random.below(6), random);
    for (const CollectiveKind kind :
         {CollectiveKind::all_to_all, CollectiveKind::send_recv, CollectiveKind::all_reduce}) {
      const Collective collective = collective_between(topology, kind);
      const Bound bound = *compute_bound(topology, collective);
      for (std::uint32_t set = 1; set + 1 < std::uint32_t{1} << topology.node_count(); ++set) {
        std::vector<bool> is_inside(topology.node_count());
        std::size_t ranks = 0;
        BigInteger leaving = 0;
        for (std::size_t i = 0; i < is_inside.size(); ++i) {
          is_inside[i] = (set >> i & 1U) != 0;
          ranks += is_inside[i] && topology.node(NodeId(i)).is_rank ? 1U : 0U;
        }
        if (ranks == 0 || ranks == topology.rank_count()) continue;
        for (const Link& link : topology.links()) {
          if (is_inside[link.tail.index()] && !is_inside[link.head.index()])
            leaving += link.bandwidth().bytes_per_second;
        }
        ASSERT_LE(crossing_demand(topology, collective, is_inside, Direction::forward),
                  bound.time_per_byte * Rational(leaving));
      }
    }
  }
}

const MoreCables* find_value(const std::vector<MoreCables>& values, const std::string& beside, std::size_t cables) {
  for (const MoreCables& value : values) {
    if (value.beside == beside && value.cables == cables) return &value;
  }
  return nullptr;
}

TEST(MoreCables, ABottleneckOfOneCable) {
  // A line of three ranks: both cables are alike. All-gather: 2/3 S have to leave the two ranks of either side.
  const Topology topology = line_of(3);
  const Collective collective = collective_between(topology, CollectiveKind::all_gather);
  const Bound bound = *compute_bound(topology, collective);
  const auto values = value_more_cables(topology, collective, bound, {});
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 2U);
  const MoreCables* both = find_value(*values, "g0-g1", 2);
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->bound.time_per_byte * 2, bound.time_per_byte);
  const MoreCables* one = find_value(*values, "g0-g1", 1);
  ASSERT_NE(one, nullptr);
  EXPECT_EQ(one->bound.time_per_byte, bound.time_per_byte);  // the other end is as tight
  EXPECT_EQ(values->front().cables, 2U);                     // the largest gain first
}

TEST(MoreCables, WithoutACutEveryKindIsTried) {
  const Topology topology = ring_of(4);
  const Collective collective = collective_between(topology, CollectiveKind::all_reduce);
  const auto values = value_more_cables(topology, collective, *compute_bound(topology, collective), {});
  ASSERT_TRUE(values);
  ASSERT_EQ(values->size(), 2U);
  EXPECT_EQ((*values)[0].cables, 4U);
}

TEST(MoreCables, WhatHasNoPriceKeepsTheBound) {
  // On some random networks a program proves the bound of all_reduce, and not every link has a price.
  Random random(20'261'125);
  int proven = 0;
  for (int round = 0; round < 40 && proven < 4; ++round) {
    const Topology topology = random_fabric(5, 2, 4, random);
    const Collective collective = collective_between(topology, CollectiveKind::all_reduce);
    const auto priced = compute_priced_bound(topology, collective);
    ASSERT_TRUE(priced);
    if (priced->prices.empty() || priced->prices.size() == topology.link_count()) continue;
    ++proven;
    const auto computed = value_more_cables(topology, collective, priced->bound, {});
    const auto values = value_more_cables(topology, collective, priced->bound, priced->prices);
    ASSERT_TRUE(computed);
    ASSERT_TRUE(values);
    ASSERT_EQ(values->size(), computed->size());
    for (std::size_t i = 0; i < values->size(); ++i) {
      EXPECT_EQ((*values)[i].beside, (*computed)[i].beside) << "round " << round;
      EXPECT_EQ((*values)[i].cables, (*computed)[i].cables) << "round " << round;
      EXPECT_EQ((*values)[i].bound.time_per_byte, (*computed)[i].bound.time_per_byte) << "round " << round;
    }
  }
  EXPECT_EQ(proven, 4);
}

TEST(ClassLoads, PartsOfTheBoundsTime) {
  // One ring both ways on a ring of four: all eight links are full.
  const Topology topology = ring_of(4);
  const Collective collective = collective_between(topology, CollectiveKind::all_gather);
  const Schedule schedule = *plan(topology, collective, *find_planner("ring"));
  const Loads loads = compute_loads(schedule, topology);
  const std::vector<ClassLoad> groups = group_loads(schedule, topology, loads, *schedule.bound);
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].link_class, "25 GB/s");
  EXPECT_EQ(groups[0].links, 8U);
  EXPECT_EQ(groups[0].used, 8U);
  EXPECT_DOUBLE_EQ(groups[0].most, 1);
  EXPECT_DOUBLE_EQ(groups[0].mean, 1);
}

}  // namespace
}  // namespace espalier::planners
