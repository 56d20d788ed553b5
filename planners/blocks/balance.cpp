#include "planners/blocks/balance.h"

#include <algorithm>
#include <array>
#include <string>

#include "planners/blocks/block_schedule.h"
#include "planners/blocks/level_lanes.h"
#include "planners/bounds/matrix_cuts.h"

namespace espalier::planners {
namespace {

/// Room beyond its part that a lane takes, so that blocks are not cut for a rest: one of so many.
constexpr std::int64_t slack = 512;

/// What is left of a block of two boxes.
struct Rest {
  Rank from;
  Rank to;
  std::int64_t units = 0;
};

/// Deals blocks to lanes and writes their paths.
class BlockDealer {
 public:
  BlockDealer(const PlanningProblem& problem, const Collective& collective, const LevelLanes& spread,
              Splitting splitting)
      : collective_(collective),
        spread_(spread),
        is_exact_(splitting == Splitting::exact),
        graph_(problem.logical_graph(Direction::forward, Bytes{1 << 20}, 1)),
        schedule_(collective, problem.topology(), "balance", BlockSchedule::fine_units(collective)),
        inner_(problem.topology().rank_count() * problem.topology().rank_count()) {}

  Result<Schedule> run() {
    const std::size_t boxes = spread_.boxes.groups.size();
    for (std::size_t from = 0; from < boxes; ++from) {
      for (std::size_t to = 0; to < boxes; ++to) {
        if (from == to) {
          deal_inside(spread_.boxes.groups[from]);
        } else {
          deal_between(from, to);
        }
      }
    }
    if (!lacks_hop_) return std::move(schedule_).finish();
    return fail(ErrorCode::unsupported, "ranks of a box do not all reach each other directly", "use lp or pairwise");
  }

 private:
  [[nodiscard]] std::int64_t units_of(Rank from, Rank to) const {
    return collective_.block(from, to) * schedule_.units_per_share();
  }

  /// A hop inside a box.
  RouteId inner_hop(Rank from, Rank to) {
    RouteId& known = inner_[from.index() * collective_.rank_count + to.index()];
    if (!known.is_none()) return known;
    const std::span<const Hop> hops = graph_.hops(from, to);
    const auto least = std::ranges::min_element(hops, {}, &Hop::cost);
    if (least == hops.end()) {
      lacks_hop_ = true;
      return known;
    }
    return known = schedule_.add_hop(from, to, least->links);
  }

  void deal_inside(const std::vector<Rank>& ranks) {
    for (const Rank from : ranks) {
      for (const Rank to : ranks) {
        if (from == to || units_of(from, to) == 0) continue;
        const std::array hops{inner_hop(from, to)};
        if (!lacks_hop_) schedule_.add_piece(from, to, hops, units_of(from, to));
      }
    }
  }

  void deal_between(std::size_t from, std::size_t to) {
    const std::vector<Lane>& lanes = spread_.lanes[spread_.place(from, to)];
    if (lanes.empty() || lacks_hop_) return;
    const std::vector<Rank>& senders = spread_.boxes.groups[from];
    const std::vector<Rank>& receivers = spread_.boxes.groups[to];
    open_lanes(lanes, senders, receivers);
    std::vector<Rest> rests;
    for (const Rank sender : senders) deal_own(sender, receivers, lanes, rests);
    for (Rest& rest : rests) {
      for (std::size_t i = 0; i < lanes.size(); ++i) {
        if (lanes[i].to == rest.to) take(rest, i, lanes);
      }
    }
    for (Rest& rest : rests) deal_anywhere(rest, lanes);
  }

  /// Every lane's room and the route over it.
  void open_lanes(const std::vector<Lane>& lanes, const std::vector<Rank>& senders,
                  const std::vector<Rank>& receivers) {
    std::int64_t all = 0;
    for (const Rank sender : senders) {
      for (const Rank receiver : receivers) all += units_of(sender, receiver);
    }
    std::vector<double> shares;
    routes_.clear();
    for (const Lane& lane : lanes) {
      shares.push_back(lane.share);
      routes_.push_back(schedule_.add_hop(lane.from, lane.to, lane.hop->links));
    }
    room_ = divide_units(all, shares);
    if (is_exact_) return;
    for (std::int64_t& room : room_) room += room / slack + 1;
    min_piece_ = all / static_cast<std::int64_t>(lanes.size()) / slack;
  }

  /// Along a sender's own lanes: first what the rank at their end is promised, then all else in order.
  void deal_own(Rank sender, const std::vector<Rank>& receivers, const std::vector<Lane>& lanes,
                std::vector<Rest>& rests) {
    std::vector<Rest> blocks;
    for (const Rank receiver : receivers) {
      if (units_of(sender, receiver) > 0) blocks.push_back({sender, receiver, units_of(sender, receiver)});
    }
    for (const bool only_straight : {true, false}) {
      for (Rest& block : blocks) {
        for (std::size_t i = 0; i < lanes.size(); ++i) {
          if (lanes[i].from == sender && (!only_straight || lanes[i].to == block.to)) take(block, i, lanes);
        }
      }
    }
    for (const Rest& block : blocks) {
      if (block.units > 0) rests.push_back(block);
    }
  }

  void deal_anywhere(Rest& rest, const std::vector<Lane>& lanes) {
    while (rest.units > 0) {
      const auto widest = static_cast<std::size_t>(std::ranges::max_element(room_) - room_.begin());
      if (room_[widest] <= 0) room_[widest] = rest.units;
      take(rest, widest, lanes);
    }
  }

  /// As much of a block over a lane as has room there; all of it where the rest would be next to nothing.
  void take(Rest& block, std::size_t lane, const std::vector<Lane>& lanes) {
    if (room_[lane] <= 0 || block.units == 0) return;
    std::int64_t units = std::min(block.units, room_[lane]);
    if (block.units - units < min_piece_) units = block.units;
    std::array<RouteId, 3> hops;
    std::size_t count = 0;
    if (block.from != lanes[lane].from) hops[count++] = inner_hop(block.from, lanes[lane].from);
    hops[count++] = routes_[lane];
    if (block.to != lanes[lane].to) hops[count++] = inner_hop(lanes[lane].to, block.to);
    if (!lacks_hop_) schedule_.add_piece(block.from, block.to, std::span(hops).first(count), units);
    room_[lane] -= units;
    block.units -= units;
  }

  const Collective& collective_;
  const LevelLanes& spread_;
  bool is_exact_;
  const LogicalGraph& graph_;
  BlockSchedule schedule_;
  std::vector<RouteId> inner_;  ///< By two ranks of a box.
  std::vector<RouteId> routes_;
  std::vector<std::int64_t> room_;
  std::int64_t min_piece_ = 0;
  bool lacks_hop_ = false;
};

}  // namespace

Result<Schedule> plan_balance(const PlanningProblem& problem, const Collective& collective, Splitting splitting) {
  if (!collective.has_matrix()) {
    return fail(ErrorCode::unsupported, "balance plans all_to_all by a traffic matrix alone",
                "give one with --matrix, or use lp or pairwise");
  }
  const BlockCut cut = tightest_block_cut(problem.topology(), collective);
  const auto spread = spread_over_lanes(problem, collective, to_double(cut.time_per_byte));
  if (!spread) return tl::unexpected(spread.error());
  return BlockDealer(problem, collective, *spread, splitting).run();
}

}  // namespace espalier::planners
