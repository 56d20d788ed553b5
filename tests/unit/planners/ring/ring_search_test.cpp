#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/random.h"
#include "planners/ring/disjoint_cycles.h"
#include "planners/ring/held_karp.h"
#include "planners/ring/negotiated_rings.h"
#include "planners/ring/ring_limit.h"
#include "planners/ring/tiled_rings.h"
#include "tests/support/networks/real_machines.h"
#include "tests/support/ring_checks.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::giga;

template <class Price>
Price cost_of(const std::vector<Price>& cost, const std::vector<std::uint32_t>& order) {
  Price sum(0);
  for (std::size_t i = 0; i < order.size(); ++i) {
    sum += cost[order[i] * order.size() + order[(i + 1) % order.size()]];
  }
  return sum;
}

/// By trying all orders.
template <class Price>
Price min_cost(const std::vector<Price>& cost, std::uint32_t n) {
  std::vector<std::uint32_t> order(n);
  std::iota(order.begin(), order.end(), 0U);
  Price least = cost_of(cost, order);
  while (std::next_permutation(order.begin() + 1, order.end())) least = std::min(least, cost_of(cost, order));
  return least;
}

TEST(HeldKarp, FindsTheCheapestCycle) {
  Random random(5);
  for (std::uint32_t n = 2; n <= 8; ++n) {
    for (const int digits : {0, 100}) {  // machine integers, and numbers past them
      std::vector<double> small(n * n);
      std::vector<BigInteger> large(n * n);
      for (std::size_t i = 0; i < small.size(); ++i) {
        const std::int64_t cost = i % (n + 1) == 0 ? 0 : random.between(0, 20);
        small[i] = static_cast<double>(cost);
        large[i] = BigInteger(cost) << digits;
      }
      const std::vector<std::uint32_t> order = cheapest_cycle(small, n);
      EXPECT_EQ(order.front(), 0U);
      EXPECT_EQ(std::set<std::uint32_t>(order.begin(), order.end()).size(), n);
      EXPECT_EQ(cost_of(small, order), min_cost(small, n));
      EXPECT_EQ(cost_of(large, cheapest_cycle(large, n)), min_cost(large, n));
      for (const std::vector<std::uint32_t>& cheap : cheap_cycles(small, n)) {
        EXPECT_EQ(std::set<std::uint32_t>(cheap.begin(), cheap.end()).size(), n);
        EXPECT_GE(cost_of(small, cheap), cost_of(small, order));
      }
    }
  }
}

/// A circle along which all arcs are free and all others are not.
TEST(HeldKarp, FollowsAHiddenCircleOfSixteen) {
  constexpr std::uint32_t n = 16;
  std::vector<double> cost(n * n, 1);
  for (std::uint32_t i = 0; i < n; ++i) cost[(i * 5 % n) * n + (i + 1) * 5 % n] = 0;
  EXPECT_EQ(cost_of(cost, cheapest_cycle(cost, n)), 0);
}

ArcCounts all_arcs(std::size_t vertices) { return ArcCounts(vertices, std::vector<std::uint32_t>(vertices, 1)); }

// The complete directed graph of n splits into n - 1 cycles for all n but 4 and 6 (Tillson 1980); of four vertices the
// search sees all there is and finds two.
TEST(DisjointCycles, SplitCompleteGraphs) {
  for (const std::size_t n : {2U, 3U, 5U, 7U, 8U, 12U}) {
    WorkBudget work(1 << 18);
    const auto cycles = find_disjoint_cycles(all_arcs(n), n - 1, work);
    ASSERT_EQ(cycles.size(), n - 1);
    std::set<std::pair<std::uint32_t, std::uint32_t>> arcs;
    for (const auto& cycle : cycles) {
      ASSERT_EQ(cycle.size(), n);
      for (std::size_t i = 0; i < n; ++i) EXPECT_TRUE(arcs.emplace(cycle[i], cycle[(i + 1) % n]).second);
    }
  }
  WorkBudget work(1 << 18);
  EXPECT_TRUE(find_disjoint_cycles(all_arcs(4), 3, work).empty());
  EXPECT_GT(work.left(), 0);
  EXPECT_EQ(find_disjoint_cycles(all_arcs(4), 2, work).size(), 2U);
}

TEST(DisjointCycles, StopsWhenItsWorkIsDone) {
  WorkBudget work(100);
  EXPECT_TRUE(find_disjoint_cycles(all_arcs(16), 15, work).empty());
}

// Eight NICs of 50 GB/s per box: eight rings settle on one each, nine cannot.
TEST(NegotiatedRings, ShareNics) {
  const Topology boxes = *generate_rail_boxes({.boxes = 2, .rails = 1});
  WorkBudget work(2000);
  const auto rings = negotiate_rings(boxes, make_rational(50 * giga), 8, work);
  ASSERT_TRUE(rings.has_value());
  EXPECT_EQ(rings->rate(), make_rational(400 * giga));
  EXPECT_FALSE(negotiate_rings(boxes, make_rational(50 * giga), 9, work).has_value());
}

TEST(TiledRings, DrawTwoMachinesOutOverMany) {
  for (const std::int64_t boxes : {4, 6}) {
    const Topology topology = *generate_rail_boxes({.boxes = boxes});
    const RankGroups groups = group_ranks(topology);
    const MachinePair pair = first_pair(topology, groups);
    EXPECT_EQ(pair.topology.rank_count(), 16U);
    RingSet set;
    set.rings = tile_rings(topology, groups, pair, find_rings(pair.topology));
    set.limit = ring_limit(topology);
    EXPECT_EQ(set.rate(), make_rational(400 * giga));
    test::expect_sound(topology, set);
  }
}

// Every set of rings leaves each box over its NICs, and each rank's backplane is passed on the way in and out.
TEST(RingLimit, CountsCutsAndBackplanes) {
  EXPECT_EQ(ring_limit(test::dgx1v_nvlinks(true)), make_rational(110 * giga));
  EXPECT_EQ(ring_limit(*generate_rail_boxes({.boxes = 3})), make_rational(400 * giga));
  const Topology star = test::star_of(3);
  std::vector<Node> nodes(star.nodes().begin(), star.nodes().end());
  nodes[1].bandwidth = {30 * giga};
  const Topology limited = *Topology::make("limited", nodes, {star.links().begin(), star.links().end()});
  EXPECT_EQ(ring_limit(limited), make_rational(15 * giga));
  EXPECT_EQ(find_rings(limited).rate(), make_rational(15 * giga));
}

}  // namespace
}  // namespace espalier::planners
