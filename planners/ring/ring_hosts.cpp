#include <algorithm>
#include <optional>

#include "planners/ring/ring_search.h"

namespace espalier::planners {

namespace {

/// Finds rings machine by machine. Ring after ring starts at the next rank of the first machine, and in every machine
/// goes in at one rank and out at another, stepping one rank forwards and backwards in turn, so that at each machine
/// the rings' entries are all different and so are their exits.
class HostRings {
 public:
  HostRings(Residual& residual, const RankGroups& groups, std::int64_t rate, WorkBudget& work)
      : residual_(residual), groups_(groups.groups), rate_(rate), work_(work) {}

  std::vector<Ring> run() {
    std::vector<Ring> rings;
    const std::size_t starts = groups_.front().size();
    std::size_t failures = 0;
    for (std::size_t start = 0; failures < starts && work_.left() > 0; start = (start + 1) % starts) {
      failures = find_ring(start) ? 0 : failures + 1;
      if (failures == 0) rings.push_back(begin_with_first_rank());
    }
    for (const Ring& ring : rings) {
      for (const Path& hop : ring.hops) residual_.give_back(hop, rate_);
    }
    return rings;
  }

 private:
  /// The route back to the start is taken first: when the rail of entry is full, nothing else need be tried.
  bool find_ring(std::size_t start) {
    constexpr std::int64_t steps_per_rank = 32;
    const std::vector<Rank>& last = groups_.back();
    for (std::size_t i = 0; i < last.size(); ++i) {
      last_exit_ = (start + i) % last.size();
      const std::optional<Path> closing = residual_.find_route(last[last_exit_], groups_.front()[start], rate_);
      if (!closing) continue;
      residual_.take(*closing, rate_);
      ring_ = {};
      ring_.rate = rate_;
      const std::int64_t most = steps_per_rank * static_cast<std::int64_t>(residual_.topology().rank_count());
      ring_work_ = WorkBudget(std::min(work_.left(), most));
      const std::int64_t allowed = ring_work_.left();
      const bool found = visit(start);
      work_.spend(allowed - std::max<std::int64_t>(ring_work_.left(), 0));
      if (found) {
        ring_.hops.push_back(*closing);
        return true;
      }
      residual_.give_back(*closing, rate_);
    }
    return false;
  }

  /// Where the ring should leave a machine that it enters at `entry`: one rank on, one back, and so on; with an odd
  /// number of machines the last three are one on, one on, two back, so that it always ends where it began.
  [[nodiscard]] std::size_t wanted_exit(std::size_t group, std::size_t entry) const {
    const std::size_t size = groups_[group].size();
    const bool odd = groups_.size() % 2 == 1;
    std::size_t step = group % 2 == 0 ? 1 : size - 1;
    if (odd && group + 2 == groups_.size()) step = 1;
    if (odd && group + 1 == groups_.size()) step = 2 * size - 2;
    return (entry + step) % size;
  }

  /// A machine on the way, and what was tried there.
  struct Stop {
    std::size_t group = 0;
    std::size_t entry = 0;  ///< By which of its ranks it was entered.
    std::size_t exits = 0;  ///< So many were tried, or the one that the ring is at.
    std::size_t exit = 0;
    std::size_t entries = 0;  ///< Into the next machine, from this exit.
    bool is_across = false;
    std::size_t hops_before = 0;
    std::size_t ranks_before = 0;
  };

  /// Completes the ring from the first machine on, entered at this rank, depth first; there may be too many machines
  /// for recursion. True when it reached the last machine's exit; its hops are then taken from the residual.
  bool visit(std::size_t start) {
    std::vector<Stop> stops = {{.entry = start}};
    while (!stops.empty()) {
      Stop& stop = stops.back();
      if (!stop.is_across && !cross(stop)) {
        stops.pop_back();
        if (!stops.empty()) drop_hop();
        continue;
      }
      if (stop.group + 1 == groups_.size()) return true;
      if (const auto entry = leave(stop)) {
        const std::size_t next = stop.group + 1;
        stops.push_back({.group = next, .entry = *entry});
        continue;
      }
      while (ring_.hops.size() > stop.hops_before) drop_hop();
      ring_.order.resize(stop.ranks_before);
      stop.is_across = false;
    }
    return false;
  }

  /// Through a machine to the next of its exits that is reached.
  bool cross(Stop& stop) {
    const std::size_t size = groups_[stop.group].size();
    const bool last = stop.group + 1 == groups_.size();
    const std::size_t wanted = last ? last_exit_ : wanted_exit(stop.group, stop.entry);
    while (stop.exits < (last ? 1 : size)) {
      stop.exit = (wanted + stop.exits++) % size;
      if (stop.exit == stop.entry && size > 1) continue;
      if (!ring_work_.spend()) return false;
      stop.hops_before = ring_.hops.size();
      stop.ranks_before = ring_.order.size();
      if (!cross_group(stop.group, stop.entry, stop.exit)) continue;
      stop.is_across = true;
      stop.entries = 0;
      return true;
    }
    return false;
  }

  /// From the exit into the next machine: by which of its ranks.
  std::optional<std::size_t> leave(Stop& stop) {
    const std::vector<Rank>& next = groups_[stop.group + 1];
    while (stop.entries < next.size()) {
      const std::size_t entry = (stop.exit + stop.entries++) % next.size();
      if (!ring_work_.spend()) return std::nullopt;
      if (take(groups_[stop.group][stop.exit], next[entry])) return entry;
    }
    return std::nullopt;
  }

  /// A path through all ranks of a machine from `entry` to `exit`, depth first.
  bool cross_group(std::size_t group, std::size_t entry, std::size_t exit) {
    const std::vector<Rank>& ranks = groups_[group];
    visited_.assign(ranks.size(), false);
    visited_[entry] = visited_[exit] = true;
    const std::size_t before = ring_.order.size();
    ring_.order.push_back(ranks[entry]);
    const bool found = ranks.size() == 1 || extend(ranks, entry, exit, ranks.size() - 2);
    if (!found) ring_.order.resize(before);
    return found;
  }

  bool extend(const std::vector<Rank>& ranks, std::size_t at, std::size_t exit, std::size_t left) {
    for (std::size_t i = 1; i < ranks.size(); ++i) {
      const std::size_t next = left == 0 ? exit : (at + i) % ranks.size();
      if (left > 0 && visited_[next]) continue;
      if (!ring_work_.spend()) return false;
      if (take(ranks[at], ranks[next])) {
        ring_.order.push_back(ranks[next]);
        if (left == 0) return true;
        visited_[next] = true;
        if (extend(ranks, next, exit, left - 1)) return true;
        visited_[next] = false;
        ring_.order.pop_back();
        drop_hop();
      }
      if (left == 0) return false;
    }
    return false;
  }

  bool take(Rank from, Rank to) {
    std::optional<Path> hop = residual_.find_route(from, to, rate_);
    if (!hop) return false;
    residual_.take(*hop, rate_);
    ring_.hops.push_back(std::move(*hop));
    return true;
  }

  void drop_hop() {
    residual_.give_back(ring_.hops.back(), rate_);
    ring_.hops.pop_back();
  }

  [[nodiscard]] Ring begin_with_first_rank() const {
    Ring ring = ring_;
    const auto first = std::find(ring.order.begin(), ring.order.end(), Rank(0)) - ring.order.begin();
    std::rotate(ring.order.begin(), ring.order.begin() + first, ring.order.end());
    std::rotate(ring.hops.begin(), ring.hops.begin() + first, ring.hops.end());
    return ring;
  }

  Residual& residual_;
  const std::vector<std::vector<Rank>>& groups_;
  std::int64_t rate_;
  WorkBudget& work_;
  WorkBudget ring_work_;  ///< What one ring may spend, so that a hopeless start leaves something for the next.
  std::size_t last_exit_ = 0;
  Ring ring_;
  std::vector<bool> visited_;
};

}  // namespace

std::vector<Ring> cross_hosts(Residual& residual, const RankGroups& groups, std::int64_t rate, WorkBudget& work) {
  return HostRings(residual, groups, rate, work).run();
}

}  // namespace espalier::planners
