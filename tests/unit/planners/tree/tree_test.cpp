#include "planners/tree/tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <set>

#include "planners/tree/edge_forests.h"
#include "planners/tree/spanning_tree.h"
#include "planners/tree/two_tree.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/real_machines.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::dgx1v_nvlinks;
using test::line_of;
using test::star_of;

using test::giga;

Rational busbw_of_trees(const Topology& topology, CollectiveKind kind) {
  const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt);
  const Result<Schedule> schedule = plan_tree(topology, collective);
  EXPECT_TRUE(schedule.has_value());
  EXPECT_TRUE(verify(*schedule, topology).ok());
  return collective.busbw_factor() / compute_loads(*schedule, topology).time_per_byte;
}

std::vector<std::size_t> child_counts(const std::vector<std::size_t>& parents) {
  std::vector<std::size_t> counts(parents.size(), 0);
  for (std::size_t place = 1; place < parents.size(); ++place) ++counts[parents[place]];
  return counts;
}

std::size_t depth_of(const std::vector<std::size_t>& parents, std::size_t place) {
  std::size_t depth = 0;
  for (; place != 0 && depth <= parents.size(); place = parents[place]) ++depth;
  return depth;
}

// What makes two trees with half the data each run at full bandwidth: no place has children in both, none has more than
// two, and the source has one child in each. Depth is logarithmic.
TEST(TwoTree, EveryPlaceIsALeafOfOneTree) {
  for (std::size_t n = 1; n <= 300; ++n) {
    const TwoTree trees = make_two_tree(n);
    const std::vector<std::size_t> first = child_counts(trees.first);
    const std::vector<std::size_t> second = child_counts(trees.second);
    for (std::size_t place = 1; place < n; ++place) {
      EXPECT_TRUE(first[place] == 0 || second[place] == 0) << n << " places, place " << place;
      EXPECT_LE(first[place] + second[place], 2U);
      EXPECT_LE(depth_of(trees.first, place), static_cast<std::size_t>(std::bit_width(n - 1))) << n;
      EXPECT_LE(depth_of(trees.second, place), static_cast<std::size_t>(std::bit_width(n - 1))) << n;
    }
    if (n > 1) {
      EXPECT_EQ(first[0], 1U);
      EXPECT_EQ(second[0], 1U);
    }
  }
}

void expect_trees(std::size_t vertices, const std::vector<PlainEdge>& edges, std::size_t count, bool possible) {
  const std::vector<std::uint32_t> roots(count, 0);
  const auto trees = split_into_trees(vertices, edges, roots);
  ASSERT_EQ(trees.size(), possible ? count : 0U);
  std::set<std::uint32_t> used;
  for (const auto& tree : trees) {
    EXPECT_EQ(tree.size(), vertices - 1);
    std::vector<std::uint32_t> component(vertices);
    for (std::uint32_t i = 0; i < vertices; ++i) component[i] = i;
    for (const std::uint32_t edge : tree) {
      EXPECT_TRUE(used.insert(edge).second);
      const std::uint32_t from = component[edges[edge].a];
      const std::uint32_t to = component[edges[edge].b];
      EXPECT_NE(from, to) << "a tree has no cycle";
      std::replace(component.begin(), component.end(), from, to);
    }
  }
}

// A graph has k disjoint spanning trees if and only if every partition of its vertices into p parts is crossed by at
// least k(p-1) edges (Nash-Williams, Tutte 1961): complete graphs of n vertices have floor(n/2).
TEST(EdgeForests, SplitsCompleteGraphs) {
  for (std::uint32_t n = 2; n <= 9; ++n) {
    std::vector<PlainEdge> edges;
    for (std::uint32_t a = 0; a < n; ++a) {
      for (std::uint32_t b = a + 1; b < n; ++b) edges.push_back({a, b});
    }
    expect_trees(n, edges, n / 2, true);
    expect_trees(n, edges, n / 2 + 1, false);
  }
}

// Cliques of eight on a chain of single edges have two disjoint spanning trees inside each and one across. What finds
// no room is known to find none later: 39,200 parallel edges inside the cliques take no search each.
TEST(EdgeForests, EdgesBetweenVerticesThatAllTreesSpanAreNotTriedAgain) {
  constexpr std::uint32_t cliques = 20, size = 8, copies = 70;
  std::vector<PlainEdge> edges;
  for (std::uint32_t copy = 0; copy < copies; ++copy) {
    for (std::uint32_t c = 0; c < cliques; ++c) {
      for (std::uint32_t a = 0; a < size; ++a) {
        for (std::uint32_t b = a + 1; b < size; ++b) edges.push_back({c * size + a, c * size + b});
      }
    }
  }
  for (std::uint32_t c = 1; c < cliques; ++c) edges.push_back({(c - 1) * size, c * size});
  expect_trees(cliques * size, edges, 1, true);
  expect_trees(cliques * size, edges, 2, false);
}

// Two triangles joined by one edge: enough edges for one tree only, however they are counted.
TEST(EdgeForests, NoticesABridge) {
  const std::vector<PlainEdge> edges = {{0, 1}, {1, 2}, {2, 0}, {0, 1}, {1, 2}, {3, 4},
                                        {4, 5}, {5, 3}, {3, 4}, {4, 5}, {0, 3}};
  expect_trees(6, edges, 1, true);
  expect_trees(6, edges, 2, false);
}

// 24 NVLinks hold floor(24 / 7) = 3 disjoint trees of 22 GB/s: all_reduce of S in S/66 GB/s, busbw 66 x 2 x 7/8. One
// lost link leaves 23 links, still enough.
TEST(Tree, FindsThreeDisjointTreesInADgx1v) {
  for (const bool damaged : {false, true}) {
    EXPECT_EQ(busbw_of_trees(dgx1v_nvlinks(damaged), CollectiveKind::all_reduce), make_rational(66 * giga * 14, 8));
    EXPECT_EQ(busbw_of_trees(dgx1v_nvlinks(damaged), CollectiveKind::broadcast), make_rational(66 * giga));
  }
}

// The double binary tree broadcasts at the full rate of a port.
TEST(Tree, BroadcastsAtFullRateThroughASwitch) {
  for (const std::size_t ranks : {2U, 3U, 8U, 17U, 72U}) {
    EXPECT_EQ(busbw_of_trees(star_of(ranks), CollectiveKind::broadcast), make_rational(25 * giga));
    EXPECT_EQ(busbw_of_trees(star_of(ranks), CollectiveKind::reduce), make_rational(25 * giga));
  }
}

// Eight rails of 50 GB/s: all of them carry a broadcast.
TEST(Tree, UsesEveryRail) {
  for (const std::int64_t boxes : {2, 3, 4, 8}) {
    EXPECT_EQ(busbw_of_trees(*generate_rail_boxes({.boxes = boxes}), CollectiveKind::broadcast),
              make_rational(400 * giga));
  }
}

/// Ranks with a port on each of several switches that know nothing of each other.
Topology planes_of(std::size_t ranks, std::size_t planes) {
  test::FabricMaker maker;
  std::vector<NodeId> gpus;
  for (std::size_t i = 0; i < ranks; ++i) gpus.push_back(maker.add_rank());
  for (std::size_t plane = 0; plane < planes; ++plane) {
    const NodeId hub = maker.add_switch();
    for (const NodeId gpu : gpus) maker.add_cable(gpu, hub);
  }
  return maker.build("planes");
}

// Six planes of 25 GB/s: a pair of trees on each carries a broadcast at the full 150. In all_reduce every rank receives
// all data twice, in one tree from its children and its parent, in the other from its parent: 75 GB/s of S.
TEST(Tree, UsesEveryPlaneOfSwitches) {
  const Topology planes = planes_of(16, 6);
  EXPECT_EQ(busbw_of_trees(planes, CollectiveKind::broadcast), make_rational(150 * giga));
  EXPECT_EQ(busbw_of_trees(planes, CollectiveKind::all_reduce), make_rational(75 * giga * 30, 16));
}

TEST(Tree, StaysShallow) {
  const Topology boxes = *generate_rail_boxes({.boxes = 16});
  const RankGroups groups = group_ranks(boxes);
  const LogicalGraph graph(boxes, Bytes{1 << 18}, 1);
  const SpanningTrees trees = double_trees({boxes, groups, graph, Rank()}, Inside::star);
  ASSERT_EQ(trees.size(), 16U);
  // At most 4 + 1 machines deep, and one step inside the last.
  for (const SpanningTree& tree : trees) EXPECT_LE(height(tree, tree.centre), 6U);
}

TEST(Tree, HangsUpByAnyRank) {
  const Topology line = line_of(5);
  const RankGroups groups = group_ranks(line);
  const LogicalGraph graph(line, Bytes{1 << 18}, 1);
  const SpanningTrees trees = disjoint_trees({line, groups, graph, Rank()});
  ASSERT_EQ(trees.size(), 1U);
  EXPECT_EQ(trees[0].centre, Rank(2));
  EXPECT_EQ(height(trees[0], Rank(0)), 4U);
  EXPECT_EQ(height(trees[0], Rank(2)), 2U);
  const Arborescence in_tree = orient(trees[0], Rank(4), false);
  EXPECT_EQ(in_tree.edges.front().parent, Rank(4));
  EXPECT_EQ(line.link(in_tree.edges.front().links.front()).tail, line.node_of(Rank(3)));
}

TEST(Tree, RefusesLinksInOneDirection) {
  const Topology ring = *generate_ring({.ranks = 5, .one_way = true});
  const auto refused = plan_tree(ring, *make_collective(CollectiveKind::all_reduce, 5, std::nullopt));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_NE(refused.error().help.find("packing"), std::string::npos);
}

/// Ranks of unlike rates below one switch: 20 of 25 GB/s, 10 of 50 and 10 of 100, the slow ones first. A tree of 25
/// GB/s has 39 branches, of which each takes 25 GB/s both ways at its two ends: 78 of the 80 that the ranks have
/// together. The slow ranks are leaves then. No plan exceeds 25 GB/s, as a slow rank has to receive the whole result.
TEST(ThickTree, FillsRanksOfUnlikeRates) {
  test::FabricMaker maker;
  const std::vector<NodeId> nodes = test::detail::add_ranks(maker, 40);
  const NodeId centre = maker.add_switch();
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    const std::int64_t rate = i < 20 ? 25 : i < 30 ? 50 : 100;
    maker.add_cable(nodes[i], centre, Bandwidth{rate * giga}, test::fabric_latency);
  }
  const Topology topology = maker.build("unlike-rates");
  EXPECT_EQ(busbw_of_trees(topology, CollectiveKind::all_reduce), Rational(2 * 39 * 25, 40) * 1'000'000'000);
}

}  // namespace
}  // namespace espalier::planners
