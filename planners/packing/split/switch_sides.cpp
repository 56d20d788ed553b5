#include "planners/packing/split/switch_sides.h"

#include <algorithm>

namespace espalier {
NeighbourGroups::NeighbourGroups(const CapacityGraph& graph) {
  for (std::uint32_t id = 0; id < graph.edge_count(); ++id) {
    edges_.push_back({graph.edge(id).tail, graph.edge(id).head, graph.edge(id).capacity});
  }
  for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) singles_.push_back(vertex);
}

std::vector<std::uint32_t> NeighbourGroups::connected_faster_than(std::int64_t capacity) const {
  std::vector<std::uint32_t> group = singles_;
  const auto find = [&group](std::uint32_t vertex) {
    while (group[vertex] != vertex) vertex = group[vertex] = group[group[vertex]];
    return vertex;
  };
  for (const OriginalEdge& edge : edges_) {
    if (edge.capacity > capacity) group[find(edge.tail)] = find(edge.head);
  }
  for (std::uint32_t vertex = 0; vertex < group.size(); ++vertex) group[vertex] = find(vertex);
  return group;
}

NeighbourGroups::Sides NeighbourGroups::sides(const CapacityGraph& graph, const SwitchEdges& edges,
                                              Dealing dealing) const {
  std::int64_t fastest = 0;
  std::vector<bool> is_neighbour(graph.vertex_count(), false);
  for (const std::uint32_t id : edges.in) {
    fastest = std::max(fastest, graph.edge(id).capacity);
    is_neighbour[graph.edge(id).tail] = true;
  }
  for (const std::uint32_t id : edges.out) {
    fastest = std::max(fastest, graph.edge(id).capacity);
    is_neighbour[graph.edge(id).head] = true;
  }
  const auto group = dealing == Dealing::all_pairs ? singles_ : connected_faster_than(fastest);
  std::vector<std::uint32_t> members(graph.vertex_count(), 0), place(graph.vertex_count(), 0);
  for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) {
    if (is_neighbour[vertex] && dealing == Dealing::across_by_place) place[vertex] = members[group[vertex]]++;
  }
  Sides sides;
  const auto add = [&](SwitchSide& side, std::uint32_t id, std::uint32_t neighbour) {
    side.amounts.push_back(graph.edge(id).capacity);
    side.groups.push_back(group[neighbour]);
    side.places.push_back(place[neighbour]);
  };
  for (const std::uint32_t id : edges.in) add(sides.in, id, graph.edge(id).tail);
  for (const std::uint32_t id : edges.out) add(sides.out, id, graph.edge(id).head);
  return sides;
}

}  // namespace espalier
