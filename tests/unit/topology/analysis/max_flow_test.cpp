#include "topology/analysis/max_flow.h"

#include <gtest/gtest.h>
#include <lemon/preflow.h>
#include <lemon/smart_graph.h>

#include <array>

#include "base/random.h"

namespace espalier {
namespace {

TEST(MaxFlow, FindsTheFlowAndTheCutOfASmallGraph) {
  // 0 -> 1 -> 3 carries 2, 0 -> 2 -> 3 carries 3, 1 -> 2 lets one more through: 6 in all, the arcs into 3.
  MaxFlow<std::int64_t> flow(4);
  flow.add_arc(0, 1, 4);
  flow.add_arc(0, 2, 3);
  flow.add_arc(1, 2, 1);
  const auto last = flow.add_arc(1, 3, 2);
  flow.add_arc(2, 3, 4);
  EXPECT_EQ(flow.run(0, 3), 6);
  EXPECT_EQ(flow.flow(last), 2);
  EXPECT_EQ(flow.run(0, 3, 5), 5);
  EXPECT_EQ(flow.run(3, 0), 0);
  EXPECT_EQ(flow.run(0, 3), 6);
  const std::uint32_t source = 0;
  EXPECT_EQ(flow.source_side(std::span(&source, 1)), (std::vector<bool>{true, true, false, false}));
}

TEST(MaxFlow, GrowsAndChangesBetweenRuns) {
  MaxFlow<std::int64_t> flow(3);
  const auto first = flow.add_arc(0, 1, 5);
  flow.add_arc(1, 2, 3);
  EXPECT_EQ(flow.run(0, 2), 3);
  flow.add_arc(1, 2, 7);
  EXPECT_EQ(flow.run(0, 2), 5);
  flow.set_capacity(first, 9);
  EXPECT_EQ(flow.run(0, 2), 9);
}

TEST(MaxFlow, TakesSeveralSourcesAndSinks) {
  MaxFlow<std::int64_t> flow(5);
  flow.add_arc(0, 2, 1);
  flow.add_arc(1, 2, 2);
  flow.add_arc(2, 3, 10);
  flow.add_arc(2, 4, 10);
  flow.add_arc(0, 1, 100);  // between sources: carries nothing
  EXPECT_EQ(flow.run(std::array<std::uint32_t, 2>{0, 1}, std::array<std::uint32_t, 2>{3, 4}), 3);
  EXPECT_EQ(flow.run(std::array<std::uint32_t, 1>{0}, std::array<std::uint32_t, 2>{3, 4}), 3);
  EXPECT_EQ(flow.run(std::array<std::uint32_t, 2>{0, 2}, std::array<std::uint32_t, 1>{3}), 10);
}

TEST(MaxFlow, HoldsWideCapacities) {
  constexpr __int128 huge = static_cast<__int128>(1) << 100U;
  MaxFlow<__int128> flow(3);
  flow.add_arc(0, 1, huge);
  flow.add_arc(1, 2, huge - 1);
  EXPECT_TRUE(flow.run(0, 2) == huge - 1);
}

/// LEMON is the oracle: the same value, and a cut that proves it, on random graphs with parallel arcs.
TEST(MaxFlow, AgreesWithLemonOnRandomGraphs) {
  Random random(1);
  for (int round = 0; round < 2000; ++round) {
    const auto vertices = static_cast<std::uint32_t>(random.between(2, 14));
    MaxFlow<std::int64_t> flow(vertices);
    MaxFlow<__int128> wide(vertices);
    lemon::SmartDigraph graph;
    lemon::SmartDigraph::ArcMap<std::int64_t> capacities(graph);
    std::vector<lemon::SmartDigraph::Node> nodes;
    for (std::uint32_t i = 0; i < vertices; ++i) nodes.push_back(graph.addNode());
    for (std::uint64_t arcs = random.below(5U * vertices); arcs > 0; --arcs) {
      const auto tail = static_cast<std::uint32_t>(random.below(vertices));
      const auto head = static_cast<std::uint32_t>(random.below(vertices));
      const std::int64_t capacity = random.between(0, round % 2 == 0 ? 3 : std::int64_t{1} << 50U);
      if (tail == head) continue;
      flow.add_arc(tail, head, capacity);
      wide.add_arc(tail, head, capacity);
      capacities[graph.addArc(nodes[tail], nodes[head])] = capacity;
    }
    lemon::Preflow<lemon::SmartDigraph, lemon::SmartDigraph::ArcMap<std::int64_t>> oracle(graph, capacities, nodes[0],
                                                                                          nodes[1]);
    oracle.run();
    const std::int64_t value = flow.run(0, 1);
    ASSERT_EQ(value, oracle.flowValue());
    ASSERT_TRUE(wide.run(0, 1) == value);
    const std::uint32_t source = 0;
    const std::vector<bool> inside = flow.source_side(std::span(&source, 1));
    std::int64_t leaving = 0;
    std::vector<std::int64_t> excess(vertices, 0);
    for (std::uint32_t arc = 0; arc < flow.arc_count(); ++arc) {
      ASSERT_GE(flow.flow(arc), 0);
      ASSERT_LE(flow.flow(arc), flow.capacity(arc));
      excess[flow.tail(arc)] -= flow.flow(arc);
      excess[flow.head(arc)] += flow.flow(arc);
      if (inside[flow.tail(arc)] && !inside[flow.head(arc)]) leaving += flow.capacity(arc);
    }
    ASSERT_FALSE(inside[1]);
    ASSERT_EQ(leaving, value);
    ASSERT_EQ(excess[1], value);
    for (std::uint32_t i = 2; i < vertices; ++i) ASSERT_EQ(excess[i], 0);
    const std::int64_t limit = random.between(0, value + 2);
    ASSERT_EQ(flow.run(0, 1, limit), std::min(value, limit));
    // On top of what goes from 0 to 1, as much goes on from there as a run from 0 to both adds up to.
    const std::uint32_t third = vertices > 2 ? 2 : 0;
    if (third == 0) continue;
    ASSERT_EQ(flow.run(0, 1), value);
    const std::int64_t more = flow.run_more(1, third, value);
    ASSERT_EQ(more, std::min(value, wide.run(0, third) > value ? value : static_cast<std::int64_t>(wide.run(0, third))))
        << "round " << round;
  }
}

}  // namespace
}  // namespace espalier
