#include "planners/bounds/flow_bound.h"

#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "tests/support/planner_cases.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

Bound without_prices(const PricedBound& priced) { return priced.bound; }
Result<Bound> of_blocks(const Topology& topology) { return all_to_all_bound(topology).map(without_prices); }
Result<Bound> of_messages(const Topology& topology) { return send_recv_bound(topology).map(without_prices); }

using test::PlainGraph;

Rational all_to_all_time(const PlainGraph& graph) {
  const auto bound = of_blocks(test::make_topology(graph, 1));
  EXPECT_TRUE(bound) << bound.error().message;
  return bound->time_per_byte;
}

Rational send_recv_time(const PlainGraph& graph) {
  const auto bound = of_messages(test::make_topology(graph, 1));
  EXPECT_TRUE(bound) << bound.error().message;
  return bound->time_per_byte;
}

PlainGraph one_way_ring(std::size_t n) {
  PlainGraph ring{n, 0, {}};
  for (std::size_t i = 0; i < n; ++i) ring.edges.push_back({i, (i + 1) % n, 1});
  return ring;
}

PlainGraph complete(std::size_t n) {
  PlainGraph graph{n, 0, {}};
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      if (i != j) graph.edges.push_back({i, j, 1});
    }
  }
  return graph;
}

PlainGraph star(std::size_t n) {
  PlainGraph graph{n, 1, {}};
  for (std::size_t i = 0; i < n; ++i) {
    graph.edges.push_back({i, n, 1});
    graph.edges.push_back({n, i, 1});
  }
  return graph;
}

/// Blocks of S/N travel 1 + 2 + ... + (N-1) links from every rank, over N links: (N-1)/2 S at rate 1.
TEST(AllToAllBound, OneWayRing) {
  for (std::size_t n = 2; n <= 9; ++n) {
    EXPECT_EQ(all_to_all_time(one_way_ring(n)), Rational(BigInteger(n - 1), BigInteger(2)));
  }
}

/// Every link carries its own block; a star's links carry N-1 blocks.
TEST(AllToAllBound, CompleteGraphAndStar) {
  for (std::size_t n = 2; n <= 8; ++n) {
    EXPECT_EQ(all_to_all_time(complete(n)), Rational(BigInteger(1), BigInteger(n)));
    EXPECT_EQ(all_to_all_time(star(n)), Rational(BigInteger(n - 1), BigInteger(n)));
  }
}

TEST(AllToAllBound, NamesTheCutThatProvesIt) {
  // Two pairs, joined by one cable: 2 x 2 blocks of S/4 cross it each way.
  PlainGraph pairs{4, 0, {}};
  for (const auto& [a, b, capacity] : {std::tuple{0, 1, 10}, {2, 3, 10}, {1, 2, 1}}) {
    pairs.edges.push_back({static_cast<std::size_t>(a), static_cast<std::size_t>(b), capacity});
    pairs.edges.push_back({static_cast<std::size_t>(b), static_cast<std::size_t>(a), capacity});
  }
  const auto bound = of_blocks(test::make_topology(pairs, 1));
  ASSERT_TRUE(bound);
  EXPECT_EQ(bound->time_per_byte, Rational(1));
  EXPECT_EQ(bound->cut.size(), 2U);
  EXPECT_EQ(bound->what, "4 blocks of S/4 bytes have to leave it");
}

/// On a duplex ring a rank's buffer goes the short way at rate 1 or, in part, the long way round: all N ranks send x
/// the short way and 1-x the other, N-1 links each, so x = (N-1)(1-x) and the time is (N-1)/N.
TEST(SendRecvBound, Rings) {
  for (std::size_t n = 3; n <= 8; ++n) {
    PlainGraph ring = one_way_ring(n);
    EXPECT_EQ(send_recv_time(ring), Rational(1));
    for (std::size_t i = 0; i < n; ++i) ring.edges.push_back({(i + 1) % n, i, 1});
    EXPECT_EQ(send_recv_time(ring), Rational(BigInteger(n - 1), BigInteger(n)));
  }
}

/// Two ranks: each sends S to the other.
TEST(SendRecvBound, TwoRanksAndOne) {
  EXPECT_EQ(send_recv_time(complete(2)), Rational(1));
  EXPECT_EQ(send_recv_time({1, 0, {}}), Rational(0));
  EXPECT_EQ(all_to_all_time({1, 0, {}}), Rational(0));
}

/// Four ranks whose traffic all passes one backplane of 1: 12 blocks of S/4.
TEST(AllToAllBound, CountsABackplane) {
  const Topology plain = test::make_topology(star(4), 100);
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  nodes[4].bandwidth = {1};
  const auto limited = Topology::make("limited", nodes, {plain.links().begin(), plain.links().end()});
  EXPECT_EQ(of_blocks(*limited)->time_per_byte, Rational(3));
}

/// Past the size limit the answer is a floor and says so.
TEST(AllToAllBound, LargeNetworksGetAFloor) {
  const auto bound = of_blocks(*generate_random({.ranks = 520, .extra = 1000, .seed = 3}));
  ASSERT_TRUE(bound);
  EXPECT_GT(bound->time_per_byte, Rational(0));
  EXPECT_NE(bound->what.find("a floor"), std::string::npos) << bound->what;
}

/// Many unlike ranks: a line, halved by its middle cable, which 100 x 100 blocks of S/200 pass at rate 1.
TEST(AllToAllBound, ManyUnlikeRanks) {
  constexpr std::size_t ranks = 200;
  PlainGraph line{ranks, 0, {}};
  for (std::size_t i = 0; i + 1 < ranks; ++i) {
    line.edges.push_back({i, i + 1, 1});
    line.edges.push_back({i + 1, i, i == 0 ? 2 : 1});
  }
  const auto bound = of_blocks(test::make_topology(line, 1));
  ASSERT_TRUE(bound);
  EXPECT_LE(bound->time_per_byte, Rational(50));
  EXPECT_GE(bound->time_per_byte * 101, Rational(50 * 100));
}

TEST(ComputeBound, AnswersEveryCollective) {
  const Topology topology = test::make_topology(star(4), 1);
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto collective = make_collective(kind, 4, std::nullopt);
    ASSERT_TRUE(collective);
    const auto bound = compute_bound(topology, *collective);
    ASSERT_TRUE(bound) << to_string(kind);
    EXPECT_GT(bound->time_per_byte, Rational(0)) << to_string(kind);
    EXPECT_FALSE(bound->what.empty()) << to_string(kind);
  }
}

TEST(ComputeBound, EveryCollectiveNamesUnreachableRanks) {
  const Topology topology = test::make_topology({2, 0, {{0, 1, 1}}});
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto bound = compute_bound(topology, *make_collective(kind, 2, std::nullopt));
    ASSERT_FALSE(bound) << to_string(kind);
    EXPECT_EQ(bound.error().code, ErrorCode::infeasible);
  }
}

}  // namespace
}  // namespace espalier::planners
