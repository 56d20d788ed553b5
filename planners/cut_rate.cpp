#include "planners/cut_rate.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"
#include "base/disjoint_sets.h"
#include "planners/symmetry/colored_graph.h"
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

/// How many parts each rank has.
class PartCounts {
 public:
  PartCounts(const FlowNetwork& network, std::span<const std::int64_t> counts)
      : counts_(counts), sum_(static_cast<__int128>(network.rank_count())) {
    if (counts.empty()) return;
    sum_ = 0;
    for (const std::int64_t count : counts) sum_ += count;
  }
  [[nodiscard]] std::int64_t of(std::size_t rank) const { return counts_.empty() ? 1 : counts_[rank]; }
  [[nodiscard]] __int128 sum() const { return sum_; }

 private:
  std::span<const std::int64_t> counts_;
  __int128 sum_;
};

CutRate rate_of(const FlowNetwork& network, const PartCounts& counts, std::vector<bool> inside) {
  CutRate rate{0, capacity_leaving(network, inside), std::move(inside)};
  const auto vertices = network.rank_vertices();
  for (std::size_t rank = 0; rank < vertices.size(); ++rank) {
    if (rate.inside[vertices[rank]]) rate.parts += counts.of(rank);
  }
  ESPALIER_CHECK(rate.capacity > 0, "a cut between ranks that reach each other has no capacity");
  return rate;
}

bool is_larger(const CutRate& a, const CutRate& b) { return a.parts * b.capacity > b.parts * a.capacity; }

/// The cut around one vertex: everything but it.
CutRate all_but(const FlowNetwork& network, const PartCounts& counts, std::uint32_t vertex) {
  std::vector<bool> inside(network.vertex_count(), true);
  inside[vertex] = false;
  return rate_of(network, counts, std::move(inside));
}

__int128 total_capacity(const FlowNetwork& network) {
  __int128 total = 0;
  for (const FlowArc& arc : network.arcs()) total += arc.capacity;
  return total;
}

/// The network with a super source: at the ratio parts / capacity of a cut, every rank brings `capacity` for each of
/// its parts and every arc carries `parts` times its own, so that all numbers stay whole.
template <class Capacity>
class RateOracle {
 public:
  RateOracle(const FlowNetwork& network, const PartCounts& counts, const CutRate& rate)
      : source_(static_cast<std::uint32_t>(network.vertex_count())), flow_(source_ + 1U) {
    const auto part = static_cast<Capacity>(rate.capacity);
    for (const FlowArc& arc : network.arcs()) {
      flow_.add_arc(arc.tail, arc.head, static_cast<Capacity>(arc.capacity) * static_cast<Capacity>(rate.parts));
    }
    const auto vertices = network.rank_vertices();
    for (std::size_t rank = 0; rank < vertices.size(); ++rank) {
      flow_.add_arc(source_, vertices[rank], part * static_cast<Capacity>(counts.of(rank)));
    }
    demand_ = part * static_cast<Capacity>(counts.sum());
  }

  /// The vertices inside a cut that a sink cannot be fed through at this ratio; nothing when it can.
  std::optional<std::vector<bool>> find_violated(std::uint32_t sink) {
    if (flow_.run(source_, sink, demand_) == demand_) return std::nullopt;
    std::vector<bool> inside = flow_.source_side(std::span(&source_, 1));
    inside.pop_back();
    return inside;
  }

 private:
  std::uint32_t source_;
  MaxFlow<Capacity> flow_;
  Capacity demand_ = 0;
};

/// Tries the sinks from `next` on, each once, and returns the first violated cut; `next` stays at its sink, which is
/// the likeliest to be violated again.
template <class Capacity>
std::optional<std::vector<bool>> find_violated(const FlowNetwork& network, const PartCounts& counts,
                                               const CutRate& rate, std::span<const std::uint32_t> sinks,
                                               std::size_t& next) {
  RateOracle<Capacity> oracle(network, counts, rate);
  for (std::size_t tried = 0; tried < sinks.size(); ++tried) {
    if (auto inside = oracle.find_violated(sinks[next])) return inside;
    next = (next + 1) % sinks.size();
  }
  return std::nullopt;
}

/// Raises the ratio from that of a first cut until no sink is behind a larger one.
CutRate largest_rate(const FlowNetwork& network, const PartCounts& counts, CutRate rate,
                     std::span<const std::uint32_t> sinks) {
  const __int128 links = total_capacity(network);
  constexpr __int128 narrow = std::int64_t{1} << 61U;
  for (std::size_t next = 0;;) {
    const bool fits = rate.parts * links < narrow && counts.sum() * rate.capacity < narrow;
    auto inside = fits ? find_violated<std::int64_t>(network, counts, rate, sinks, next)
                       : find_violated<__int128>(network, counts, rate, sinks, next);
    if (!inside) return rate;
    CutRate found = rate_of(network, counts, *std::move(inside));
    ESPALIER_CHECK(is_larger(found, rate), "a violated cut must have a larger ratio");
    rate = std::move(found);
  }
}

/// From this many ranks on it pays to look for those that are alike.
constexpr std::size_t many_ranks = 64;

/// One rank's vertex of every set of ranks that some renaming of the vertices turns into each other, capacities and
/// parts staying what they are: a cut that starves one of them is the image of one that starves the other.
std::vector<std::uint32_t> unlike_ranks(const FlowNetwork& network, const PartCounts& counts) {
  const auto ranks = network.rank_vertices();
  if (ranks.size() < many_ranks) return {ranks.begin(), ranks.end()};
  constexpr std::int64_t forwards = -1;
  std::vector<std::int64_t> parts(network.vertex_count(), forwards);
  for (std::size_t rank = 0; rank < ranks.size(); ++rank) parts[ranks[rank]] = counts.of(rank);
  std::vector<std::int64_t> capacities;
  for (const FlowArc& arc : network.arcs()) capacities.push_back(arc.capacity);
  const auto colors = number_keys(parts, 0);
  const auto arc_colors = number_keys(capacities, static_cast<std::uint32_t>(colors.size()));

  ColoredGraph graph;  // with a vertex on every arc, which carries its capacity as a color
  for (const std::int64_t count : parts) graph.colors.push_back(colors.at(count));
  for (const FlowArc& arc : network.arcs()) {
    const auto middle = static_cast<std::uint32_t>(graph.colors.size());
    graph.colors.push_back(arc_colors.at(arc.capacity));
    graph.arcs.emplace_back(arc.tail, middle);
    graph.arcs.emplace_back(middle, arc.head);
  }
  DisjointSets alike(graph.colors.size());
  visit_automorphisms(graph, [&](std::span<const std::uint32_t> renaming) {
    for (std::uint32_t i = 0; i < renaming.size(); ++i) alike.join(i, renaming[i]);
  });
  std::vector<std::uint32_t> unlike;
  std::vector<bool> known(graph.colors.size(), false);
  for (const std::uint32_t rank : ranks) {
    const auto set = alike.find(rank);
    if (known[set]) continue;
    known[set] = true;
    unlike.push_back(rank);
  }
  return unlike;
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
    smallest = rate_of(network, PartCounts(network, {}), flow.source_side(std::span(&root, 1)));
  }
  smallest->parts = 1;
  return *std::move(smallest);
}

}  // namespace

CutRate all_gather_cut(const FlowNetwork& network, std::span<const std::int64_t> parts) {
  const PartCounts counts(network, parts);
  std::vector<__int128> entering(network.vertex_count(), 0);
  for (const FlowArc& arc : network.arcs()) entering[arc.head] += arc.capacity;
  const auto sinks = network.rank_vertices();
  std::size_t slowest = 0;
  const auto others_of = [&](std::size_t rank) { return counts.sum() - counts.of(rank); };
  for (std::size_t rank = 1; rank < sinks.size(); ++rank) {
    if (others_of(rank) * entering[sinks[slowest]] > others_of(slowest) * entering[sinks[rank]]) slowest = rank;
  }
  return largest_rate(network, counts, all_but(network, counts, sinks[slowest]), unlike_ranks(network, counts));
}

CutRate gather_cut(const FlowNetwork& network, Rank root, std::span<const std::int64_t> parts) {
  const PartCounts counts(network, parts);
  const std::uint32_t sink = network.vertex_of(root);
  // The root's own part needs no way: it enters at the sink itself and is part of every flow.
  return largest_rate(network, counts, all_but(network, counts, sink), std::span(&sink, 1));
}

CutRate broadcast_cut(const FlowNetwork& network, Rank root) {
  constexpr __int128 narrow = std::int64_t{1} << 61U;
  const std::uint32_t vertex = network.vertex_of(root);
  return total_capacity(network) < narrow ? smallest_cut<std::int64_t>(network, vertex)
                                          : smallest_cut<__int128>(network, vertex);
}

}  // namespace espalier
