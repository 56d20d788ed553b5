#include "planners/bounds/cut_rate.h"

#include <algorithm>
#include <optional>
#include <span>

#include "base/check.h"
#include "planners/bounds/like_sinks.h"
#include "topology/analysis/max_flow.h"

namespace espalier::planners {
namespace {

__int128 capacity_leaving(const FlowNetwork& network, const std::vector<bool>& inside) {
  __int128 capacity = 0;
  for (const FlowArc& arc : network.arcs()) {
    if (inside[arc.tail] && !inside[arc.head]) capacity += arc.capacity;
  }
  return capacity;
}

/// How many parts each rank has, and where all of them go: to every rank, or to one that is the root of a gather.
class PartCounts {
 public:
  PartCounts(const FlowNetwork& network, std::span<const std::int64_t> counts, Rank root = {})
      : counts_(counts), sum_(static_cast<__int128>(network.rank_count())), root_(root) {
    if (counts.empty()) return;
    sum_ = 0;
    for (const std::int64_t count : counts) sum_ += count;
  }
  [[nodiscard]] std::int64_t of(std::size_t rank) const { return counts_.empty() ? 1 : counts_[rank]; }
  [[nodiscard]] __int128 sum() const { return sum_; }
  /// The rank that a gather's arc leads into by a backplane that it shares with what the rank sends; else none.
  [[nodiscard]] Rank passes_on(const FlowNetwork& network, const FlowArc& arc) const {
    const Rank rank = root_.is_none() ? Rank() : network.entered_by(arc);
    const bool relays = !rank.is_none() && rank != root_ && network.source_of(rank) == network.vertex_of(rank);
    return relays ? rank : Rank();
  }

 private:
  std::span<const std::int64_t> counts_;
  __int128 sum_;
  Rank root_;
};

/// What a rank's backplane lets into it to be passed on is (backplane - part x its parts) / 2.
void add_relays(const FlowNetwork& network, const PartCounts& counts, CutRate& rate) {
  __int128 shared = 0, parts = 0;
  for (const FlowArc& arc : network.arcs()) {
    const Rank relay = counts.passes_on(network, arc);
    if (relay.is_none() || !rate.inside[arc.tail] || rate.inside[arc.head]) continue;
    rate.has_relays = true;
    shared += arc.capacity;
    parts += counts.of(relay.index());
  }
  if (!rate.has_relays) return;
  rate.capacity = 2 * rate.capacity - shared;
  rate.parts = 2 * rate.parts + parts;
}

/// The capacity of every arc and the flow of a part at the rate of a cut, in whole numbers.
GatherFlow flow_at(const FlowNetwork& network, const PartCounts& counts, const CutRate& rate) {
  const auto passes_on = [&](const FlowArc& arc) { return counts.passes_on(network, arc); };
  const bool has_relays =
      std::ranges::any_of(network.arcs(), [&](const FlowArc& arc) { return !passes_on(arc).is_none(); });
  const int scale = has_relays ? 2 : 1;
  GatherFlow flow{{}, scale * rate.capacity};
  for (const FlowArc& arc : network.arcs()) {
    const Rank relay = passes_on(arc);
    const __int128 capacity = rate.parts * arc.capacity;
    const __int128 left = relay.is_none() ? scale * capacity : capacity - rate.capacity * counts.of(relay.index());
    flow.capacities.push_back(std::max<__int128>(left, 0));
  }
  return flow;
}

CutRate rate_of(const FlowNetwork& network, const PartCounts& counts, std::vector<bool> inside) {
  CutRate rate{0, capacity_leaving(network, inside), std::move(inside)};
  const auto vertices = network.source_vertices();
  for (std::size_t rank = 0; rank < vertices.size(); ++rank) {
    if (rate.inside[vertices[rank]]) rate.parts += counts.of(rank);
  }
  add_relays(network, counts, rate);
  ESPALIER_CHECK(rate.capacity > 0, "a cut between ranks that reach each other has no capacity");
  return rate;
}

bool is_larger(const CutRate& a, const CutRate& b) { return a.parts * b.capacity > b.parts * a.capacity; }

/// The cut around one rank: everything but it.
CutRate all_but(const FlowNetwork& network, const PartCounts& counts, Rank rank) {
  std::vector<bool> inside(network.vertex_count(), true);
  inside[network.vertex_of(rank)] = false;
  inside[network.source_of(rank)] = false;
  return rate_of(network, counts, std::move(inside));
}

/// The largest ratio of a cut around one rank other than the root.
CutRate slowest_to_feed(const FlowNetwork& network, const PartCounts& counts, Rank root) {
  std::vector<__int128> entering(network.vertex_count(), 0);
  for (const FlowArc& arc : network.arcs()) entering[arc.head] += arc.capacity;
  const auto sinks = network.rank_vertices();
  std::optional<std::size_t> slowest;
  const auto others_of = [&](std::size_t rank) { return root.is_none() ? counts.sum() - counts.of(rank) : 1; };
  for (std::size_t rank = 0; rank < sinks.size(); ++rank) {
    if (root == Rank(rank)) continue;
    if (!slowest || others_of(rank) * entering[sinks[*slowest]] > others_of(*slowest) * entering[sinks[rank]]) {
      slowest = rank;
    }
  }
  return all_but(network, counts, Rank(*slowest));
}

__int128 total_capacity(const FlowNetwork& network) {
  __int128 total = 0;
  for (const FlowArc& arc : network.arcs()) total += arc.capacity;
  return total;
}

/// Feeds sinks one after the other with all of a demand.
///
/// What feeds the last sink can feed the next one exactly if all of it can go on from there in the residual graph: two
/// flows of one source differ by a flow from one's sink to the other's. That is a short path between neighbours. Where
/// it is not possible, the set that the last sink still reaches holds the source (else its capacity were negative), so
/// nothing is lost or gained in it, and its capacity is below the demand.
template <class Capacity>
class Feeder {
 public:
  Feeder(MaxFlow<Capacity> flow, std::uint32_t source, Capacity demand)
      : flow_(std::move(flow)), source_(source), last_(source), demand_(demand) {}

  /// The vertices inside a cut that the sink cannot be fed through, with the source; nothing when it is fed.
  std::optional<std::vector<bool>> find_violated(std::uint32_t sink) {
    if (sink == last_) return std::nullopt;
    const Capacity fed = last_ == source_ ? flow_.run(source_, sink, demand_) : flow_.run_more(last_, sink, demand_);
    if (fed != demand_) return flow_.source_side(std::span(&last_, 1));
    last_ = sink;
    return std::nullopt;
  }

 private:
  MaxFlow<Capacity> flow_;
  std::uint32_t source_;
  std::uint32_t last_;  ///< The sink that is fed; the source while there is none.
  Capacity demand_;
};

/// The network with a super source, the last vertex: at the ratio parts / capacity of a cut, every rank but `without`
/// brings `capacity` for each of its parts and every arc carries `parts` times its own, so that all numbers stay whole.
template <class Capacity>
Feeder<Capacity> make_rate_feeder(const FlowNetwork& network, const PartCounts& counts, const CutRate& rate,
                                  Rank without = {}) {
  const auto source = static_cast<std::uint32_t>(network.vertex_count());
  MaxFlow<Capacity> flow(source + 1U);
  const GatherFlow at_rate = flow_at(network, counts, rate);
  const auto part = static_cast<Capacity>(at_rate.part);
  for (std::size_t i = 0; i < network.arcs().size(); ++i) {
    const FlowArc& arc = network.arcs()[i];
    flow.add_arc(arc.tail, arc.head, static_cast<Capacity>(at_rate.capacities[i]));
  }
  const auto vertices = network.source_vertices();
  Capacity brought = 0;
  for (std::size_t rank = 0; rank < vertices.size(); ++rank) {
    if (without == Rank(rank)) continue;
    flow.add_arc(source, vertices[rank], part * static_cast<Capacity>(counts.of(rank)));
    brought += part * static_cast<Capacity>(counts.of(rank));
  }
  return {std::move(flow), source, brought};
}

/// Tries the sinks from `next` on, each once, and returns the first violated cut; `next` stays at its sink, which is
/// the likeliest to be violated again.
template <class Capacity>
std::optional<std::vector<bool>> find_violated(const FlowNetwork& network, const PartCounts& counts,
                                               const CutRate& rate, std::span<const std::uint32_t> sinks,
                                               std::size_t& next) {
  auto feeder = make_rate_feeder<Capacity>(network, counts, rate);
  for (std::size_t tried = 0; tried < sinks.size(); ++tried) {
    const Rank rank = network.rank_at(sinks[next]);
    // A rank that must not relay receives at another vertex than the one where its own part begins, and needs the rest.
    const bool is_apart = network.source_of(rank) != sinks[next];
    auto inside = is_apart ? make_rate_feeder<Capacity>(network, counts, rate, rank).find_violated(sinks[next])
                           : feeder.find_violated(sinks[next]);
    if (inside) {
      inside->pop_back();  // the super source
      return inside;
    }
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
    const bool fits = 2 * rate.parts * links < narrow && 2 * counts.sum() * rate.capacity < narrow;
    auto inside = fits ? find_violated<std::int64_t>(network, counts, rate, sinks, next)
                       : find_violated<__int128>(network, counts, rate, sinks, next);
    if (!inside) return rate;
    CutRate found = rate_of(network, counts, *std::move(inside));
    ESPALIER_CHECK(is_larger(found, rate), "a violated cut must have a larger ratio");
    rate = std::move(found);
  }
}

template <class Capacity>
CutRate smallest_cut(const FlowNetwork& network, Rank root_rank) {
  const std::uint32_t root = network.source_of(root_rank);
  MaxFlow<Capacity> flow(network.vertex_count());
  for (const FlowArc& arc : network.arcs()) flow.add_arc(arc.tail, arc.head, static_cast<Capacity>(arc.capacity));
  const PartCounts counts(network, {});
  CutRate smallest = slowest_to_feed(network, counts, root_rank);
  std::vector<bool> only_root(network.vertex_count(), false);
  only_root[root] = true;
  CutRate around_root = rate_of(network, counts, std::move(only_root));
  if (around_root.capacity <= smallest.capacity) smallest = std::move(around_root);
  Feeder<Capacity> feeder(flow, root, static_cast<Capacity>(smallest.capacity));
  for (const std::uint32_t sink : like_sinks(network, root_rank)) {
    if (sink == network.vertex_of(root_rank)) continue;
    auto inside = feeder.find_violated(sink);
    if (!inside) continue;
    smallest = rate_of(network, counts, *std::move(inside));
    feeder = Feeder<Capacity>(flow, root, static_cast<Capacity>(smallest.capacity));
  }
  smallest.parts = 1;
  return smallest;
}

}  // namespace

CutRate all_gather_cut(const FlowNetwork& network, std::span<const std::int64_t> parts) {
  const PartCounts counts(network, parts);
  const auto all = network.rank_vertices();
  const std::vector<std::uint32_t> sinks =
      parts.empty() ? like_sinks(network) : std::vector<std::uint32_t>(all.begin(), all.end());
  return largest_rate(network, counts, slowest_to_feed(network, counts, {}), sinks);
}

CutRate gather_cut(const FlowNetwork& network, Rank root, std::span<const std::int64_t> parts) {
  const PartCounts counts(network, parts, root);
  const std::uint32_t sink = network.vertex_of(root);
  // The root's own part needs no path: it enters at the sink itself and is part of every flow.
  return largest_rate(network, counts, all_but(network, counts, root), std::span(&sink, 1));
}

GatherFlow gather_flow(const FlowNetwork& network, Rank root, std::span<const std::int64_t> parts,
                       const CutRate& rate) {
  return flow_at(network, PartCounts(network, parts, root), rate);
}

CutRate broadcast_cut(const FlowNetwork& network, Rank root) {
  constexpr __int128 narrow = std::int64_t{1} << 61U;
  return total_capacity(network) < narrow ? smallest_cut<std::int64_t>(network, root)
                                          : smallest_cut<__int128>(network, root);
}

}  // namespace espalier::planners
