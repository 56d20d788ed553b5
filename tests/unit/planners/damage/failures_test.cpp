#include "planners/damage/failures.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planners/bounds/bound.h"
#include "planners/damage/alike.h"
#include "tests/support/networks/real_machines.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::dgx1v_nvlinks;
using test::FabricMaker;
using test::line_of;
using test::ring_of;
using test::star_of;

using Names = std::vector<std::string>;

Collective collective_on(const Topology& topology, CollectiveKind kind) {
  return *make_collective(kind, topology.rank_count(), std::nullopt);
}

TEST(Alike, ARingHasOneKindOfEverything) {
  const Topology topology = ring_of(6);
  const Alike alike = find_alike(topology, find_cables(topology));
  EXPECT_EQ(alike.of_node, std::vector<std::uint32_t>(6, 0));
  for (const std::uint32_t kind : alike.of_cable) EXPECT_EQ(kind, alike.of_cable.front());
}

TEST(Alike, ARootTellsTheOthersApart) {
  // On a ring of six, seen from g0: itself, two neighbours, two at distance two, one opposite.
  const Topology topology = ring_of(6);
  const Alike alike = find_alike(topology, find_cables(topology), Rank(0));
  EXPECT_EQ(alike.of_node[1], alike.of_node[5]);
  EXPECT_EQ(alike.of_node[2], alike.of_node[4]);
  EXPECT_NE(alike.of_node[1], alike.of_node[2]);
  EXPECT_NE(alike.of_node[0], alike.of_node[3]);
}

TEST(Alike, RatesOfOneDirectionCount) {
  FabricMaker maker;
  const NodeId a = maker.add_rank("a"), b = maker.add_rank("b");
  maker.add_link(a, b, Bandwidth{2});
  maker.add_link(b, a, Bandwidth{1});
  const Topology topology = maker.build("uneven");
  const Alike alike = find_alike(topology, find_cables(topology));
  EXPECT_NE(alike.of_node[0], alike.of_node[1]);
}

/// The same network, whose names do not count anything.
Topology without_numbers(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id.clear();
    for (std::size_t rest = i + 1; rest > 0; rest /= 26) nodes[i].id += static_cast<char>('a' + rest % 26);
  }
  return *Topology::make(topology.name(), std::move(nodes), {topology.links().begin(), topology.links().end()});
}

// What names propose is all that a search finds, or it is searched.
TEST(Alike, DoesNotDependOnNames) {
  Random random(29);
  std::vector<Topology> machines = {*generate_torus({.dims = {4, 4}}),
                                    *generate_mesh({.dims = {3, 4}}),
                                    *generate_fat_tree({.k = 4}),
                                    *generate_leaf_spine({}),
                                    *generate_dragonfly({}),
                                    *generate_rail_boxes({.boxes = 4, .gpus_per_box = 4, .rails = 2}),
                                    *generate_rail_boxes({.boxes = 3, .gpus_per_box = 4, .rails = 4})};
  for (int round = 0; round < 20; ++round) {
    machines.push_back(test::random_fabric(2 + random.below(5), random.below(4), random.below(8), random));
  }
  for (const Topology& topology : machines) {
    const Topology searched = without_numbers(topology);
    const Alike by_names = find_alike(topology, find_cables(topology));
    const Alike by_search = find_alike(searched, find_cables(searched));
    EXPECT_EQ(by_names.of_node, by_search.of_node) << topology.name();
    EXPECT_EQ(by_names.of_cable, by_search.of_cable) << topology.name();
  }
}

// A slow cable among like ones is not taken for one of them.
TEST(Alike, NamesOnlyPropose) {
  const Topology whole = *generate_leaf_spine({});
  std::vector<Link> links(whole.links().begin(), whole.links().end());
  links.back().nominal.bytes_per_second /= 2;
  const Topology topology = *Topology::make("slower", {whole.nodes().begin(), whole.nodes().end()}, std::move(links));
  const Alike alike = find_alike(topology, find_cables(topology));
  EXPECT_EQ(std::ranges::count(alike.of_cable, alike.of_cable.back()), 1);
}

TEST(SingleFailures, EachOnceWithThoseThatAreAlike) {
  const Topology topology = star_of(4);
  const std::vector<Failure> failures = single_failures(topology);
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0].what, "25 GB/s cable");
  EXPECT_EQ(failures[0].alike, (Names{"g0-s0", "g1-s0", "g2-s0", "g3-s0"}));
  EXPECT_EQ(failures[1].name, "s0");
  EXPECT_EQ(failures[1].what, "switch");
  const std::vector<Failure> with_ranks = single_failures(topology, {true, Rank(2)});
  ASSERT_EQ(with_ranks.size(), 4U);  // the root's cable and the others', the other ranks, the switch
  EXPECT_EQ(with_ranks[2].alike, (Names{"g0", "g1", "g3"}));
}

// What a symmetry says to be the same has the same bound: of all failures on machines with many and with few
// symmetries.
TEST(SingleFailures, AlikeOnesLeaveTheSameBound) {
  const std::vector<Topology> machines = {dgx1v_nvlinks(false), dgx1v_nvlinks(true), *generate_torus({.dims = {3, 4}}),
                                          *generate_fat_tree({.k = 4})};
  for (const Topology& topology : machines) {
    const Collective collective = collective_on(topology, CollectiveKind::all_gather);
    for (const Failure& failure : single_failures(topology, {true, Rank()})) {
      std::optional<Rational> first;
      for (const std::string& name : failure.alike) {
        const auto rest = without(topology, *find_parts(topology, name), name);
        Collective on_rest = collective;
        on_rest.rank_count = rest ? static_cast<std::uint32_t>(rest->rank_count()) : 0;
        const Rational time = rest ? compute_bound(*rest, on_rest)->time_per_byte : Rational(-1);
        EXPECT_EQ(time, first.value_or(time)) << topology.name() << " " << name;
        first = time;
      }
    }
  }
}

}  // namespace
}  // namespace espalier::planners
