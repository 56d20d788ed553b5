#include "planners/blocks/level_lanes.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::planners {
namespace {

constexpr Bytes lane_message{1 << 20};  ///< Ways are chosen for messages whose bandwidth counts.
constexpr double near_enough = 1 + 1e-7;

const Hop* cheapest_hop(const LogicalGraph& graph, Rank from, Rank to) {
  const std::span<const Hop> hops = graph.hops(from, to);
  const auto least = std::ranges::min_element(hops, {}, &Hop::cost);
  return least == hops.end() ? nullptr : &*least;
}

/// Chooses lanes and their shares.
class LaneSpreader {
 public:
  LaneSpreader(const PlanningProblem& problem, const Collective& collective, const LogicalGraph& graph, double wanted)
      : topology_(problem.topology()),
        graph_(graph),
        wanted_(wanted),
        line_(static_cast<double>(collective.largest_line())),
        spread_{group_ranks(topology_), {}, {}, 0} {
    const std::size_t boxes = count();
    spread_.lanes.resize(boxes * boxes);
    spread_.traffic.assign(boxes * boxes, 0);
    const std::vector<std::uint32_t>& box_of = spread_.boxes.group_of;
    for (std::size_t i = 0; i < topology_.rank_count(); ++i) {
      for (std::size_t j = 0; j < topology_.rank_count(); ++j) {
        if (box_of[i] == box_of[j]) continue;
        spread_.traffic[spread_.place(box_of[i], box_of[j])] += static_cast<double>(collective.block(Rank(i), Rank(j)));
      }
    }
    for (const Link& link : topology_.links()) {
      seconds_.push_back(1 / static_cast<double>(link.bandwidth().bytes_per_second) / line_);
    }
    for (const Node& node : topology_.nodes()) {
      const auto rate = static_cast<double>(node.bandwidth.bytes_per_second);
      seconds_.push_back(rate > 0 ? 1 / rate / line_ : 0);
    }
  }

  Result<LevelLanes> run() {
    if (!spread_.boxes.two_levels()) {
      return fail(ErrorCode::unsupported, "there are no boxes with several ranks to balance traffic in",
                  "use lp or pairwise");
    }
    if (!take_lanes(false)) {
      return fail(ErrorCode::unsupported, "two boxes have no direct way from one to the other", "use lp or pairwise");
    }
    settle();
    constexpr double clearly = 1.01;
    if (spread_.time_per_byte > clearly * wanted_ && may_take_all()) {
      const LevelLanes few = spread_;
      take_lanes(true);
      settle();
      if (few.time_per_byte <= spread_.time_per_byte) spread_ = few;
    }
    return std::move(spread_);
  }

 private:
  [[nodiscard]] std::size_t count() const { return spread_.boxes.groups.size(); }

  [[nodiscard]] bool may_take_all() const {
    constexpr std::size_t max_lanes = 50'000;
    return topology_.rank_count() * topology_.rank_count() <= max_lanes;
  }

  /// False where two boxes that have something for each other have no lane.
  bool take_lanes(bool all) {
    for (std::size_t from = 0; from < count(); ++from) {
      for (std::size_t to = 0; to < count(); ++to) {
        std::vector<Lane>& lanes = spread_.lanes[spread_.place(from, to)];
        lanes.clear();
        if (from == to || spread_.traffic[spread_.place(from, to)] == 0) continue;
        const std::vector<Rank>& senders = spread_.boxes.groups[from];
        const std::vector<Rank>& receivers = spread_.boxes.groups[to];
        if (all) {
          take_all(senders, receivers, lanes);
        } else {
          take_nearest(senders, receivers, lanes);
        }
        if (lanes.empty()) return false;
      }
    }
    return true;
  }

  void add_lane(Rank from, Rank to, std::vector<Lane>& lanes) const {
    const Hop* const hop = cheapest_hop(graph_, from, to);
    if (hop == nullptr) return;
    double slowest = 0;
    for (const LinkId link : hop->links) slowest = std::max(slowest, seconds_[link.index()]);
    lanes.push_back({from, to, hop, 1 / slowest});
  }

  void take_all(const std::vector<Rank>& senders, const std::vector<Rank>& receivers, std::vector<Lane>& lanes) const {
    for (const Rank from : senders) {
      for (const Rank to : receivers) add_lane(from, to, lanes);
    }
  }

  /// Every sender's nearest receiver, and a sender for each receiver that is left.
  void take_nearest(const std::vector<Rank>& senders, const std::vector<Rank>& receivers,
                    std::vector<Lane>& lanes) const {
    std::vector<bool> is_reached(receivers.size(), false);
    for (std::size_t i = 0; i < senders.size(); ++i) {
      const std::size_t to =
          nearest(receivers.size(), i, [&](std::size_t k) { return cost(senders[i], receivers[k]); });
      if (to == receivers.size()) continue;
      is_reached[to] = true;
      add_lane(senders[i], receivers[to], lanes);
    }
    for (std::size_t k = 0; k < receivers.size(); ++k) {
      if (is_reached[k]) continue;
      const std::size_t from =
          nearest(senders.size(), k, [&](std::size_t i) { return cost(senders[i], receivers[k]); });
      if (from != senders.size()) add_lane(senders[from], receivers[k], lanes);
    }
  }

  [[nodiscard]] std::int64_t cost(Rank from, Rank to) const {
    const Hop* const hop = cheapest_hop(graph_, from, to);
    return hop == nullptr ? std::numeric_limits<std::int64_t>::max() : hop->cost;
  }

  /// The cheapest of so many, of equal ones the next from `preferred` on; `size` where none can be reached.
  template <class Cost>
  static std::size_t nearest(std::size_t size, std::size_t preferred, const Cost& cost) {
    std::size_t best = size;
    std::int64_t least = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < size; ++i) {
      const std::size_t at = (preferred + i) % size;
      const std::int64_t costs = cost(at);
      if (costs >= least) continue;
      best = at;
      least = costs;
    }
    return best;
  }

  template <class Call>
  void for_resources(const Lane& lane, const Call& call) const {
    const std::size_t links = topology_.link_count();
    call(links + topology_.node_of(lane.from).index());
    for (const LinkId link : lane.hop->links) {
      call(link.index());
      call(links + topology_.link(link).head.index());
    }
  }

  /// By resource: the seconds per byte of S that it is busy.
  [[nodiscard]] std::vector<double> times() const {
    std::vector<double> busy(seconds_.size(), 0);
    for (std::size_t pair = 0; pair < spread_.lanes.size(); ++pair) {
      for (const Lane& lane : spread_.lanes[pair]) {
        const double amount = lane.share * spread_.traffic[pair];
        for_resources(lane, [&](std::size_t resource) { busy[resource] += amount * seconds_[resource]; });
      }
    }
    return busy;
  }

  void normalise() {
    for (std::vector<Lane>& lanes : spread_.lanes) {
      double sum = 0;
      for (const Lane& lane : lanes) sum += lane.share;
      for (Lane& lane : lanes) lane.share /= sum;
    }
  }

  void settle() {
    constexpr int max_rounds = 60;
    constexpr double min_part = 0.02;  // how empty a lane counts at least, so that no share jumps
    normalise();
    std::vector<std::vector<Lane>> best;
    spread_.time_per_byte = std::numeric_limits<double>::infinity();
    for (int round = 0; round < max_rounds; ++round) {
      const std::vector<double> busy = times();
      const double fullest = *std::ranges::max_element(busy);
      if (fullest < spread_.time_per_byte) {
        spread_.time_per_byte = fullest;
        best = spread_.lanes;
      }
      if (fullest <= near_enough * wanted_) break;
      for (std::vector<Lane>& lanes : spread_.lanes) {
        for (Lane& lane : lanes) {
          double part = min_part;
          for_resources(lane, [&](std::size_t resource) { part = std::max(part, busy[resource] / fullest); });
          lane.share /= std::sqrt(part);
        }
      }
      normalise();
    }
    spread_.lanes = std::move(best);
  }

  const Topology& topology_;
  const LogicalGraph& graph_;
  double wanted_;
  double line_;
  std::vector<double> seconds_;  ///< By link, then by node: per share of the collective, for each byte of S.
  LevelLanes spread_;
};

}  // namespace

Result<LevelLanes> spread_over_lanes(const PlanningProblem& problem, const Collective& collective, double wanted) {
  if (const Rank rank = problem.topology().first_not_relaying(); !rank.is_none()) {
    return fail(ErrorCode::unsupported, "ranks that must not relay cannot balance each other's traffic",
                "use lp or flat");
  }
  return LaneSpreader(problem, collective, problem.logical_graph(Direction::forward, lane_message, 1), wanted).run();
}

}  // namespace espalier::planners
