#include "topology/analysis/bisection.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

constexpr std::int64_t cable_rate = 25'000'000'000;

/// The bisection in links of `cable_rate`.
std::int64_t links_across(const Topology& topology) {
  const auto found = find_bisection(topology);
  EXPECT_EQ(found->bandwidth.bytes_per_second % cable_rate, 0);
  return found->bandwidth.bytes_per_second / cable_rate;
}

TEST(Bisection, ClosedForms) {
  // A ring is cut twice, a line once.
  EXPECT_EQ(links_across(*generate_ring({.ranks = 9})), 2);
  EXPECT_EQ(links_across(*generate_ring({.ranks = 64})), 2);
  EXPECT_EQ(links_across(*generate_mesh({.dims = {10}})), 1);
  // A torus is cut across its longest dimension, twice: 2 x the product of the others.
  EXPECT_EQ(links_across(*generate_torus({.dims = {4, 4}})), 2 * 4);
  EXPECT_EQ(links_across(*generate_torus({.dims = {4, 4, 4}})), 2 * 16);
  EXPECT_EQ(links_across(*generate_torus({.dims = {4, 8, 3}})), 2 * 12);
  EXPECT_EQ(links_across(*generate_mesh({.dims = {8, 8}})), 8);
  // Hypercube: N/2. Full mesh: (N/2)^2, and for odd N the product of the halves.
  EXPECT_EQ(links_across(*generate_hypercube({.dimensions = 4})), 8);
  EXPECT_EQ(links_across(*generate_hypercube({.dimensions = 6})), 32);
  EXPECT_EQ(links_across(*generate_fully_connected({.ranks = 7})), 3 * 4);
  EXPECT_EQ(links_across(*generate_fully_connected({.ranks = 20})), 100);
  // A fat tree lets half of the ranks send at full cable_rate; k = 4 with 3:1 has 48 ranks and a third of that.
  EXPECT_EQ(links_across(*generate_fat_tree({.k = 4})), 8);
  EXPECT_EQ(links_across(*generate_fat_tree({.k = 6})), 27);
  EXPECT_EQ(links_across(*generate_fat_tree({.k = 4, .oversubscription = 3})), 8);
  EXPECT_EQ(links_across(*generate_leaf_spine({.leaves = 4, .ranks_per_leaf = 4, .oversubscription = 4})), 2);
  EXPECT_EQ(links_across(*generate_leaf_spine({.leaves = 16, .ranks_per_leaf = 4, .oversubscription = 2})), 16);
  EXPECT_FALSE(find_bisection(*generate_random({.ranks = 1})));
}

TEST(Bisection, NamesTheCut) {
  const auto boxes = generate_rail_boxes({.boxes = 2, .gpus_per_box = 4, .rails = 4});
  const auto found = find_bisection(*boxes);
  EXPECT_TRUE(found->exact);
  // Four NICs of 50 GB/s lead out of a box.
  EXPECT_EQ(found->bandwidth.bytes_per_second, 4 * 50'000'000'000);
  EXPECT_EQ(found->senders, (std::vector<Rank>{Rank(0), Rank(1), Rank(2), Rank(3)}));
  ASSERT_EQ(found->cut.size(), 4U);
  for (const LinkId link : found->cut) EXPECT_EQ(boxes->link(link).link_class, "nic");
}

TEST(Bisection, CountsBackplanes) {
  const auto star = generate_leaf_spine({.leaves = 2, .ranks_per_leaf = 2, .spines = 1});
  std::vector<Node> nodes(star->nodes().begin(), star->nodes().end());
  const NodeId spine = star->find_node("spine0");
  nodes[spine.index()].bandwidth = {1000};
  const auto limited = Topology::make("limited", nodes, {star->links().begin(), star->links().end()});
  const auto found = find_bisection(*limited);
  EXPECT_EQ(found->bandwidth.bytes_per_second, 1000);
  EXPECT_EQ(found->backplanes, std::vector<NodeId>{spine});
  EXPECT_TRUE(found->cut.empty());
}

TEST(Bisection, TakesTheWeakerDirection) {
  const auto ring = generate_ring({.ranks = 6, .one_way = true});
  EXPECT_EQ(links_across(*ring), 1);
  // Two ranks, 3 one way and 2 back: the worst half is the one with 2.
  std::vector<Node> pair(2);
  pair[0].id = "a";
  pair[1].id = "b";
  const auto uneven = Topology::make(
      "uneven", pair, {{NodeId(0), NodeId(1), {.nominal = {3}}}, {NodeId(1), NodeId(0), {.nominal = {2}}}});
  EXPECT_EQ(find_bisection(*uneven)->bandwidth.bytes_per_second, 2);
  EXPECT_EQ(find_bisection(*uneven)->senders, std::vector<Rank>{Rank(1)});
}

/// The minimum over all balanced rank halves and all placements of the other nodes.
__int128 brute_force(const Topology& topology) {
  const std::size_t count = topology.node_count();
  const std::size_t half = topology.rank_count() / 2;
  __int128 least = -1;
  for (std::uint32_t side = 0; side < (1U << count); ++side) {
    std::size_t ranks = 0;
    for (std::size_t i = 0; i < topology.rank_count(); ++i) ranks += side >> topology.node_of(Rank(i)).index() & 1U;
    if (ranks != half && ranks != topology.rank_count() - half) continue;
    __int128 across = 0;
    for (const Link& link : topology.links()) {
      const bool leaves = (side >> link.tail.index() & 1U) != 0 && (side >> link.head.index() & 1U) == 0;
      if (leaves) across += link.bandwidth().bytes_per_second;
    }
    if (least < 0 || across < least) least = across;
  }
  return least;
}

TEST(Bisection, EqualsBruteForceOnSmallGraphs) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const auto graph = generate_random({.ranks = 2 + static_cast<std::int64_t>(seed % 7),
                                        .switches = static_cast<std::int64_t>(seed % 4),
                                        .extra = static_cast<std::int64_t>(seed % 12),
                                        .one_way = seed % 2 == 0,
                                        .balanced = seed % 3 == 0,
                                        .seed = seed});
    const auto found = find_bisection(*graph);
    EXPECT_TRUE(found->exact);
    EXPECT_TRUE(found->bandwidth.bytes_per_second == brute_force(*graph)) << graph->name();
    __int128 cut = 0;
    for (const LinkId link : found->cut) cut += graph->link(link).bandwidth().bytes_per_second;
    EXPECT_TRUE(found->bandwidth.bytes_per_second == cut);
    EXPECT_EQ(cut_between_halves(*graph, found->senders).bandwidth, found->bandwidth);
  }
}

TEST(Bisection, FindsThePlantedCutInALargeGraph) {
  // 2 x 20 ranks, each half a random tree with a dozen more cables, joined by 2: the names are mixed.
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    Random random(seed);
    std::vector<std::size_t> order(40);
    for (std::size_t i = 0; i < 40; ++i) order[i] = i;
    for (std::size_t i = 39; i > 0; --i) std::swap(order[i], order[random.below(i + 1)]);
    std::vector<Node> nodes(40);
    for (std::size_t i = 0; i < 40; ++i) nodes[i].id = "n" + std::to_string(i);
    std::vector<Link> links;
    const auto join = [&](std::size_t a, std::size_t b) {
      links.push_back({NodeId(order[a]), NodeId(order[b]), {.nominal = {cable_rate}}});
      links.push_back({NodeId(order[b]), NodeId(order[a]), {.nominal = {cable_rate}}});
    };
    for (const std::size_t first : {0U, 20U}) {
      for (std::size_t i = 0; i < 20; ++i) {
        for (const std::size_t step : {1U, 2U, 5U}) join(first + i, first + (i + step) % 20);
      }
    }
    join(3, 27);
    join(11, 35);
    EXPECT_EQ(links_across(*Topology::make("planted", nodes, links)), 2) << seed;
  }
}

}  // namespace
}  // namespace espalier
