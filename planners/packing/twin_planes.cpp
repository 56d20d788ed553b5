#include "planners/packing/twin_planes.h"

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

}  // namespace

TwinPlanes::TwinPlanes(const ResourceGraph& graph) : width_(graph.edges.size(), 1), twins_(graph.edges.size()) {
  const std::size_t nodes = graph.node_ranks.size();
  const auto is_rank = [&](std::uint32_t v) { return graph.node_ranks[v] != ResourceGraph::no_rank; };
  const auto capacity = [&](const ResourceGraph::Edge& edge) { return graph.capacity[edge.resources.front()]; };
  const std::vector<std::uint32_t> plane_of = find_planes(graph);
  std::vector<Mark> served(nodes);  // by switch
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> edge_of;
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    const ResourceGraph::Edge& edge = graph.edges[e];
    twins_[e] = {e};
    edge_of[{edge.tail, edge.head}] = e;
    if (is_rank(edge.tail) && !is_rank(edge.head)) served[edge.head].emplace_back(0, edge.tail, capacity(edge));
    if (!is_rank(edge.tail) && is_rank(edge.head)) served[edge.tail].emplace_back(1, edge.head, capacity(edge));
  }
  std::map<std::uint32_t, std::vector<std::uint32_t>> switches;  // by plane, in the order of what they serve
  for (std::uint32_t v = 0; v < nodes; ++v) {
    if (is_rank(v)) continue;
    std::ranges::sort(served[v]);
    switches[plane_of[v]].push_back(v);
  }
  std::map<std::pair<std::vector<Mark>, Mark>, std::vector<std::uint32_t>> alike;  // planes
  for (auto& [plane, members] : switches) {
    std::ranges::sort(members, [&](auto a, auto b) { return std::tie(served[a], a) < std::tie(served[b], b); });
    std::vector<Mark> marks;
    for (const std::uint32_t v : members) marks.push_back(served[v]);
    if (std::ranges::adjacent_find(marks) != marks.end()) continue;
    Mark inside;
    for (std::uint32_t i = 0; i < members.size(); ++i) {
      for (std::uint32_t j = 0; j < members.size(); ++j) {
        const auto edge = edge_of.find({members[i], members[j]});
        if (edge != edge_of.end()) inside.emplace_back(i, j, capacity(graph.edges[edge->second]));
      }
    }
    alike[{std::move(marks), std::move(inside)}].push_back(plane);
  }
  for (const auto& [mark, planes] : alike) spreads_ = std::min(most_spreads + 1, std::lcm(spreads_, planes.size()));
  if (spreads_ > most_spreads) spreads_ = 1;
  if (spreads_ == 1) return;
  for (const auto& [mark, planes] : alike) {
    if (planes.size() == 1) continue;
    const std::vector<std::uint32_t>& first = switches[planes.front()];
    std::map<std::uint32_t, std::size_t> place;
    for (std::size_t i = 0; i < first.size(); ++i) place[first[i]] = i;
    for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
      const ResourceGraph::Edge& edge = graph.edges[e];
      if (!place.contains(edge.tail) && !place.contains(edge.head)) continue;
      for (std::size_t twin = 1; twin < planes.size(); ++twin) {
        const std::vector<std::uint32_t>& other = switches[planes[twin]];
        const auto tail = place.find(edge.tail);
        const auto head = place.find(edge.head);
        const std::uint32_t image = edge_of.at({tail == place.end() ? edge.tail : other[tail->second],
                                                head == place.end() ? edge.head : other[head->second]});
        twins_[e].push_back(image);
        width_[image] = 0;
      }
      width_[e] = static_cast<std::int64_t>(planes.size());
    }
  }
}

std::vector<std::vector<std::uint32_t>> TwinPlanes::spread(std::span<const std::uint32_t> edges) const {
  std::vector<std::vector<std::uint32_t>> trees(spreads_);
  for (std::size_t i = 0; i < spreads_; ++i) {
    for (const std::uint32_t e : edges) trees[i].push_back(twins_[e][i % twins_[e].size()]);
  }
  return trees;
}

}  // namespace espalier
