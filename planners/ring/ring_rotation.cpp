#include <algorithm>

#include "base/random.h"
#include "planners/ring/ring_search.h"

namespace espalier::planners {

namespace {

/// One attempt after the other at sets of undirected cycles along cables with room in both directions.
class Rotation {
 public:
  Rotation(Residual& residual, std::int64_t rate, WorkBudget& work)
      : residual_(residual), rate_(rate), work_(work), rank_count_(residual.topology().rank_count()) {}

  std::vector<Ring> run() {
    constexpr std::uint64_t max_attempts = 64;
    const std::size_t most = max_rings(residual_, rate_, true);
    std::vector<Ring> best;
    for (std::uint64_t seed = 0; seed < max_attempts && best.size() < most && work_.left() > 0; ++seed) {
      random_ = Random(seed);
      std::vector<Ring> found = attempt();
      if (found.empty()) work_.spend(static_cast<std::int64_t>(rank_count_));
      if (found.size() > best.size()) best = std::move(found);
    }
    return best;
  }

 private:
  std::vector<Ring> attempt() {
    std::vector<Ring> rings;
    while (find_cycle()) add_both_ways(rings);
    for (const Ring& ring : rings) {
      for (const Path& hop : ring.hops) residual_.give_back(hop, rate_);
    }
    return rings;
  }

  /// The cable's link from one rank to another that has room, or none.
  [[nodiscard]] LinkId link_to(Rank from, Rank to) const {
    const Topology& topology = residual_.topology();
    for (const LinkId id : topology.out_links(topology.node_of(from))) {
      if (topology.link(id).head == topology.node_of(to) && residual_.room(std::span(&id, 1)) >= rate_) return id;
    }
    return {};
  }

  void list_neighbours() {
    const Topology& topology = residual_.topology();
    neighbours_.assign(rank_count_, {});
    for (std::size_t i = 0; i < rank_count_; ++i) {
      std::vector<Rank>& near = neighbours_[i];
      for (const LinkId id : topology.out_links(topology.node_of(Rank(i)))) {
        const Rank rank = topology.rank_of(topology.link(id).head);
        if (!rank.is_none() && !link_to(Rank(i), rank).is_none() && !link_to(rank, Rank(i)).is_none()) {
          near.push_back(rank);
        }
      }
      std::sort(near.begin(), near.end());
      near.erase(std::unique(near.begin(), near.end()), near.end());
    }
  }

  /// Leaves a cycle in path_; false when the steps run out first.
  bool find_cycle() {
    list_neighbours();
    const auto lonely = [](const std::vector<Rank>& near) { return near.size() < 2; };
    if (std::any_of(neighbours_.begin(), neighbours_.end(), lonely)) return false;
    path_.assign(1, Rank(random_.below(rank_count_)));
    place_.assign(rank_count_, rank_count_);
    place_[path_.front().index()] = 0;
    const std::size_t max_rotations = 40 * rank_count_;
    for (std::size_t rotations = 0; rotations < max_rotations;) {
      if (append()) continue;
      if (path_.size() == rank_count_ && adjacent(path_.back(), path_.front())) return true;
      if (!work_.spend(static_cast<std::int64_t>(path_.size() / 4 + 1))) return false;
      if (rotations % 8 == 7) turn_round();
      rotate();
      ++rotations;
    }
    return false;
  }

  [[nodiscard]] bool on_path(Rank rank) const { return place_[rank.index()] < rank_count_; }
  [[nodiscard]] bool adjacent(Rank a, Rank b) const {
    return std::binary_search(neighbours_[a.index()].begin(), neighbours_[a.index()].end(), b);
  }

  /// Goes on to the neighbour that has the fewest neighbours left itself; of equal ones to a random one.
  bool append() {
    Rank next;
    std::int64_t fewest = 0;
    std::uint64_t equal = 0;
    for (const Rank rank : neighbours_[path_.back().index()]) {
      if (on_path(rank)) continue;
      const std::vector<Rank>& onward = neighbours_[rank.index()];
      const auto left = std::count_if(onward.begin(), onward.end(), [&](Rank other) { return !on_path(other); });
      if (next.is_none() || left < fewest) equal = 0;
      if (!next.is_none() && left > fewest) continue;
      if (random_.below(++equal) == 0) next = rank;
      fewest = left;
    }
    if (next.is_none()) return false;
    place_[next.index()] = path_.size();
    path_.push_back(next);
    return true;
  }

  /// With a cable from the end to an inner rank, everything behind that rank is reversed: a path with a new end.
  void rotate() {
    const std::vector<Rank>& near = neighbours_[path_.back().index()];
    const Rank pivot = near[random_.below(near.size())];
    reverse_from(place_[pivot.index()] + 1);
  }

  void turn_round() { reverse_from(0); }

  void reverse_from(std::size_t first) {
    std::reverse(path_.begin() + static_cast<std::ptrdiff_t>(first), path_.end());
    for (std::size_t i = first; i < path_.size(); ++i) place_[path_[i].index()] = i;
  }

  void add_both_ways(std::vector<Ring>& rings) {
    std::rotate(path_.begin(), std::find(path_.begin(), path_.end(), Rank(0)), path_.end());
    for (const bool backwards : {false, true}) {
      Ring ring;
      ring.order = path_;
      ring.rate = rate_;
      if (backwards) std::reverse(ring.order.begin() + 1, ring.order.end());
      for (std::size_t i = 0; i < rank_count_; ++i) {
        ring.hops.push_back({link_to(ring.order[i], ring.order[(i + 1) % rank_count_])});
        residual_.take(ring.hops.back(), rate_);
      }
      rings.push_back(std::move(ring));
    }
  }

  Residual& residual_;
  std::int64_t rate_;
  WorkBudget& work_;
  std::size_t rank_count_;
  Random random_{0};
  std::vector<std::vector<Rank>> neighbours_;
  std::vector<Rank> path_;
  std::vector<std::size_t> place_;  ///< Where a rank is on the path; rank_count_ when it is not on it.
};

}  // namespace

std::vector<Ring> rotate_rings(Residual& residual, std::int64_t rate, WorkBudget& work) {
  if (residual.topology().rank_count() < 3) return {};
  return Rotation(residual, rate, work).run();
}

}  // namespace espalier::planners
