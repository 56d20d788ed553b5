#include "planners/symmetric/part_trees.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier::planners {
namespace {

/// The paths of a plan's routes, each once.
class PathTable {
 public:
  PathTable(const Shifts& shifts, const Topology& topology) : shifts_(shifts), topology_(topology) {
    const ResourceGraph& graph = shifts.orbits().graph;
    edge_of_.resize(topology.link_count());
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) edge_of_[graph.edges[e].links.front().index()] = e;
  }

  std::uint32_t add(const Route& route, PartTrees& parts) {
    const OrbitGraph& orbits = shifts_.orbits();
    const std::uint32_t back = shifts_.minus(route.src.value());
    const Automorphism home = shifts_.by(back);
    ShiftPath path{shifts_.sum(route.dst.value(), back), {}, 0};
    for (const LinkId link : route.links) {
      path.edges.push_back(orbits.edge_image(home, edge_of_[link.index()]));
      path.latency += topology_.link(link).latency.seconds() + topology_.link(link).overhead.seconds();
    }
    const auto [known, is_new] =
        known_.try_emplace(std::pair(path.to, path.edges), static_cast<std::uint32_t>(parts.paths.size()));
    if (is_new) {
      parts.paths_to[path.to].push_back(known->second);
      parts.paths.push_back(std::move(path));
    }
    return known->second;
  }

 private:
  const Shifts& shifts_;
  const Topology& topology_;
  std::vector<std::uint32_t> edge_of_;  // by link
  std::map<std::pair<std::uint32_t, std::vector<std::uint32_t>>, std::uint32_t> known_;
};

}  // namespace

PartTrees find_part_trees(const SymmetricPlan& plan, const Shifts& shifts, const Topology& topology) {
  const Schedule& part = plan.part;
  const std::uint32_t ranks = shifts.count();
  PartTrees parts;
  parts.paths_to.resize(ranks);
  PathTable table(shifts, topology);
  std::vector<std::uint32_t> path_of(part.route_count());
  for (std::size_t i = 0; i < part.route_count(); ++i) path_of[i] = table.add(part.route(RouteId(i)), parts);
  std::map<std::pair<std::uint32_t, bool>, std::size_t> tree_of;  // by slice and direction
  for (const Transfer& transfer : part.transfers) {
    const bool is_inward = transfer.reduces != 0;
    const std::uint32_t src = part.src(transfer).value(), dst = part.dst(transfer).value();
    for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
      const std::uint32_t slice = transfer.first_slice.value() + i;
      const auto [place, is_new] = tree_of.try_emplace({slice, is_inward}, parts.trees.size());
      if (is_new) {
        const std::vector<std::uint32_t> nothing(ranks, SliceTree::none);
        parts.trees.push_back({slice, is_inward, nothing, nothing});
      }
      SliceTree& tree = parts.trees[place->second];
      const std::uint32_t child = is_inward ? src : dst;
      ESPALIER_CHECK(child != 0 && tree.parent[child] == SliceTree::none, "a part's transfers make trees");
      tree.parent[child] = is_inward ? dst : src;
      tree.path[child] = path_of[transfer.route.index()];
    }
  }
  return parts;
}

void add_detours(PartTrees& parts, const Shifts& shifts, const Topology& topology) {
  const ResourceGraph& graph = shifts.orbits().graph;
  const std::size_t links = graph.edges.size();
  std::set<std::uint32_t> ends;
  for (const ShiftPath& path : parts.paths) ends.insert({path.to, shifts.minus(path.to)});
  for (const std::uint32_t to : ends) {
    std::vector<std::size_t> length(links, 1);
    for (const std::uint32_t path : parts.paths_to[to]) {
      for (const std::uint32_t edge : parts.paths[path].edges) length[edge] += links;
    }
    // Dijkstra's search through nodes that are no ranks.
    std::vector<std::size_t> distance(graph.node_ranks.size(), SIZE_MAX);
    std::vector<std::uint32_t> entered(graph.node_ranks.size(), 0);
    using Open = std::pair<std::size_t, std::uint32_t>;
    std::priority_queue<Open, std::vector<Open>, std::greater<>> open;
    distance[graph.rank_nodes[0]] = 0;
    open.emplace(0, graph.rank_nodes[0]);
    while (!open.empty()) {
      const auto [at, node] = open.top();
      open.pop();
      if (at != distance[node] || node == graph.rank_nodes[to]) continue;
      if (graph.node_ranks[node] != ResourceGraph::no_rank && node != graph.rank_nodes[0]) continue;
      for (const std::uint32_t edge : graph.out_edges[node]) {
        const std::uint32_t head = graph.edges[edge].head;
        if (at + length[edge] >= distance[head]) continue;
        distance[head] = at + length[edge];
        entered[head] = edge;
        open.emplace(distance[head], head);
      }
    }
    ShiftPath path{to, {}, 0};
    for (std::uint32_t node = graph.rank_nodes[to]; node != graph.rank_nodes[0];
         node = graph.edges[entered[node]].tail) {
      path.edges.push_back(entered[node]);
      const Link& link = topology.link(graph.edges[entered[node]].links.front());
      path.latency += link.latency.seconds() + link.overhead.seconds();
    }
    std::ranges::reverse(path.edges);
    const auto is_same = [&](std::uint32_t known) { return parts.paths[known].edges == path.edges; };
    if (std::ranges::any_of(parts.paths_to[to], is_same)) continue;
    parts.paths_to[to].push_back(static_cast<std::uint32_t>(parts.paths.size()));
    parts.paths.push_back(std::move(path));
  }
}

}  // namespace espalier::planners
