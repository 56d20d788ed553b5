#include <gtest/gtest.h>

#include <algorithm>

#include "planners/symmetry/automorphism_list.h"
#include "planners/symmetry/automorphisms.h"
#include "planners/symmetry/rank_symmetry.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

TEST(Permutations, PowersAndOrders) {
  const Permutation permutation = {1, 2, 0, 4, 3, 5};
  EXPECT_EQ(order_of(permutation), 6U);
  EXPECT_EQ(power(permutation, 2), compose(permutation, permutation));
  EXPECT_EQ(power(permutation, 6), identity_permutation(6));
  EXPECT_EQ(power(permutation, 3), (Permutation{0, 1, 2, 4, 3, 5}));
}

TEST(Permutations, OrbitsAreNumberedByTheirSmallestMembers) {
  const std::vector<Permutation> automorphisms = {{1, 0, 2, 3, 4}, {0, 1, 2, 4, 3}};
  const Orbits orbits = find_orbits(automorphisms, 5);
  EXPECT_EQ(orbits.of, (std::vector<std::uint32_t>{0, 0, 1, 2, 2}));
  EXPECT_EQ(orbits.first, (std::vector<std::uint32_t>{0, 2, 3}));
  EXPECT_EQ(orbits.size, (std::vector<std::uint32_t>{2, 1, 2}));
}

TEST(AbelianGroup, NumbersItsElements) {
  // Z_4 on 0..3 and Z_2 that swaps 4 and 5, at once in one generator of order 4 and one of order 2.
  const AbelianGroup cyclic = *AbelianGroup(6).with({1, 2, 3, 0, 4, 5}, 0, 100);
  EXPECT_EQ(cyclic.order(), 4U);
  EXPECT_EQ(cyclic.images_of(0), (std::vector<std::uint32_t>{0, 1, 2, 3}));
  EXPECT_FALSE(cyclic.with({2, 3, 0, 1, 4, 5}, 0, 100)) << "already an element";
  EXPECT_FALSE(cyclic.with({0, 1, 2, 3, 5, 4}, 0, 100)) << "does not move the base";
  const Automorphisms automorphisms(cyclic);
  for (std::uint64_t i = 0; i < cyclic.order(); ++i) {
    const Permutation element = cyclic.element(i);
    for (std::uint32_t number = 0; number < 6; ++number) EXPECT_EQ(automorphisms.at(i)(number), element[number]);
  }
}

/// Every generator maps edges to edges of the same capacity and ranks to ranks.
void expect_automorphisms(const ResourceGraph& graph, std::span<const Permutation> generators) {
  const auto capacity_between = [&](std::uint32_t tail, std::uint32_t head) {
    for (const std::uint32_t e : graph.out_edges[tail]) {
      if (graph.edges[e].head == head) return graph.capacity[graph.edges[e].resources.front()];
    }
    return BigInteger(0);
  };
  for (const Permutation& generator : generators) {
    for (const ResourceGraph::Edge& edge : graph.edges) {
      EXPECT_EQ(capacity_between(generator[edge.tail], generator[edge.head]), capacity_between(edge.tail, edge.head));
    }
    for (std::size_t v = 0; v < generator.size(); ++v) {
      EXPECT_EQ(graph.node_ranks[v] == ResourceGraph::no_rank,
                graph.node_ranks[generator[v]] == ResourceGraph::no_rank);
    }
  }
}

struct Found {
  std::uint64_t order;
  std::size_t rank_orbits;
};

Found search(const Topology& topology) {
  const ResourceGraph graph = make_resource_graph(topology, false);
  const std::vector<Permutation> all = find_automorphisms(topology, graph);
  expect_automorphisms(graph, all);
  const RankSymmetry symmetry = find_rank_symmetry(topology, graph);
  const auto generators = symmetry.group.generators();
  expect_automorphisms(graph, generators);
  for (const Permutation& a : generators) {
    for (const Permutation& b : generators) EXPECT_EQ(compose(a, b), compose(b, a));
  }
  EXPECT_LE(symmetry.group.order() * symmetry.ranks.count(), 4 * topology.rank_count());
  return {symmetry.group.order(), symmetry.ranks.count()};
}

TEST(RankSymmetry, MakesAllRanksOfRegularNetworksAlike) {
  const std::vector<Topology> networks = {*generate_ring({.ranks = 12}),
                                          *generate_torus({{4, 4}, {}}),
                                          *generate_torus({{3, 4, 5}, {}}),
                                          *generate_hypercube({.dimensions = 4}),
                                          *generate_fully_connected({.ranks = 7}),
                                          *generate_fat_tree({.k = 4}),
                                          *generate_leaf_spine({}),
                                          *generate_rail_boxes({.boxes = 6}),
                                          *generate_rail_boxes({.boxes = 4, .rails = 4, .spines = 2})};
  for (const Topology& topology : networks) {
    SCOPED_TRACE(topology.name());
    const Found found = search(topology);
    EXPECT_EQ(found.rank_orbits, 1U);
    EXPECT_EQ(found.order, topology.rank_count());
  }
}

TEST(RankSymmetry, SeesNoneInALineOfUnequalLinks) {
  std::vector<Node> nodes(4);
  for (std::size_t i = 0; i < nodes.size(); ++i) nodes[i].id = "g" + std::to_string(i);
  std::vector<Link> links;
  for (std::size_t i = 0; i + 1 < nodes.size(); ++i) {
    for (const bool back : {false, true}) {
      Link link;
      link.tail = NodeId(back ? i + 1 : i);
      link.head = NodeId(back ? i : i + 1);
      link.nominal = {static_cast<std::int64_t>(i + 1) * 1'000'000'000};
      links.push_back(link);
    }
  }
  const Found found = search(*Topology::make("line", nodes, links));
  EXPECT_EQ(found.order, 1U);
  EXPECT_EQ(found.rank_orbits, 4U);
}

TEST(RankSymmetry, KeepsMostOfItWhenANicIsDead) {
  const Topology whole = *generate_rail_boxes({.boxes = 8});
  std::vector<Link> links;
  std::size_t removed = 0;
  for (const Link& link : whole.links()) {
    const bool dead = link.link_class == "nic" && removed < 2;
    removed += dead ? 1 : 0;
    if (!dead) links.push_back(link);
  }
  const Found found = search(*Topology::make("damaged", {whole.nodes().begin(), whole.nodes().end()}, links));
  EXPECT_LE(found.rank_orbits, 6U);
}

TEST(RankSymmetry, IsNotLookedForOnVeryLargeNetworks) {
  const auto leaves = static_cast<std::int64_t>(max_searched_ranks / 64 + 1);
  const Topology large = *generate_leaf_spine({.leaves = leaves, .ranks_per_leaf = 64, .spines = 1});
  const RankSymmetry symmetry = find_rank_symmetry(large, make_resource_graph(large, false));
  EXPECT_EQ(symmetry.group.order(), 1U);
  EXPECT_EQ(symmetry.ranks.count(), large.rank_count());
}

TEST(RankSymmetry, TellsNodesWithBackplanesApart) {
  const Topology plain = *generate_ring({.ranks = 6});
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  nodes[2].bandwidth = {1'000'000'000};
  const Found found = search(*Topology::make("limited", nodes, {plain.links().begin(), plain.links().end()}));
  EXPECT_GE(found.rank_orbits, 4U);
}

}  // namespace
}  // namespace espalier::planners
