#include "planners/bounds/cut_bound.h"

#include <gtest/gtest.h>

#include "planners/planning_problem.h"
#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::make_topology;
using test::PlainGraph;

Bound bound_of(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  const auto collective = make_collective(kind, topology.rank_count(), root);
  const auto bound = cut_bound(topology, *collective);
  EXPECT_TRUE(bound) << bound.error().message;
  return *bound;
}

/// Two ranks, 25 units from 0 to 1 and 10 back.
PlainGraph uneven_pair() { return {2, 0, {{0, 1, 25}, {1, 0, 10}}}; }

TEST(CutBound, TwoRanksOneSlowWay) {
  const Topology topology = make_topology(uneven_pair(), 1);
  // S/2 bytes go each way; the way back takes S/2 / 10.
  const Bound gathering = bound_of(topology, CollectiveKind::all_gather);
  EXPECT_EQ(gathering.time_per_byte, make_rational(1, 20));
  EXPECT_EQ(gathering.cut, std::vector<NodeId>{NodeId(1)});
  EXPECT_EQ(gathering.what, "the shards of 1 rank have to leave it, S/2 bytes each");
  const Bound scattering = bound_of(topology, CollectiveKind::reduce_scatter);
  EXPECT_EQ(scattering.time_per_byte, make_rational(1, 20));
  EXPECT_EQ(scattering.cut, std::vector<NodeId>{NodeId(0)});
  EXPECT_EQ(bound_of(topology, CollectiveKind::broadcast, Rank(0)).time_per_byte, make_rational(1, 25));
  EXPECT_EQ(bound_of(topology, CollectiveKind::broadcast, Rank(1)).time_per_byte, make_rational(1, 10));
  EXPECT_EQ(bound_of(topology, CollectiveKind::reduce, Rank(0)).time_per_byte, make_rational(1, 10));
  EXPECT_EQ(bound_of(topology, CollectiveKind::gather, Rank(0)).time_per_byte, make_rational(1, 20));
  EXPECT_EQ(bound_of(topology, CollectiveKind::scatter, Rank(0)).time_per_byte, make_rational(1, 50));
}

TEST(CutBound, OneRankHasNothingToMove) {
  const Topology topology = make_topology({1, 0, {}});
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::broadcast, CollectiveKind::reduce,
        CollectiveKind::gather, CollectiveKind::scatter}) {
    const Bound bound = bound_of(topology, kind);
    EXPECT_EQ(bound.time_per_byte, 0);
    EXPECT_TRUE(bound.cut.empty());
  }
  const auto floors = all_reduce_floors(topology);
  ASSERT_TRUE(floors);
  EXPECT_EQ(floors->best().time_per_byte, 0);
}

TEST(CutBound, NamesTheRanksThatCannotReachEachOther) {
  const Topology topology = make_topology({3, 0, {{0, 1, 1}, {1, 0, 1}, {0, 2, 1}}});
  const auto bound = cut_bound(topology, {CollectiveKind::all_gather, 3, Rank()});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::infeasible);
  EXPECT_EQ(bound.error().message, "rank r2 cannot reach rank r0");
  EXPECT_FALSE(all_reduce_floors(topology));
}

TEST(CutBound, RefusesWhatNoCutProves) {
  const auto bound = cut_bound(make_topology(uneven_pair()), {CollectiveKind::all_to_all, 2, Rank()});
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::unsupported);
}

TEST(CutBound, GathersThroughAnotherRank) {
  // A line 0 - 1 - 2 at rate 1: both shards enter rank 0 over one link.
  const Topology topology = make_topology({3, 0, {{0, 1, 1}, {1, 0, 1}, {1, 2, 1}, {2, 1, 1}}}, 1);
  EXPECT_EQ(bound_of(topology, CollectiveKind::gather, Rank(0)).time_per_byte, make_rational(2, 3));
  EXPECT_EQ(bound_of(topology, CollectiveKind::gather, Rank(1)).time_per_byte, make_rational(1, 3));
  EXPECT_EQ(bound_of(topology, CollectiveKind::scatter, Rank(2)).time_per_byte, make_rational(2, 3));
}

/// Four ranks on a switch at 10 units each, and what limits of single nodes do to that.
Topology star(std::int64_t switch_backplane, std::int64_t rank_backplane, bool computes) {
  std::vector<Node> nodes(5);
  std::vector<Link> links;
  for (std::size_t i = 0; i < 4; ++i) {
    nodes[i].id = "r" + std::to_string(i);
    links.push_back({NodeId(i), NodeId(4), {{10}}});
    links.push_back({NodeId(4), NodeId(i), {{10}}});
  }
  nodes[0].bandwidth = {rank_backplane};
  nodes[4].id = "s";
  nodes[4].kind = NodeKind::switch_node;
  nodes[4].is_rank = false;
  nodes[4].bandwidth = {switch_backplane};
  nodes[4].multicast = nodes[4].reduction = computes;
  return *Topology::make("star", std::move(nodes), std::move(links));
}

TEST(CutBound, CountsBackplanes) {
  // Free switch: three shards of S/4 enter each rank at 10.
  EXPECT_EQ(bound_of(star(0, 0, false), CollectiveKind::all_gather).time_per_byte, make_rational(3, 40));
  // A switch that lets 4 through: three ranks' shards leave them at 4 in all.
  EXPECT_EQ(bound_of(star(4, 0, false), CollectiveKind::all_gather).time_per_byte, make_rational(3, 16));
  EXPECT_EQ(bound_of(star(4, 0, false), CollectiveKind::reduce_scatter).time_per_byte, make_rational(3, 16));
  EXPECT_EQ(bound_of(star(4, 0, false), CollectiveKind::broadcast, Rank(0)).time_per_byte, make_rational(1, 4));
  // A rank of backplane 5 takes in three shards and gives out its own.
  const Bound rank_bound = bound_of(star(0, 5, false), CollectiveKind::all_gather);
  EXPECT_EQ(rank_bound.time_per_byte, make_rational(1, 5));
  EXPECT_EQ(rank_bound.cut, std::vector<NodeId>{NodeId(0)});
  EXPECT_EQ(bound_of(star(0, 5, false), CollectiveKind::reduce, Rank(0)).time_per_byte, make_rational(1, 5));
}

TEST(AllReduceFloors, StarOfFour) {
  // Pacing: S leaves a rank at 10. Messages: 6 S through 40. Reduce-scatter and all-gather: 3/40 each.
  const auto floors = all_reduce_floors(star(0, 0, false));
  ASSERT_TRUE(floors);
  EXPECT_EQ(floors->smallest_cut.time_per_byte, make_rational(1, 10));
  ASSERT_TRUE(floors->messages);
  EXPECT_EQ(floors->messages->time_per_byte, make_rational(6, 40));
  EXPECT_EQ(floors->best().time_per_byte, make_rational(6, 40));
  EXPECT_EQ(floors->reduce_scatter_all_gather, make_rational(6, 40));
  // With backplane 5, S enters and S leaves rank 0 through it.
  EXPECT_EQ(all_reduce_floors(star(0, 5, false))->smallest_cut.time_per_byte, make_rational(2, 5));
}

TEST(AllReduceFloors, SwitchesThatComputeNeedFewerMessages) {
  const auto floors = all_reduce_floors(star(0, 0, true));
  ASSERT_TRUE(floors);
  EXPECT_FALSE(floors->messages);
  EXPECT_EQ(floors->best().time_per_byte, make_rational(1, 10));
}

/// Two boxes of two ranks each around a switch that computes, at 10; each switch has a cable of 3 to a plain one.
TEST(AllReduceFloors, BoxesWhoseSwitchesComputeCountAsOneRank) {
  std::vector<Node> nodes(7);
  std::vector<Link> links;
  const auto add_cable = [&](std::size_t a, std::size_t b, std::int64_t rate) {
    links.push_back({NodeId(a), NodeId(b), {{rate}}});
    links.push_back({NodeId(b), NodeId(a), {{rate}}});
  };
  for (std::size_t i = 0; i < 7; ++i) {
    nodes[i].id = "n" + std::to_string(i);
    if (i < 4) continue;
    nodes[i].kind = NodeKind::switch_node;
    nodes[i].is_rank = false;
    nodes[i].multicast = nodes[i].reduction = i < 6;
    add_cable(i, i < 6 ? 2 * (i - 4) : 4, i < 6 ? 10 : 3);
    add_cable(i, i < 6 ? 2 * (i - 4) + 1 : 5, i < 6 ? 10 : 3);
  }
  const auto boxes = Topology::make("boxes", nodes, links);
  ASSERT_TRUE(boxes);
  const auto floors = all_reduce_floors(*boxes);
  ASSERT_TRUE(floors);
  // Two messages leave the boxes, over 3 + 3: no more than the smallest cut says.
  ASSERT_TRUE(floors->messages);
  EXPECT_EQ(floors->messages->time_per_byte, make_rational(2, 6));
  EXPECT_EQ(floors->smallest_cut.time_per_byte, make_rational(1, 3));
  EXPECT_EQ(floors->messages->what,
            "2 S bytes have to leave the 2 groups of ranks that switches join, counted one by one");
  // When the switch between them computes as well, there is one group; without ranks of its own it would be another.
  nodes[6].multicast = true;
  EXPECT_FALSE(all_reduce_floors(*Topology::make("boxes", nodes, links))->messages);
}

/// Three ranks, each with 10 to a switch that copies, and that with 1 to a plain switch.
TEST(AllReduceFloors, ThreeBoxesNeedFourMessages) {
  std::vector<Node> nodes(7);
  std::vector<Link> links;
  for (std::size_t i = 0; i < 7; ++i) {
    nodes[i].id = "n" + std::to_string(i);
    if (i < 3) continue;
    nodes[i].kind = NodeKind::switch_node;
    nodes[i].is_rank = false;
    nodes[i].multicast = i < 6;
    if (i == 6) continue;
    for (const auto& [other, rate] : {std::pair(i - 3, 10), std::pair(std::size_t{6}, 1)}) {
      links.push_back({NodeId(i), NodeId(other), {{rate}}});
      links.push_back({NodeId(other), NodeId(i), {{rate}}});
    }
  }
  const auto floors = all_reduce_floors(*Topology::make("boxes", nodes, links));
  ASSERT_TRUE(floors);
  EXPECT_EQ(floors->best().time_per_byte, make_rational(4, 3));
}

}  // namespace
}  // namespace espalier::planners
