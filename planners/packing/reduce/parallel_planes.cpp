#include "planners/packing/reduce/parallel_planes.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace espalier {

namespace {

constexpr std::size_t most_spreads = 72;

/// What a switch or a plane is known by, up to renaming of switches.
using Mark = std::vector<std::tuple<std::uint32_t, std::uint32_t, BigInteger>>;

/// Which plane each switch is in, by node; planes are numbered from 0.
std::vector<std::uint32_t> find_planes(const ResourceGraph& graph) {
  std::vector<std::uint32_t> plane(graph.node_ranks.size());
  std::iota(plane.begin(), plane.end(), 0);
  const auto top = [&](std::uint32_t v) {
    while (plane[v] != v) v = plane[v] = plane[plane[v]];
    return v;
  };
  for (const ResourceGraph::Edge& edge : graph.edges) {
    if (graph.node_ranks[edge.tail] != ResourceGraph::no_rank) continue;
    if (graph.node_ranks[edge.head] != ResourceGraph::no_rank) continue;
    plane[top(edge.tail)] = top(edge.head);
  }
  for (std::uint32_t v = 0; v < plane.size(); ++v) plane[v] = top(v);
  return plane;
}

/// A plane's switches.
using Plane = std::vector<std::uint32_t>;

/// Switches that have the same neighbours at the same rates and are no neighbours of such: planes of one switch each.
std::vector<std::vector<Plane>> parallel_switches(const ResourceGraph& graph) {
  std::vector<Mark> marks(graph.node_ranks.size());
  for (const ResourceGraph::Edge& edge : graph.edges) {
    marks[edge.tail].emplace_back(1, edge.head, graph.capacity[edge.resources.front()]);
    marks[edge.head].emplace_back(0, edge.tail, graph.capacity[edge.resources.front()]);
  }
  std::map<Mark, std::vector<Plane>> alike;
  std::vector<bool> is_beside(marks.size(), false);
  for (std::uint32_t v = 0; v < marks.size(); ++v) {
    if (graph.node_ranks[v] != ResourceGraph::no_rank) continue;
    std::ranges::sort(marks[v]);
    alike[marks[v]].push_back({v});
  }
  std::vector<std::vector<Plane>> groups;
  for (auto& [mark, planes] : alike) {
    if (planes.size() == 1 || is_beside[planes.front().front()]) continue;
    for (const auto& [way, neighbour, rate] : mark) is_beside[neighbour] = true;
    groups.push_back(std::move(planes));
  }
  return groups;
}

}  // namespace

ParallelPlanes::ParallelPlanes(const ResourceGraph& graph)
    : width_(graph.edges.size(), 1), parallel_(graph.edges.size()) {
  const std::size_t nodes = graph.node_ranks.size();
  const auto is_rank = [&](std::uint32_t v) { return graph.node_ranks[v] != ResourceGraph::no_rank; };
  const auto capacity = [&](const ResourceGraph::Edge& edge) { return graph.capacity[edge.resources.front()]; };
  const std::vector<std::uint32_t> plane_of = find_planes(graph);
  std::vector<Mark> served(nodes);  // by switch
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> edge_of;
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const ResourceGraph::Edge& edge = graph.edges[e];
    parallel_[e] = {e};
    edge_of[{edge.tail, edge.head}] = e;
    if (is_rank(edge.tail) && !is_rank(edge.head)) served[edge.head].emplace_back(0, edge.tail, capacity(edge));
    if (!is_rank(edge.tail) && is_rank(edge.head)) served[edge.tail].emplace_back(1, edge.head, capacity(edge));
  }
  std::map<std::uint32_t, Plane> switches;  // by plane
  for (std::uint32_t v = 0; v < nodes; ++v) {
    if (is_rank(v)) continue;
    std::ranges::sort(served[v]);
    switches[plane_of[v]].push_back(v);
  }
  std::vector<std::vector<Plane>> groups = parallel_switches(graph);
  std::vector<bool> is_sibling(nodes, false);
  for (const std::vector<Plane>& group : groups) {
    for (const Plane& plane : group) is_sibling[plane.front()] = true;
  }
  std::map<std::pair<std::vector<Mark>, Mark>, std::vector<Plane>> alike;
  for (auto& [number, plane] : switches) {
    if (std::ranges::any_of(plane, [&](std::uint32_t v) { return is_sibling[v]; })) continue;
    std::ranges::sort(plane, [&](auto a, auto b) { return std::tie(served[a], a) < std::tie(served[b], b); });
    std::vector<Mark> marks;
    for (const std::uint32_t v : plane) marks.push_back(served[v]);
    if (std::ranges::adjacent_find(marks) != marks.end()) continue;
    Mark inside;
    for (std::uint32_t i = 0; i < plane.size(); ++i) {
      for (std::uint32_t j = 0; j < plane.size(); ++j) {
        const auto edge = edge_of.find({plane[i], plane[j]});
        if (edge != edge_of.end()) inside.emplace_back(i, j, capacity(graph.edges[edge->second]));
      }
    }
    alike[{std::move(marks), std::move(inside)}].push_back(plane);
  }
  for (auto& [mark, planes] : alike) groups.push_back(std::move(planes));
  for (const std::vector<Plane>& group : groups) {
    spreads_ = std::lcm(spreads_, group.size());
    if (spreads_ > most_spreads) spreads_ = 1;
    if (spreads_ == 1 && group.size() > 1) return;
  }
  std::erase_if(groups, [](const std::vector<Plane>& group) { return group.size() == 1; });
  groups_ = std::move(groups);
  for (const std::vector<Plane>& group : groups_) join(graph, group, edge_of);
}

void ParallelPlanes::join(const ResourceGraph& graph, const std::vector<std::vector<std::uint32_t>>& group,
                          const std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t>& edge_of) {
  std::map<std::uint32_t, std::size_t> place;
  for (std::size_t i = 0; i < group.front().size(); ++i) place[group.front()[i]] = i;
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const auto tail = place.find(graph.edges[e].tail);
    const auto head = place.find(graph.edges[e].head);
    if (tail == place.end() && head == place.end()) continue;
    for (std::size_t sibling = 1; sibling < group.size(); ++sibling) {
      const std::uint32_t image =
          edge_of.at({tail == place.end() ? graph.edges[e].tail : group[sibling][tail->second],
                      head == place.end() ? graph.edges[e].head : group[sibling][head->second]});
      parallel_[e].push_back(image);
      width_[image] = 0;
    }
    width_[e] = static_cast<std::int64_t>(group.size());
  }
}

std::vector<std::vector<std::uint32_t>> ParallelPlanes::spread(std::span<const std::uint32_t> edges) const {
  std::vector<std::vector<std::uint32_t>> trees(spreads_);
  for (std::size_t i = 0; i < spreads_; ++i) {
    for (const std::uint32_t e : edges) trees[i].push_back(parallel_[e][i % parallel_[e].size()]);
  }
  return trees;
}

}  // namespace espalier
