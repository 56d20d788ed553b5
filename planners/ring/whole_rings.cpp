#include "planners/ring/whole_rings.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <numeric>
#include <unordered_map>

#include "planners/ring/ring_search.h"

namespace espalier::planners {

namespace {

constexpr std::size_t small_machine = 16;  ///< Up to here the search is exhaustive within its work limit.

/// For graphs where every cycle must pass some link several times.
std::vector<std::int64_t> shared_rates(const std::vector<std::int64_t>& whole) {
  std::vector<std::int64_t> rates;
  for (const std::int64_t rate : whole) {
    for (std::int64_t share = 2; share <= 8; ++share) rates.push_back(rate / share);
  }
  std::sort(rates.begin(), rates.end(), std::greater<>());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  while (!rates.empty() && rates.back() == 0) rates.pop_back();
  return rates;
}

class WholeRings {
 public:
  WholeRings(const Topology& topology, const RankGroups& groups, std::int64_t most)
      : topology_(topology), groups_(groups), most_(most), work_(steps_per_rank(1024)) {}

  std::vector<Ring> run() {
    const std::vector<std::int64_t> whole = whole_rates(topology_);
    for (const std::vector<std::int64_t>& rates : {whole, shared_rates(whole)}) {
      if (groups_.two_levels()) try_rates(rates, &WholeRings::through_hosts);
      if (best_.empty() || is_small()) try_rates(rates, &WholeRings::through_ranks);
      if (!best_.empty()) break;
    }
    return std::move(best_);
  }

 private:
  /// Finds rings of one rate in what is left, the most that its strategy finds.
  using Strategy = std::vector<Ring> (WholeRings::*)(Residual&, std::int64_t rate);

  [[nodiscard]] bool is_small() const { return topology_.rank_count() <= small_machine; }
  [[nodiscard]] WorkBudget steps_per_rank(std::int64_t steps) const {
    return WorkBudget(steps * static_cast<std::int64_t>(topology_.rank_count()));
  }

  void try_rates(const std::vector<std::int64_t>& rates, Strategy strategy) {
    for (const std::int64_t rate : rates) {
      if (total_rate(best_) >= most_) return;
      if (rate > most_) continue;
      Residual residual(topology_);
      std::vector<Ring> rings = (this->*strategy)(residual, rate);
      if (rings.empty()) continue;
      for (const Ring& ring : rings) take(residual, ring, ring.rate);
      add_more(residual, rates, strategy, rings);
      widen(residual, rings);
      if (total_rate(rings) > total_rate(best_)) best_ = std::move(rings);
    }
  }

  std::vector<Ring> through_hosts(Residual& residual, std::int64_t rate) {
    WorkBudget work = steps_per_rank(512);
    return cross_hosts(residual, groups_, rate, work);
  }

  std::vector<Ring> through_ranks(Residual& residual, std::int64_t rate) {
    if (topology_.rank_count() > 2) {
      std::vector<Ring> rings = search(residual, rate, true);
      if (!is_small() && rings.size() < max_rings(residual, rate, true)) {
        WorkBudget work = steps_per_rank(1 << 14);
        std::vector<Ring> rotated = rotate_rings(residual, rate, work);
        if (rotated.size() > rings.size()) rings = std::move(rotated);
      }
      if (!rings.empty()) return rings;
    }
    return search(residual, rate, false);
  }

  std::vector<Ring> search(Residual& residual, std::int64_t rate, bool both_ways) {
    WorkBudget work = steps_per_rank(is_small() ? 256 : 64);
    if (is_small()) work = WorkBudget(std::min(work.left(), work_.left()));
    const std::int64_t allowed = work.left();
    std::vector<Ring> rings = search_rings(residual, rate, both_ways, work);
    work_.spend(allowed - std::max<std::int64_t>(work.left(), 0));
    return rings;
  }

  /// Fills what the first rings left with slower ones, as long as each adds a share worth a channel of its own.
  void add_more(Residual& residual, const std::vector<std::int64_t>& rates, Strategy strategy,
                std::vector<Ring>& rings) {
    constexpr std::int64_t min_share = 32;
    for (const std::int64_t rate : rates) {
      if (total_rate(rings) >= most_) return;
      if (rate > rings.front().rate || rate * min_share < total_rate(rings)) continue;
      for (Ring& ring : (this->*strategy)(residual, rate)) {
        take(residual, ring, ring.rate);
        rings.push_back(std::move(ring));
      }
    }
  }

  /// Gives every ring, in turn, what its links still have.
  static void widen(Residual& residual, std::vector<Ring>& rings) {
    for (Ring& ring : rings) {
      const std::int64_t extra = spare(residual, ring);
      if (extra == 0) continue;
      take(residual, ring, extra);
      ring.rate += extra;
    }
  }

  /// How much faster a ring could be, when it may pass a link or backplane several times.
  static std::int64_t spare(const Residual& residual, const Ring& ring) {
    std::unordered_map<std::uint32_t, std::int64_t> passes;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    std::int64_t max_passes = 1;
    for (const Path& hop : ring.hops) {
      least = std::min(least, residual.room(hop));
      for (const LinkId link : hop) max_passes = std::max(max_passes, ++passes[link.value()]);
      for (const LinkId link : hop) {
        const Topology& topology = residual.topology();
        if (topology.node(topology.link(link).head).bandwidth.bytes_per_second != 0) return 0;
      }
    }
    return least / max_passes;
  }

  static void take(Residual& residual, const Ring& ring, std::int64_t rate) {
    for (const Path& hop : ring.hops) residual.take(hop, rate);
  }

  const Topology& topology_;
  const RankGroups& groups_;
  std::int64_t most_;
  WorkBudget work_;  ///< For all searches of a small machine: other ways are better where this one takes long.
  std::vector<Ring> best_;
};

}  // namespace

std::vector<std::int64_t> whole_rates(const Topology& topology) {
  std::vector<std::int64_t> rates;
  for (const Link& link : topology.links()) rates.push_back(link.bandwidth().bytes_per_second);
  std::sort(rates.begin(), rates.end(), std::greater<>());
  rates.erase(std::unique(rates.begin(), rates.end()), rates.end());
  constexpr std::size_t max_rates = 12;
  if (rates.size() > max_rates) rates.resize(max_rates);
  return rates;
}

std::int64_t total_rate(const std::vector<Ring>& rings) {
  return std::accumulate(rings.begin(), rings.end(), std::int64_t{0},
                         [](std::int64_t total, const Ring& ring) { return total + ring.rate; });
}

std::vector<Ring> search_whole_rings(const Topology& topology, const RankGroups& groups, const Rational& limit) {
  const BigInteger most = numerator(limit) / denominator(limit);
  return WholeRings(topology, groups, most.convert_to<std::int64_t>()).run();
}

}  // namespace espalier::planners
