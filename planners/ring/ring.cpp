#include "planners/ring/ring.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "planners/ring/equal_rings.h"
#include "planners/ring/held_karp.h"
#include "planners/ring/negotiated_rings.h"
#include "planners/ring/ring_forest.h"
#include "planners/ring/ring_limit.h"
#include "planners/ring/ring_program.h"
#include "planners/ring/tiled_rings.h"
#include "planners/ring/whole_rings.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/reachable.h"

namespace espalier::planners {

namespace {

/// Goes from what is quickly found to what is slowly proven, and stops where a limit is reached.
class RingFinder {
 public:
  explicit RingFinder(const PlanningProblem& problem) : problem_(problem), topology_(problem.topology()) {}

  RingSet run() {
    Rational limit = ring_limit(problem_);
    const RankGroups groups = group_ranks(topology_);
    best_.rings = search_whole_rings(topology_, groups, limit);
    if (reaches(limit) || find_one_way(limit) || find_tiled(groups, limit)) return finish(limit);
    RingSet fractions = good_fractional_rings(topology_);
    if (!reaches(fractions, limit) && topology_.rank_count() <= max_held_karp_vertices) {
      if (std::optional<RingSet> optimum = best_fractional_rings(topology_)) {
        limit = optimum->limit;
        fractions = *std::move(optimum);
      }
    }
    if (fractions.rate() > best_.rate()) {
      const std::size_t fewer = fractions.rings.size() - 1;
      const Rational goal = reaches(fractions, limit) ? limit : fractions.rate();
      best_ = std::move(fractions);
      find_fewer(goal, std::min(max_equal_rings, fewer));
    }
    best_.is_best = limit == 0;
    return best_.is_best ? std::move(best_) : finish(limit);
  }

 private:
  static constexpr std::size_t max_ranks_one_way = 64;
  static constexpr std::size_t max_equal_rings = 32;
  static constexpr std::int64_t steps_per_set = 1 << 17;
  static constexpr std::int64_t max_negotiation_steps = 2048;
  static constexpr std::int64_t negotiation_work = std::int64_t{1} << 27;

  static bool reaches(const RingSet& set, const Rational& limit) {
    const Rational lost(set.rounded ? BigInteger(set.rings.size()) : BigInteger(0), set.period);
    return !set.rings.empty() && set.rate() + lost >= limit;
  }
  [[nodiscard]] bool reaches(const Rational& limit) const { return reaches(best_, limit); }

  RingSet finish(const Rational& limit) {
    best_.limit = limit;
    best_.is_best = reaches(limit);
    return std::move(best_);
  }

  void take_better(RingSet set) {
    if (set.rate() > best_.rate()) best_ = std::move(set);
  }

  /// Rings over whole links that are no pairs with their reverse, as many as the limit allows or a few less.
  bool find_one_way(const Rational& limit) {
    if (!is_direct(topology_) || topology_.rank_count() > max_ranks_one_way) return false;
    constexpr std::size_t max_less = 2;
    for (const std::int64_t rate : whole_rates(topology_)) {
      const Rational times = limit / rate;
      const BigInteger most = numerator(times) / denominator(times);
      if (most == 0 || most > max_equal_rings) continue;
      const auto count = most.convert_to<std::size_t>();
      for (std::size_t less = 0;
           less <= max_less && less < count && best_.rate() < Rational(BigInteger(rate) * (count - less)); ++less) {
        WorkBudget work(steps_per_set);
        if (auto set = find_equal_rings(topology_, rate, count - less, work)) take_better(*std::move(set));
      }
      if (reaches(limit)) return true;
    }
    return false;
  }

  /// Machines that are alike are passed alike.
  bool find_tiled(const RankGroups& groups, const Rational& limit) {
    const std::size_t size = groups.groups.front().size();
    const auto alike = [&](const std::vector<Rank>& group) { return group.size() == size; };
    if (!groups.two_levels() || groups.groups.size() == 2 || 2 * size > max_ranks_one_way) return false;
    if (!std::ranges::all_of(groups.groups, alike)) return false;
    const MachinePair pair = first_pair(topology_, groups);
    if (find_unreachable(pair.topology)) return false;
    RingSet tiled;
    tiled.rings = tile_rings(topology_, groups, pair, find_rings(pair.topology));
    take_better(std::move(tiled));
    return reaches(limit);
  }

  /// The same rate with few rings, all alike.
  void find_fewer(const Rational& rate, std::size_t most) {
    const bool direct = is_direct(topology_) && topology_.rank_count() <= max_ranks_one_way;
    const auto ranks = static_cast<std::int64_t>(topology_.rank_count());
    WorkBudget work(std::min(max_negotiation_steps, negotiation_work / (ranks * ranks * ranks)));
    for (std::size_t count = 1; count <= most && work.left() > 0; ++count) {
      WorkBudget direct_work(steps_per_set / 8);
      std::optional<RingSet> set;
      if (direct) set = find_equal_rings(topology_, rate / count, count, direct_work);
      if (!set) set = negotiate_rings(problem_, rate / count, count, work);
      if (!set) continue;
      best_ = *std::move(set);
      return;
    }
  }

  const PlanningProblem& problem_;
  const Topology& topology_;
  RingSet best_;
};

}  // namespace

Rational RingSet::rate() const {
  BigInteger bytes = 0;
  for (const Ring& ring : rings) bytes += ring.rate;
  return Rational(bytes, period);
}

RingSet find_rings(const PlanningProblem& problem) {
  RingSet set;
  set.is_best = problem.topology().rank_count() < 2;
  return set.is_best ? set : RingFinder(problem).run();
}

bool goes_round_rings(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::reduce_scatter:
    case CollectiveKind::all_gather:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: return true;
    default: return false;
  }
}

Result<Schedule> schedule_of_rings(const Topology& topology, const Collective& collective, const RingSet& set) {
  const Result<Forest> forest = in_proportion(forest_of_rings(set, collective), collective);
  if (!forest) return tl::unexpected(forest.error());
  return schedule_from_trees(collective, topology, "ring", *forest);
}

Result<Schedule> plan_ring(const PlanningProblem& problem, const Collective& collective) {
  const Topology& topology = problem.topology();
  if (!goes_round_rings(collective.kind)) {
    return fail(ErrorCode::unsupported,
                "ring does not plan " + std::string(to_string(collective.kind)) +
                    ": its data would pass every rank on the way to one",
                "use pairwise for all_to_all and send_recv, flat for gather and scatter");
  }
  if (const Rank rank = topology.first_not_relaying(); !rank.is_none() && topology.rank_count() > 2) {
    return fail(ErrorCode::unsupported,
                "every ring passes through " + topology.rank_name(rank) + ", which must not relay",
                "use packing, lp or flat");
  }
  const RingSet set = find_rings(problem);
  if (set.rings.empty() && collective.rank_count > 1) {
    return fail(ErrorCode::unsupported,
                "ring finds no cycle through all " + std::to_string(collective.rank_count) + " ranks of " +
                    topology.name() + " along its links",
                "use packing or tree, which work on every connected graph");
  }
  return schedule_of_rings(topology, collective, set);
}

}  // namespace espalier::planners
