#include "planners/ring/ring_search.h"

#include <algorithm>
#include <limits>

namespace espalier::planners {

namespace {

constexpr std::size_t exhaustive_ranks = 16;

std::int64_t units_of(const Residual& residual, std::span<const LinkId> links, std::int64_t rate) {
  std::int64_t units = 0;
  for (const LinkId link : links) units += residual.room(link) / rate;
  return units;
}

/// Depth-first search over sets of rings. All begin at rank 0 and are found in lexicographic order of the choices at
/// each step, so no set is met twice.
class RingSearch {
 public:
  RingSearch(Residual& residual, std::int64_t rate, bool both_ways, WorkBudget& work)
      : residual_(residual),
        rate_(rate),
        both_ways_(both_ways),
        work_(work),
        rank_count_(residual.topology().rank_count()),
        on_path_(rank_count_, false) {
    for (std::size_t i = 0; i < rank_count_; ++i) neighbours_.push_back(neighbours_of(Rank(i)));
  }

  std::vector<Ring> run() {
    most_ = max_rings(residual_, rate_, both_ways_);
    if (most_ > 0 && all_reached()) start_ring();
    return std::move(best_);
  }

 private:
  struct Step {
    Rank to;
    std::size_t choice = 0;  ///< Index among the neighbours of the rank before.
    Path there;
    Path back;  ///< Empty unless rings run in both directions.
  };

  /// Nearest first, then in a circle from the rank itself on.
  [[nodiscard]] std::vector<Residual::Reached> neighbours_of(Rank rank) const {
    constexpr std::uint32_t any_length = std::numeric_limits<std::uint32_t>::max() - 1;
    constexpr std::size_t max_neighbours = 64;
    std::vector<Residual::Reached> reached = residual_.reach(rank, rate_, any_length);
    const auto around = [&](Rank other) { return (other.index() + rank_count_ - rank.index()) % rank_count_; };
    std::sort(reached.begin(), reached.end(), [&](const Residual::Reached& a, const Residual::Reached& b) {
      return a.links != b.links ? a.links < b.links : around(a.rank) < around(b.rank);
    });
    if (reached.size() > max_neighbours) reached.resize(max_neighbours);
    return reached;
  }

  /// Whether rank 0 reaches all others at this rate, over ranks; without it there is no ring and no need to look.
  [[nodiscard]] bool all_reached() const {
    std::vector<bool> seen(rank_count_, false);
    std::vector<Rank> pending{Rank(0)};
    seen[0] = true;
    std::size_t count = 1;
    while (!pending.empty()) {
      const Rank rank = pending.back();
      pending.pop_back();
      for (const Residual::Reached& next : neighbours_[rank.index()]) {
        if (seen[next.rank.index()]) continue;
        seen[next.rank.index()] = true;
        pending.push_back(next.rank);
        ++count;
      }
    }
    return count == rank_count_;
  }

  [[nodiscard]] std::size_t ring_count() const { return rings_.size() * (both_ways_ ? 2 : 1); }

  /// Searches the rest of the set; true when the whole search is over.
  bool start_ring() {
    if (ring_count() + max_rings(residual_, rate_, both_ways_) <= best_.size()) return false;
    std::vector<Step> outer;
    std::swap(outer, steps_);
    on_path_.assign(rank_count_, false);
    on_path_[0] = true;
    const bool over = extend(Rank(0), !rings_.empty() && rank_count_ <= exhaustive_ranks);
    std::swap(outer, steps_);
    on_path_.assign(rank_count_, true);
    return over;
  }

  /// `as_before`: all choices so far are those of the ring before, so smaller ones would repeat a set.
  bool extend(Rank from, bool as_before) {
    if (steps_.size() + 1 == rank_count_) return close(from);
    const std::vector<std::size_t> choices = choices_at(from, as_before);
    for (const std::size_t choice : choices) {
      const Rank to = neighbours_[from.index()][choice].rank;
      if (!work_.spend()) return true;
      if (!take_step(from, to, choice)) continue;
      on_path_[to.index()] = true;
      const bool over = extend(to, as_before && choice == rings_.back()[steps_.size() - 1].choice);
      on_path_[to.index()] = false;
      drop_step();
      if (over) return true;
    }
    return false;
  }

  std::vector<std::size_t> choices_at(Rank from, bool as_before) const {
    const std::vector<Residual::Reached>& near = neighbours_[from.index()];
    std::vector<std::size_t> choices;
    const std::size_t first = as_before ? rings_.back()[steps_.size()].choice : 0;
    for (std::size_t i = first; i < near.size(); ++i) {
      if (!on_path_[near[i].rank.index()]) choices.push_back(i);
    }
    if (rank_count_ > exhaustive_ranks) sort_scarce_first(near, choices);
    return choices;
  }

  /// Among the nearest ranks, those with the fewest neighbours left come first: they are hard to reach later
  /// (Warnsdorff's rule).
  void sort_scarce_first(const std::vector<Residual::Reached>& near, std::vector<std::size_t>& choices) const {
    constexpr std::size_t few = 8;
    if (choices.size() > few) return;
    const auto ways_on = [&](std::size_t choice) {
      const std::vector<Residual::Reached>& onward = neighbours_[near[choice].rank.index()];
      return std::count_if(onward.begin(), onward.end(),
                           [&](const auto& next) { return !on_path_[next.rank.index()]; });
    };
    std::stable_sort(choices.begin(), choices.end(), [&](std::size_t a, std::size_t b) {
      if (near[a].links != near[b].links) return near[a].links < near[b].links;
      return ways_on(a) < ways_on(b);
    });
  }

  bool take_step(Rank from, Rank to, std::size_t choice) {
    std::optional<Path> there = residual_.find_route(from, to, rate_);
    if (!there) return false;
    residual_.take(*there, rate_);
    Path back;
    if (both_ways_) {
      std::optional<Path> found = residual_.find_route(to, from, rate_);
      if (!found) {
        residual_.give_back(*there, rate_);
        return false;
      }
      back = std::move(*found);
      residual_.take(back, rate_);
    }
    steps_.push_back({to, choice, std::move(*there), std::move(back)});
    return true;
  }

  void drop_step() {
    residual_.give_back(steps_.back().there, rate_);
    if (both_ways_) residual_.give_back(steps_.back().back, rate_);
    steps_.pop_back();
  }

  bool close(Rank from) {
    // Each undirected cycle would be met twice, once per direction.
    if (both_ways_ && rank_count_ > 2 && steps_.back().to < steps_.front().to) return false;
    if (!work_.spend()) return true;
    if (!take_step(from, Rank(0), 0)) return false;
    rings_.push_back(steps_);
    if (ring_count() > best_.size()) keep_best();
    const bool over = best_.size() >= most_ || start_ring();
    rings_.pop_back();
    drop_step();
    return over;
  }

  void keep_best() {
    best_.clear();
    for (const std::vector<Step>& steps : rings_) {
      Ring ring;
      Ring reverse;
      ring.rate = reverse.rate = rate_;
      ring.order = {Rank(0)};
      for (const Step& step : steps) {
        ring.hops.push_back(step.there);
        reverse.hops.push_back(step.back);
        if (step.to != Rank(0)) ring.order.push_back(step.to);
      }
      reverse.order = ring.order;
      std::reverse(reverse.order.begin() + 1, reverse.order.end());
      std::reverse(reverse.hops.begin(), reverse.hops.end());
      best_.push_back(std::move(ring));
      if (both_ways_) best_.push_back(std::move(reverse));
    }
  }

  Residual& residual_;
  std::int64_t rate_;
  bool both_ways_;
  WorkBudget& work_;
  std::size_t rank_count_;
  std::size_t most_ = 0;
  std::vector<std::vector<Residual::Reached>> neighbours_;
  std::vector<bool> on_path_;
  std::vector<Step> steps_;
  std::vector<std::vector<Step>> rings_;
  std::vector<Ring> best_;
};

}  // namespace

std::size_t max_rings(const Residual& residual, std::int64_t rate, bool both_ways) {
  const Topology& topology = residual.topology();
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    least = std::min(
        {least, units_of(residual, topology.out_links(node), rate), units_of(residual, topology.in_links(node), rate)});
  }
  return static_cast<std::size_t>(both_ways ? least - least % 2 : least);
}

std::vector<Ring> search_rings(Residual& residual, std::int64_t rate, bool both_ways, WorkBudget& work) {
  return RingSearch(residual, rate, both_ways, work).run();
}

}  // namespace espalier::planners
