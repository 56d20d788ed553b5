#include "planners/lp/orbit_graph.h"

#include <unordered_map>
#include <utility>

namespace espalier::planners {

namespace {

Permutation of_resources(const ResourceGraph& graph, const Permutation& lifted) {
  const std::size_t nodes = graph.node_ranks.size();
  Permutation automorphism(graph.capacity.size());
  for (std::size_t e = 0; e < graph.edges.size(); ++e) {
    automorphism[graph.edges[e].resources.front()] = graph.edges[lifted[nodes + e] - nodes].resources.front();
  }
  for (std::size_t v = 0; v < nodes; ++v) {
    if (graph.node_resources[v] != ResourceGraph::no_resource) {
      automorphism[graph.node_resources[v]] = graph.node_resources[lifted[v]];
    }
  }
  return automorphism;
}

/// The group as one that renames nodes and edges.
AbelianGroup lift(const ResourceGraph& graph, const RankSymmetry& symmetry) {
  const auto nodes = static_cast<std::uint32_t>(graph.node_ranks.size());
  const auto between = [](std::uint32_t tail, std::uint32_t head) { return std::uint64_t{tail} << 32U | head; };
  std::unordered_map<std::uint64_t, std::uint32_t> edge_between;
  edge_between.reserve(graph.edges.size());
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    edge_between[between(graph.edges[e].tail, graph.edges[e].head)] = e;
  }
  return symmetry.group.mapped(nodes + graph.edges.size(), [&](Permutation lifted) {
    lifted.reserve(nodes + graph.edges.size());
    for (const ResourceGraph::Edge& edge : graph.edges) {
      lifted.push_back(nodes + edge_between.at(between(lifted[edge.tail], lifted[edge.head])));
    }
    return lifted;
  });
}

}  // namespace

RankSymmetry find_rank_symmetry(const Topology& topology, const ResourceGraph& graph, Symmetry kind,
                                std::span<const std::int64_t> marks) {
  if (kind == Symmetry::none) return no_symmetry(graph);
  return find_rank_symmetry(topology, graph, kind == Symmetry::free ? 1 : 4, marks);
}

OrbitGraph make_orbit_graph(const Topology& topology, bool fold, Symmetry symmetry,
                            std::span<const std::int64_t> marks) {
  ResourceGraph graph = make_resource_graph(topology, fold);
  RankSymmetry found = find_rank_symmetry(topology, graph, symmetry, marks);
  return make_orbit_graph(std::move(graph), std::move(found));
}

OrbitGraph make_orbit_graph(ResourceGraph graph, RankSymmetry found) {
  AbelianGroup group = lift(graph, found);
  Automorphisms automorphisms(group);
  OrbitGraph orbits{std::move(graph), std::move(group), std::move(automorphisms), std::move(found.ranks), {}, {}, {}};

  orbits.automorphism_to.resize(orbits.graph.rank_count());
  for (const std::uint32_t first : orbits.ranks.first) {
    const std::vector<std::uint32_t> images = orbits.group.images_of(orbits.graph.rank_nodes[first]);
    for (std::size_t i = images.size(); i-- > 0;) orbits.automorphism_to[orbits.graph.node_ranks[images[i]]] = i;
  }
  std::vector<Permutation> resource_automorphisms;
  for (const Permutation& generator : orbits.group.generators()) {
    resource_automorphisms.push_back(of_resources(orbits.graph, generator));
  }
  orbits.resources = find_orbits(resource_automorphisms, orbits.graph.capacity.size());
  for (std::size_t i = 0; i < orbits.resources.count(); ++i) {
    orbits.capacity.push_back(orbits.graph.capacity[orbits.resources.first[i]] * orbits.resources.size[i]);
  }
  return orbits;
}

std::vector<Entry> orbit_loads(const OrbitGraph& orbits, std::span<const std::int64_t> uses, std::int64_t copies) {
  std::vector<std::int64_t> loads(orbits.resources.count(), 0);
  for (std::size_t e = 0; e < uses.size(); ++e) {
    if (uses[e] == 0) continue;
    for (const std::uint32_t resource : orbits.graph.edges[e].resources) {
      loads[orbits.resources.of[resource]] += uses[e] * copies;
    }
  }
  std::vector<Entry> entries;
  for (std::uint32_t orbit = 0; orbit < loads.size(); ++orbit) {
    if (loads[orbit] != 0) entries.push_back({orbit, loads[orbit]});
  }
  return entries;
}

}  // namespace espalier::planners
