#include "planners/packing/split/capacity_graph.h"

#include <algorithm>

namespace espalier::planners {

CapacityGraph::CapacityGraph(const FlowNetwork& network, std::span<const std::int64_t> capacities)
    : out_(network.vertex_count()), in_(network.vertex_count()) {
  for (std::uint32_t arc = 0; arc < network.arcs().size(); ++arc) {
    if (capacities[arc] == 0) continue;
    add_share(find_or_add(network.arcs()[arc].tail, network.arcs()[arc].head), {{arc}, capacities[arc]});
  }
}

std::uint32_t CapacityGraph::find_or_add(std::uint32_t tail, std::uint32_t head) {
  const auto id = static_cast<std::uint32_t>(edges_.size());
  const std::uint64_t key = (std::uint64_t{tail} << 32U) | head;
  const auto [found, added] = edge_by_ends_.try_emplace(key, id);
  if (!added) return found->second;
  edges_.push_back({tail, head, 0, {}});
  out_[tail].push_back(id);
  in_[head].push_back(id);
  return id;
}

void CapacityGraph::add_share(std::uint32_t edge, PathShare share) {
  edges_[edge].capacity += share.amount;
  edges_[edge].shares.push_back(std::move(share));
}

std::vector<PathShare> CapacityGraph::take(std::uint32_t edge, std::int64_t amount) {
  Edge& from = edges_[edge];
  ESPALIER_CHECK(amount <= from.capacity, "more capacity taken off an edge than it has");
  from.capacity -= amount;
  std::vector<PathShare> taken;
  while (amount > 0) {
    PathShare& last = from.shares.back();
    if (last.amount <= amount) {
      amount -= last.amount;
      taken.push_back(std::move(last));
      from.shares.pop_back();
    } else {
      last.amount -= amount;
      taken.push_back({last.arcs, amount});
      amount = 0;
    }
  }
  return taken;
}

void CapacityGraph::split_off(std::uint32_t in, std::uint32_t out, std::int64_t amount) {
  ESPALIER_CHECK(edges_[in].head == edges_[out].tail, "edges to split off must meet");
  std::vector<PathShare> before = take(in, amount);
  std::vector<PathShare> after = take(out, amount);
  if (edges_[in].tail == edges_[out].head) return;
  const std::uint32_t past = find_or_add(edges_[in].tail, edges_[out].head);
  while (!before.empty()) {
    PathShare& first = before.back();
    PathShare& second = after.back();
    PathShare joined{first.arcs, std::min(first.amount, second.amount)};
    joined.arcs.insert(joined.arcs.end(), second.arcs.begin(), second.arcs.end());
    first.amount -= joined.amount;
    second.amount -= joined.amount;
    if (first.amount == 0) before.pop_back();
    if (second.amount == 0) after.pop_back();
    add_share(past, std::move(joined));
  }
}

SwitchEdges::SwitchEdges(const CapacityGraph& graph, std::uint32_t vertex) {
  for (const std::uint32_t id : graph.in_edges(vertex)) {
    if (graph.edge(id).capacity > 0) in.push_back(id);
  }
  for (const std::uint32_t id : graph.out_edges(vertex)) {
    if (graph.edge(id).capacity > 0) out.push_back(id);
  }
}

void join_through(CapacityGraph& graph, const SwitchEdges& edges) {
  for (const bool may_return : {false, true}) {
    for (const std::uint32_t in : edges.in) {
      for (const std::uint32_t out : edges.out) {
        if ((graph.edge(in).tail == graph.edge(out).head) != may_return) continue;
        const std::int64_t amount = std::min(graph.edge(in).capacity, graph.edge(out).capacity);
        if (amount > 0) graph.split_off(in, out, amount);
      }
    }
  }
}

}  // namespace espalier::planners
