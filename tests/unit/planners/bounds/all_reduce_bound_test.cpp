#include "planners/bounds/all_reduce_bound.h"

#include <gtest/gtest.h>

#include "tests/support/planner_cases.h"

namespace espalier::planners {
namespace {

using test::PlainGraph;

PlainGraph duplex(std::size_t ranks, std::size_t switches, const std::vector<PlainGraph::Edge>& cables) {
  PlainGraph graph{ranks, switches, {}};
  for (const auto& cable : cables) {
    graph.edges.push_back(cable);
    graph.edges.push_back({cable.head, cable.tail, cable.capacity});
  }
  return graph;
}

AllReduceBounds bounds_of(const Topology& topology) {
  auto bounds = all_reduce_bounds(topology);
  EXPECT_TRUE(bounds) << bounds.error().message;
  return *bounds;
}

AllReduceBounds bounds_of(const PlainGraph& graph) { return bounds_of(test::make_topology(graph, 1)); }

/// A duplex ring of N ranks: N-1 of its N cables make a tree; each cable may be left out of 1/N of the data, so each
/// carries (N-1)/N S up and as much down, each way at rate 1.
TEST(AllReduceBound, DuplexRing) {
  for (std::size_t n = 3; n <= 9; ++n) {
    std::vector<PlainGraph::Edge> cables;
    for (std::size_t i = 0; i < n; ++i) cables.push_back({i, (i + 1) % n, 1});
    const AllReduceBounds bounds = bounds_of(duplex(n, 0, cables));
    EXPECT_EQ(bounds.best.time_per_byte, Rational(BigInteger(n - 1), BigInteger(n)));
    EXPECT_TRUE(bounds.optimal_in_class);
  }
}

/// A ring of one-way links: every tree is the whole ring but one link, there and on: 2(N-1)/N.
TEST(AllReduceBound, OneWayRing) {
  for (std::size_t n = 2; n <= 9; ++n) {
    PlainGraph ring{n, 0, {}};
    for (std::size_t i = 0; i < n; ++i) ring.edges.push_back({i, (i + 1) % n, 1});
    EXPECT_EQ(bounds_of(ring).best.time_per_byte, Rational(BigInteger(2 * (n - 1)), BigInteger(n)));
  }
}

/// Everyone joined to everyone: 2(N-1) messages over N(N-1) links.
TEST(AllReduceBound, CompleteGraph) {
  for (std::size_t n = 2; n <= 8; ++n) {
    std::vector<PlainGraph::Edge> cables;
    for (std::size_t i = 0; i < n; ++i) {
      for (std::size_t j = i + 1; j < n; ++j) cables.push_back({i, j, 1});
    }
    EXPECT_EQ(bounds_of(duplex(n, 0, cables)).best.time_per_byte, Rational(BigInteger(2), BigInteger(n)));
  }
}

/// N ranks on one switch: 2(N-1) messages leave the ranks over N links.
TEST(AllReduceBound, Star) {
  for (std::size_t n = 2; n <= 8; ++n) {
    std::vector<PlainGraph::Edge> cables;
    for (std::size_t i = 0; i < n; ++i) cables.push_back({i, n, 1});
    EXPECT_EQ(bounds_of(duplex(n, 1, cables)).best.time_per_byte, Rational(BigInteger(2 * (n - 1)), BigInteger(n)));
  }
}

/// A line: there is one tree, and it uses every cable once each way. Reduce-scatter + all-gather takes 2(N-1)/N.
TEST(AllReduceBound, LineIsFasterThanReduceScatterAllGather) {
  const AllReduceBounds bounds = bounds_of(duplex(4, 0, {{0, 1, 1}, {1, 2, 1}, {2, 3, 1}}));
  EXPECT_EQ(bounds.best.time_per_byte, Rational(1));
  EXPECT_EQ(bounds.floors.reduce_scatter_all_gather, make_rational(3, 2));
  EXPECT_TRUE(bounds.optimal_in_class);
}

TEST(AllReduceBound, OneRankMovesNothing) {
  const AllReduceBounds bounds = bounds_of(PlainGraph{1, 0, {}});
  EXPECT_EQ(bounds.best.time_per_byte, Rational(0));
  EXPECT_TRUE(bounds.optimal_in_class);
}

TEST(AllReduceBound, NamesRanksThatCannotReachEachOther) {
  const auto bounds = all_reduce_bounds(test::make_topology({2, 0, {{0, 1, 1}}}));
  ASSERT_FALSE(bounds);
  EXPECT_EQ(bounds.error().code, ErrorCode::infeasible);
  EXPECT_NE(bounds.error().message.find("r1"), std::string::npos);
  EXPECT_NE(bounds.error().message.find("r0"), std::string::npos);
}

/// Three ranks on a switch that lets 1 S/s through, links of 10: each of the 2(N-1) = 4 messages passes it.
TEST(AllReduceBound, CountsASwitchsBackplane) {
  const Topology plain = test::make_topology(duplex(3, 1, {{0, 3, 10}, {1, 3, 10}, {2, 3, 10}}), 1);
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  nodes[3].bandwidth = {1};
  const auto limited = Topology::make("limited", nodes, {plain.links().begin(), plain.links().end()});
  EXPECT_EQ(bounds_of(*limited).best.time_per_byte, Rational(4));
}

/// A switch that adds and copies lets every rank send and receive S once: 1, not 2(N-1)/N.
TEST(AllReduceBound, SwitchesThatComputeLeaveOnlyTheSmallestCut) {
  const Topology plain = test::make_topology(duplex(3, 1, {{0, 3, 1}, {1, 3, 1}, {2, 3, 1}}), 1);
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  nodes[3].multicast = nodes[3].reduction = true;
  const auto computing = Topology::make("computing", nodes, {plain.links().begin(), plain.links().end()});
  EXPECT_EQ(bounds_of(*computing).best.time_per_byte, Rational(1));
  EXPECT_FALSE(bounds_of(*computing).optimal_in_class);
  EXPECT_EQ(bounds_of(plain).best.time_per_byte, make_rational(4, 3));
}

}  // namespace
}  // namespace espalier::planners
