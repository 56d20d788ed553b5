#include "planners/damage/alike.h"

#include <unordered_map>
#include <utility>

#include "base/disjoint_sets.h"
#include "planners/symmetric/name_shifts.h"
#include "planners/symmetry/network_graph.h"

namespace espalier::planners {
namespace {

DisjointSets find_orbits(const ColoredGraph& graph) {
  DisjointSets sets(graph.colors.size());
  visit_automorphisms(graph, [&](std::span<const std::uint32_t> automorphism) {
    for (std::uint32_t i = 0; i < automorphism.size(); ++i) sets.join(i, automorphism[i]);
  });
  return sets;
}

/// The orbits of nodes and cables under the automorphisms that names propose.
DisjointSets find_orbits_by_names(const Topology& topology, std::span<const Cable> cables) {
  const std::size_t nodes = topology.node_count();
  DisjointSets sets(nodes + cables.size());
  std::unordered_map<std::uint64_t, std::size_t> cable_between;
  const auto between = [](std::uint32_t tail, std::uint32_t head) { return std::uint64_t{tail} << 32U | head; };
  for (std::size_t i = 0; i < cables.size(); ++i) {
    for (const LinkId id : {cables[i].there, cables[i].back}) {
      if (!id.is_none()) cable_between[between(topology.link(id).tail.value(), topology.link(id).head.value())] = i;
    }
  }
  for (const Permutation& automorphism : find_name_automorphisms(topology)) {
    for (std::uint32_t i = 0; i < nodes; ++i) sets.join(i, automorphism[i]);
    for (std::size_t i = 0; i < cables.size(); ++i) {
      const Link& link = topology.link(cables[i].there);
      const std::size_t image =
          cable_between.at(between(automorphism[link.tail.index()], automorphism[link.head.index()]));
      sets.join(static_cast<std::uint32_t>(nodes + i), static_cast<std::uint32_t>(nodes + image));
    }
  }
  return sets;
}

std::size_t count_sets(DisjointSets& sets, std::size_t members) {
  std::size_t count = 0;
  for (std::uint32_t i = 0; i < members; ++i) {
    if (sets.find(i) == i) ++count;
  }
  return count;
}

/// The orbits of all automorphisms. Those that names propose are all where colors tell no more vertices apart, and then
/// nothing is searched.
DisjointSets find_all_orbits(const ColoredGraph& graph, const Topology& topology, std::span<const Cable> cables,
                             Rank fixed) {
  if (fixed.is_none()) {
    const std::size_t members = topology.node_count() + cables.size();
    DisjointSets by_names = find_orbits_by_names(topology, cables);
    if (count_sets(by_names, members) == count_refined_colors(graph, members)) return by_names;
  }
  return find_orbits(graph);
}

}  // namespace

Alike find_alike(const Topology& topology, std::span<const Cable> cables, Rank fixed) {
  std::vector<std::int64_t> marks;
  if (!fixed.is_none()) {
    marks.resize(topology.rank_count());
    marks[fixed.index()] = 1;
  }
  DisjointSets orbits = find_all_orbits(NetworkGraph(topology, cables, marks).graph(), topology, cables, fixed);
  Alike alike;
  const auto nodes = static_cast<std::uint32_t>(topology.node_count());
  for (std::uint32_t i = 0; i < nodes; ++i) alike.of_node.push_back(orbits.find(i));
  for (std::uint32_t i = 0; i < cables.size(); ++i) alike.of_cable.push_back(orbits.find(nodes + i));
  return alike;
}

}  // namespace espalier::planners
