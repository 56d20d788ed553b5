#include "planners/cut_rate.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"
#include "topology/max_flow.h"

namespace espalier {
namespace {

__int128 capacity_leaving(const FlowNetwork& network, const std::vector<bool>& inside) {
  __int128 capacity = 0;
  for (const FlowArc& arc : network.arcs()) {
    if (inside[arc.tail] && !inside[arc.head]) capacity += arc.capacity;
  }
  return capacity;
}

CutRate rate_of(const FlowNetwork& network, std::vector<bool> inside) {
  CutRate rate{0, capacity_leaving(network, inside), std::move(inside)};
  for (const std::uint32_t vertex : network.rank_vertices()) rate.ranks += rate.inside[vertex] ? 1 : 0;
  ESPALIER_CHECK(rate.capacity > 0, "a cut between ranks that reach each other has no capacity");
  return rate;
}

bool is_larger(const CutRate& a, const CutRate& b) { return a.ranks * b.capacity > b.ranks * a.capacity; }

/// The cut around one vertex: everything but it.
CutRate all_but(const FlowNetwork& network, std::uint32_t vertex) {
  std::vector<bool> inside(network.vertex_count(), true);
  inside[vertex] = false;
  return rate_of(network, std::move(inside));
}

__int128 total_capacity(const FlowNetwork& network) {
  __int128 total = 0;
  for (const FlowArc& arc : network.arcs()) total += arc.capacity;
  return total;
}

/// The network with a super source: at the ratio ranks / capacity of a cut, every rank brings `capacity` and every arc
/// carries `ranks` times its own, so that all numbers stay whole.
template <class Capacity>
class RateOracle {
 public:
  RateOracle(const FlowNetwork& network, const CutRate& rate)
      : network_(network), source_(static_cast<std::uint32_t>(network.vertex_count())), flow_(source_ + 1U) {
    const auto part = static_cast<Capacity>(rate.capacity);
    for (const FlowArc& arc : network.arcs()) {
      flow_.add_arc(arc.tail, arc.head, static_cast<Capacity>(arc.capacity) * static_cast<Capacity>(rate.ranks));
    }
    for (const std::uint32_t vertex : network.rank_vertices()) flow_.add_arc(source_, vertex, part);
    demand_ = part * static_cast<Capacity>(network.rank_count());
  }

  /// The vertices inside a cut that a sink cannot be fed through at this ratio; nothing when it can.
  std::optional<std::vector<bool>> find_violated(std::uint32_t sink) {
    if (flow_.run(source_, sink, demand_) == demand_) return std::nullopt;
    std::vector<bool> inside = flow_.source_side(std::span(&source_, 1));
    inside.pop_back();
    return inside;
  }

 private:
  const FlowNetwork& network_;
  std::uint32_t source_;
  MaxFlow<Capacity> flow_;
  Capacity demand_ = 0;
};

/// Tries the sinks from `next` on, each once, and returns the first violated cut; `next` stays at its sink, which is
/// the likeliest to be violated again.
template <class Capacity>
std::optional<std::vector<bool>> find_violated(const FlowNetwork& network, const CutRate& rate,
                                               std::span<const std::uint32_t> sinks, std::size_t& next) {
  RateOracle<Capacity> oracle(network, rate);
  for (std::size_t tried = 0; tried < sinks.size(); ++tried) {
    if (auto inside = oracle.find_violated(sinks[next])) return inside;
    next = (next + 1) % sinks.size();
  }
  return std::nullopt;
}

/// Raises the ratio from that of a first cut until no sink is behind a larger one.
CutRate largest_rate(const FlowNetwork& network, CutRate rate, std::span<const std::uint32_t> sinks) {
  const __int128 links = total_capacity(network);
  const auto ranks = static_cast<__int128>(network.rank_count());
  constexpr __int128 narrow = std::int64_t{1} << 61U;
  for (std::size_t next = 0;;) {
    const bool fits = rate.ranks * links < narrow && ranks * rate.capacity < narrow;
    auto inside = fits ? find_violated<std::int64_t>(network, rate, sinks, next)
                       : find_violated<__int128>(network, rate, sinks, next);
    if (!inside) return rate;
    CutRate found = rate_of(network, *std::move(inside));
    ESPALIER_CHECK(is_larger(found, rate), "a violated cut must have a larger ratio");
    rate = std::move(found);
  }
}

template <class Capacity>
CutRate smallest_cut(const FlowNetwork& network, std::uint32_t root) {
  MaxFlow<Capacity> flow(network.vertex_count());
  for (const FlowArc& arc : network.arcs()) flow.add_arc(arc.tail, arc.head, static_cast<Capacity>(arc.capacity));
  std::optional<CutRate> smallest;
  for (const std::uint32_t sink : network.rank_vertices()) {
    if (sink == root) continue;
    if (smallest) {
      const auto limit = static_cast<Capacity>(smallest->capacity);
      if (flow.run(root, sink, limit) == limit) continue;
    } else {
      flow.run(root, sink);
    }
    smallest = rate_of(network, flow.source_side(std::span(&root, 1)));
  }
  smallest->ranks = 1;
  return *std::move(smallest);
}

}  // namespace

CutRate all_gather_cut(const FlowNetwork& network) {
  std::vector<__int128> entering(network.vertex_count(), 0);
  for (const FlowArc& arc : network.arcs()) entering[arc.head] += arc.capacity;
  const auto sinks = network.rank_vertices();
  const auto slowest = *std::min_element(sinks.begin(), sinks.end(),
                                         [&](std::uint32_t a, std::uint32_t b) { return entering[a] < entering[b]; });
  return largest_rate(network, all_but(network, slowest), sinks);
}

CutRate gather_cut(const FlowNetwork& network, Rank root) {
  const std::uint32_t sink = network.vertex_of(root);
  // The root's own part needs no way: it enters at the sink itself and is part of every flow.
  return largest_rate(network, all_but(network, sink), std::span(&sink, 1));
}

CutRate broadcast_cut(const FlowNetwork& network, Rank root) {
  constexpr __int128 narrow = std::int64_t{1} << 61U;
  const std::uint32_t vertex = network.vertex_of(root);
  return total_capacity(network) < narrow ? smallest_cut<std::int64_t>(network, vertex)
                                          : smallest_cut<__int128>(network, vertex);
}

}  // namespace espalier
