#include "planners/symmetric/folded_network.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace espalier::planners {

FoldedNetwork fold(const SymmetricPlan& plan, const Topology& topology) {
  const OrbitGraph& orbits = *plan.orbits;
  const ResourceGraph& graph = orbits.graph;
  const std::uint64_t n = plan.collective.rank_count;
  FoldedNetwork folded{topology, {}, std::vector<std::uint32_t>(topology.link_count(), 1)};
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  folded.places.links.resize(links.size());
  std::vector<LinkId> standing(orbits.resources.count());
  for (const ResourceGraph::Edge& edge : graph.edges) {
    const std::uint32_t orbit = orbits.resources.of[edge.resources.front()];
    const LinkId link = edge.links.front();
    const std::uint64_t together = n / orbits.resources.size[orbit];
    folded.together[link.index()] = static_cast<std::uint32_t>(together);
    if (standing[orbit].is_none()) {
      standing[orbit] = link;
      Link& stands = links[link.index()];
      stands.nominal.bytes_per_second =
          std::max<std::int64_t>(1, stands.bandwidth().bytes_per_second / static_cast<std::int64_t>(together));
      stands.efficiency_ppm = 1'000'000;
    }
    folded.places.links[link.index()] = standing[orbit];
  }
  const Orbits alike = find_orbits(orbits.group.generators(), graph.node_ranks.size() + graph.edges.size());
  for (std::size_t v = 0; v < nodes.size(); ++v) {
    const std::uint32_t orbit = alike.of[v];
    folded.places.nodes.emplace_back(alike.first[orbit]);
    if (alike.first[orbit] != v || nodes[v].bandwidth.bytes_per_second == 0) continue;
    const std::uint64_t together = n / alike.size[orbit];
    nodes[v].bandwidth.bytes_per_second =
        std::max<std::int64_t>(1, nodes[v].bandwidth.bytes_per_second / static_cast<std::int64_t>(together));
  }
  auto made = Topology::make(topology.name(), std::move(nodes), std::move(links));
  ESPALIER_CHECK(made.has_value(), "only rates are lower");
  folded.topology = *std::move(made);
  return folded;
}

bool folds_exactly(const SymmetricPlan& plan, const Topology& topology) {
  const OrbitGraph& orbits = *plan.orbits;
  const ResourceGraph& graph = orbits.graph;
  const std::uint64_t n = plan.collective.rank_count;
  std::vector<bool> is_used(topology.link_count(), false);
  for (std::size_t i = 0; i < plan.part.route_count(); ++i) {
    for (const LinkId link : plan.part.route(RouteId(i)).links) is_used[link.index()] = true;
  }
  for (const ResourceGraph::Edge& edge : graph.edges) {
    const std::uint32_t orbit = orbits.resources.of[edge.resources.front()];
    if (is_used[edge.links.front().index()] && orbits.resources.size[orbit] != n) return false;
  }
  const Orbits alike = find_orbits(orbits.group.generators(), graph.node_ranks.size() + graph.edges.size());
  for (std::size_t v = 0; v < graph.node_ranks.size(); ++v) {
    const bool has_backplane = topology.node(NodeId(v)).bandwidth.bytes_per_second != 0;
    if (has_backplane && alike.size[alike.of[v]] != n) return false;
  }
  return true;
}

std::shared_ptr<const FoldedNetwork> SharedFold::of(const SymmetricPlan& plan, const Topology& topology) {
  const std::lock_guard lock(mutex_);
  auto folded = topology_ == &topology ? folded_.lock() : nullptr;
  if (folded == nullptr) {
    folded = std::make_shared<const FoldedNetwork>(fold(plan, topology));
    topology_ = &topology;
    folded_ = folded;
  }
  return folded;
}

}  // namespace espalier::planners
