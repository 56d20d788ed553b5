#include "planners/packing/switch_dealer.h"

#include <algorithm>

namespace espalier {
namespace {

constexpr __int128 most_dealt_capacity = std::int64_t{1} << 61U;
/// Dealing without checks stops at this many pairs: some hundred megabytes of paths.
constexpr std::size_t most_pairs = std::size_t{1} << 21U;

}  // namespace

SwitchDealer::SwitchDealer(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                           std::span<const std::int64_t> demands, std::int64_t most_factor)
    : graph_(graph), groups_(graph), most_factor_(most_factor) {
  std::vector<bool> is_switch(graph.vertex_count(), true);
  for (const std::uint32_t vertex : rank_vertices) is_switch[vertex] = false;
  for (std::uint32_t vertex = 0; vertex < graph.vertex_count(); ++vertex) {
    if (is_switch[vertex] && !SwitchEdges(graph, vertex).in.empty()) waiting_.push_back(vertex);
  }
  for (std::uint32_t id = 0; id < graph.edge_count(); ++id) total_ += graph.edge(id).capacity;
  for (const std::int64_t demand : demands) total_ += demand;
}

std::optional<SwitchEdges> SwitchDealer::next() {
  std::optional<SwitchEdges> best;
  std::size_t best_place = 0;
  for (std::size_t i = 0; i < waiting_.size(); ++i) {
    SwitchEdges edges(graph_, waiting_[i]);
    if (best && edges.in.size() * edges.out.size() >= best->in.size() * best->out.size()) continue;
    best = std::move(edges);
    best_place = i;
  }
  if (best) waiting_.erase(waiting_.begin() + static_cast<std::ptrdiff_t>(best_place));
  return best;
}

std::optional<std::int64_t> SwitchDealer::factor_for(const SwitchEdges& edges, Dealing dealing) const {
  const auto sides = groups_.sides(graph_, edges, dealing, factor_);
  const std::optional<std::int64_t> factor = even_factor(sides.in, sides.out);
  if (!factor || factor_ * *factor > most_factor_ || total_ * *factor > most_dealt_capacity) return std::nullopt;
  return factor;
}

void SwitchDealer::scale(std::int64_t factor) {
  graph_.scale(factor);
  factor_ *= factor;
  total_ *= factor;
}

DealtAmounts SwitchDealer::amounts(const SwitchEdges& edges, Dealing dealing) const {
  const auto sides = groups_.sides(graph_, edges, dealing, factor_);
  return even_split(sides.in, sides.out);
}

std::optional<std::int64_t> deal_evenly(CapacityGraph& graph, std::span<const std::uint32_t> rank_vertices,
                                        std::span<const std::int64_t> demands, Dealing dealing) {
  SwitchDealer dealer(graph, rank_vertices, demands, most_refinement);
  std::size_t pairs = 0;
  while (const auto edges = dealer.next()) {
    pairs += edges->in.size() * edges->out.size();
    if (pairs > most_pairs) return std::nullopt;
    DealtAmounts amounts;
    for (const Dealing way : {dealing, Dealing::all_pairs}) {
      if (const auto factor = dealer.factor_for(*edges, way)) dealer.scale(*factor);
      amounts = dealer.amounts(*edges, way);
      if (!amounts.empty()) break;
    }
    if (amounts.empty()) return std::nullopt;
    for (std::size_t i = 0; i < edges->in.size(); ++i) {
      for (std::size_t j = 0; j < edges->out.size(); ++j) {
        if (amounts[i][j] > 0) graph.split_off(edges->in[i], edges->out[j], amounts[i][j]);
      }
    }
  }
  return dealer.factor();
}

}  // namespace espalier
