#include <algorithm>

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
      const bool found = visit(0, start);
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

  /// Completes the ring from the group-th machine on, entered at its entry-th rank. True when it reached the last
  /// machine's exit; its hops are then taken from the residual.
  bool visit(std::size_t group, std::size_t entry) {
    const std::size_t size = groups_[group].size();
    const bool last = group + 1 == groups_.size();
    const std::size_t wanted = last ? last_exit_ : wanted_exit(group, entry);
    for (std::size_t i = 0; i < (last ? 1 : size); ++i) {
      const std::size_t exit = (wanted + i) % size;
      if (exit == entry && size > 1) continue;
      if (!ring_work_.spend()) return false;
      const std::size_t hops_before = ring_.hops.size();
      const std::size_t ranks_before = ring_.order.size();
      if (!cross_group(group, entry, exit)) continue;
      if (last || leave(group, exit)) return true;
      while (ring_.hops.size() > hops_before) drop_hop();
      ring_.order.resize(ranks_before);
    }
    return false;
  }

  /// From the exit into the next machine, and on from there.
  bool leave(std::size_t group, std::size_t exit) {
    const std::vector<Rank>& next = groups_[group + 1];
    for (std::size_t i = 0; i < next.size(); ++i) {
      const std::size_t entry = (exit + i) % next.size();
      if (!ring_work_.spend()) return false;
      if (!take(groups_[group][exit], next[entry])) continue;
      if (visit(group + 1, entry)) return true;
      drop_hop();
    }
    return false;
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
