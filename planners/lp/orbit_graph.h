#pragma once

// Tested by: tests/property/planners/shares_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "base/rational.h"
#include "planners/graph/resource_graph.h"
#include "planners/lp/column_generation.h"
#include "planners/symmetry/automorphism_list.h"
#include "planners/symmetry/rank_symmetry.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A network with a group of automorphisms, and what is alike under them. Programs have one resource per orbit of
/// resources and one root per orbit of ranks: the mean over the group of any solution is a solution that treats alike
/// what is alike, so no optimum changes.
struct OrbitGraph {
  ResourceGraph graph;
  AbelianGroup group;                          ///< Renames nodes, and edges, which are numbered after the nodes.
  Automorphisms automorphisms;                 ///< The elements of `group`.
  Orbits ranks;                                ///< Of ranks.
  std::vector<std::uint64_t> automorphism_to;  ///< By rank: the element that takes its orbit's first rank there.
  Orbits resources;                            ///< Of resources.
  std::vector<BigInteger> capacity;            ///< By orbit of resources: of all its members together.

  [[nodiscard]] std::uint32_t edge_number(std::uint32_t edge) const {
    return static_cast<std::uint32_t>(graph.node_ranks.size()) + edge;
  }
  [[nodiscard]] std::uint32_t edge_image(const Automorphism& automorphism, std::uint32_t edge) const {
    return automorphism(edge_number(edge)) - static_cast<std::uint32_t>(graph.node_ranks.size());
  }
  [[nodiscard]] std::uint32_t rank_image(const Automorphism& automorphism, std::uint32_t rank) const {
    return graph.node_ranks[automorphism(graph.rank_nodes[rank])];
  }
};

/// Which group a program works with.
enum class Symmetry : std::uint8_t {
  none,  ///< Only the automorphism that changes nothing.
  free,  ///< Automorphisms that fix no rank: every root gets one image of a tree.
  any,   ///< The group with the fewest orbits of ranks: a root gets several images where automorphisms fix it.
};

/// `fold` as for make_resource_graph; the group is searched (find_rank_symmetry). Where `marks` has a number per rank,
/// only ranks with the same one are alike.
OrbitGraph make_orbit_graph(const Topology& topology, bool fold, Symmetry symmetry,
                            std::span<const std::int64_t> marks = {});
/// The same with a symmetry that is known. Requires: one of this graph.
OrbitGraph make_orbit_graph(ResourceGraph graph, RankSymmetry found);

/// The symmetry of a graph that is made of the topology, of the kind that is asked for (find_rank_symmetry).
RankSymmetry find_rank_symmetry(const Topology& topology, const ResourceGraph& graph, Symmetry kind,
                                std::span<const std::int64_t> marks);

/// The length of each edge when each orbit of resources has a price.
template <class Price>
std::vector<Price> edge_lengths(const OrbitGraph& orbits, std::span<const Price> prices) {
  std::vector<Price> lengths(orbits.graph.edges.size(), Price(0));
  for (std::size_t e = 0; e < lengths.size(); ++e) {
    for (const std::uint32_t resource : orbits.graph.edges[e].resources) {
      lengths[e] += prices[orbits.resources.of[resource]];
    }
  }
  return lengths;
}

/// What `copies` like ones of a tree that uses edges as often as `uses` says take of each orbit of resources.
std::vector<Entry> orbit_loads(const OrbitGraph& orbits, std::span<const std::int64_t> uses, std::int64_t copies);

}  // namespace espalier::planners
