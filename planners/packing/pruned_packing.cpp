#include "planners/packing/pruned_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/parallel.h"
#include "planners/packing/equal_packing.h"
#include "planners/packing/find/tree_program.h"
#include "planners/packing/packing.h"
#include "planners/packing/problem.h"
#include "planners/symmetry/canonical_network.h"
#include "schedule/loads.h"
#include "topology/reachable.h"

namespace espalier::planners {

namespace {

/// A collective as one program per direction that it needs.
struct Halves {
  std::optional<TreeProgram> in;
  std::optional<TreeProgram> out;
};

/// Errors: unsupported where trees of a number or height are not made.
Result<void> check_limited(const Topology& topology, const Collective& collective) {
  const bool packed = collective.kind == CollectiveKind::all_gather ||
                      collective.kind == CollectiveKind::reduce_scatter ||
                      collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::broadcast ||
                      collective.kind == CollectiveKind::reduce;
  if (!packed) {
    return fail(ErrorCode::unsupported,
                fmt::format("no trees span the ranks in {}: their number and height cannot be limited",
                            to_string(collective.kind)),
                "leave the limits out");
  }
  if (!collective.shares.empty()) {
    return fail(ErrorCode::unsupported, "the number and height of trees are limited for equal shards only",
                "leave the limits out");
  }
  if (auto reached = check_reachable(topology); !reached) return reached;
  if (collective.kind == CollectiveKind::all_reduce && !topology.first_not_relaying().is_none()) {
    return fail(ErrorCode::unsupported, "the trees of an all_reduce are not limited where ranks must not relay",
                "leave the limits out");
  }
  return {};
}

Result<Halves> make_halves(const PlanningProblem& problem, const Collective& collective, const PlanContext& context) {
  const Topology& topology = problem.topology();
  if (auto possible = check_limited(topology, collective); !possible) return tl::unexpected(possible.error());
  Halves halves;
  const bool needs_in = reduces(collective.kind);
  const bool needs_out = !needs_in || collective.kind == CollectiveKind::all_reduce;
  if (needs_in)
    halves.in = TreeProgram::make(problem, Direction::reversed, collective.root, Symmetry::free, {}, context);
  if (needs_out)
    halves.out = TreeProgram::make(problem, Direction::forward, collective.root, Symmetry::free, {}, context);
  if ((needs_in && !halves.in) || (needs_out && !halves.out)) {
    return fail(ErrorCode::too_large,
                fmt::format("{} ranks and {} links with so little symmetry are more than trees are limited on",
                            topology.rank_count(), topology.link_count()),
                "leave the limits out, or use the planner tree");
  }
  return halves;
}

std::optional<ColumnSolution> solve(const TreeProgram& program, const PackingLimits& shape) {
  ColumnSolution solution = program.solve(shape.max_height);
  if (!solution.attained) return std::nullopt;
  if (shape.equal_trees != 0) return program.with_equal_trees(solution, shape.equal_trees);
  if (shape.max_trees == 0) return shape.max_height == 0 ? program.with_fewer_trees(solution) : solution;
  std::vector<ColumnSolution> few = program.with_few_trees(solution, std::span(&shape.max_trees, 1));
  return few.empty() ? std::nullopt : std::optional(std::move(few.front()));
}

/// Over the trees of both halves' solutions. Errors: unsupported where one of them has none.
template <class Solve>
Result<Schedule> schedule_of(const Topology& topology, const Collective& collective, const Halves& halves,
                             Solve&& solution_of) {
  Forest forest;
  for (const bool inward : {true, false}) {
    const std::optional<TreeProgram>& program = inward ? halves.in : halves.out;
    if (!program) continue;
    const std::optional<ColumnSolution> solution = solution_of(*program, inward);
    if (!solution) {
      return fail(ErrorCode::unsupported, "no trees within these limits were found", "allow more or higher trees");
    }
    (inward ? forest.in_trees : forest.out_trees) = program->lift(*solution);
  }
  return schedule_from_trees(collective, topology, "packing", forest);
}

Result<Schedule> plan_shape(const Topology& topology, const Collective& collective, const Halves& halves,
                            const PackingLimits& shape) {
  return schedule_of(topology, collective, halves,
                     [&](const TreeProgram& program, bool) { return solve(program, shape); });
}

/// Trees of equal weight from equal_packing.
struct EqualTrees {
  Result<Schedule> schedule;
  bool is_best = false;
};

EqualTrees pack_equal_trees(const PlanningProblem& problem, const Collective& collective, std::uint32_t count,
                            const PlanContext& context) {
  const Rank root = has_root(collective.kind) ? collective.root : Rank();
  Forest forest;
  bool is_best = true;
  for (const Direction direction : {Direction::reversed, Direction::forward}) {
    const bool inward = direction == Direction::reversed;
    if (inward != reduces(collective.kind) && collective.kind != CollectiveKind::all_reduce) continue;
    auto packed = equal_packing(make_problem(problem, direction, root, {}, context), count);
    if (!packed) return {tl::unexpected(packed.error())};
    is_best = is_best && packed->is_best;
    (inward ? forest.in_trees : forest.out_trees) = std::move(packed->trees);
  }
  return {schedule_from_trees(collective, problem.topology(), "packing", forest), is_best};
}

/// The best of equal_packing's trees and the linear program's, which are shallower; where neither is known to be the
/// best also of fewer trees that come several times each, so that a multiple is never slower.
Result<Schedule> plan_equal_trees(const PlanningProblem& problem, const Collective& collective, std::uint32_t count,
                                  const PlanContext& context) {
  const Topology& topology = problem.topology();
  const auto halves = make_halves(problem, collective, context);
  const auto time_of = [&](const Schedule& schedule) { return compute_loads(schedule, topology).time_per_byte; };
  std::optional<Schedule> best;
  const auto consider = [&](Result<Schedule> found) {
    if (found && (!best || time_of(*found) < time_of(*best))) best = *std::move(found);
  };
  for (std::uint32_t fewer = count; fewer > 0; --fewer) {
    if (count % fewer != 0) continue;
    if (halves) consider(plan_shape(topology, collective, *halves, {.equal_trees = fewer}));
    EqualTrees equal = pack_equal_trees(problem, collective, fewer, context);
    const bool is_last = equal.is_best || (!equal.schedule && equal.schedule.error().code == ErrorCode::too_large);
    consider(std::move(equal.schedule));
    if (is_last) break;
  }
  if (best) return *std::move(best);
  if (!halves) return tl::unexpected(halves.error());
  return fail(ErrorCode::unsupported, "no trees of equal weight were found", "allow more or less of them");
}

std::uint32_t min_height(const Halves& halves) {
  return std::max(halves.in ? halves.in->min_height() : 0, halves.out ? halves.out->min_height() : 0);
}

/// The lowest trees, then the fewest of that height, that lose no more than the gap. Of an all_reduce the best packing
/// itself where halves lose more.
Result<Schedule> plan_within_gap(const PlanningProblem& problem, const Collective& collective, const Halves& halves,
                                 const PackingLimits& limits, const PlanContext& context) {
  const Topology& topology = problem.topology();
  Result<Schedule> best = plan_shape(topology, collective, halves, limits);
  if (!best) return best;
  Rational least = compute_loads(*best, topology).time_per_byte;
  if (collective.kind == CollectiveKind::all_reduce && limits.max_trees == 0 && limits.max_height == 0) {
    Result<Schedule> whole = plan_packing(problem, collective, context);
    const Rational of_whole = whole ? compute_loads(*whole, topology).time_per_byte : least;
    if (least > of_whole * (1 + limits.gap)) return whole;
    least = std::min(least, of_whole);
  }
  const Rational allowed = least * (1 + limits.gap);
  const ScheduleShape shape = measure_shape(*best);
  const auto improve = [&](const PackingLimits& asked) {
    Result<Schedule> next = plan_shape(topology, collective, halves, asked);
    if (!next || compute_loads(*next, topology).time_per_byte > allowed) return false;
    best = std::move(next);
    return true;
  };
  for (std::uint32_t low = min_height(halves); low < shape.height; ++low) {
    if (improve({.max_trees = limits.max_trees, .max_height = low})) break;
  }
  const std::uint32_t height = measure_shape(*best).height;
  for (std::uint32_t few = 1; few < measure_shape(*best).trees_per_root; ++few) {
    if (improve({.max_trees = few, .max_height = height})) break;
  }
  return best;
}

/// Solutions of one half: of any height with at most so many trees per root, one for each number that falls and fewer
/// where no trees are found; and for heights from the least on.
struct HalfSolutions {
  std::vector<ColumnSolution> few;
  std::vector<std::optional<ColumnSolution>> low;
};

/// One task for each half and each height, one for each half and all numbers: so many at once.
std::array<HalfSolutions, 2> solve_halves(const Halves& halves, std::span<const std::uint32_t> max_trees,
                                          std::uint32_t least, std::size_t heights, unsigned threads) {
  std::array<HalfSolutions, 2> solved;
  for (HalfSolutions& half : solved) half.low.resize(heights);
  run_parallel(2 * (1 + heights), threads, [&](std::size_t task) {  // what takes longest comes first
    const std::optional<TreeProgram>& program = task % 2 == 0 ? halves.in : halves.out;
    HalfSolutions& half = solved[task % 2];
    if (!program) return;
    if (task >= 2) {
      const std::size_t low = heights - task / 2;
      half.low[low] = solve(*program, {.max_height = least + static_cast<std::uint32_t>(low)});
    } else if (!max_trees.empty()) {
      const ColumnSolution solution = program->solve();
      if (solution.attained) half.few = program->with_few_trees(solution, max_trees);
    }
  });
  return solved;
}

bool is_beaten_by(const PackingPoint& point, const PackingPoint& other) {
  return other.time_per_byte <= point.time_per_byte && other.shape.height <= point.shape.height &&
         other.shape.trees_per_root <= point.shape.trees_per_root;
}

}  // namespace

Result<Schedule> plan_pruned_packing(const PlanningProblem& problem, const Collective& collective,
                                     const PackingLimits& limits, const PlanContext& context) {
  const Topology& topology = problem.topology();
  if (topology.rank_count() == 1) return schedule_from_trees(collective, topology, "packing", Forest{});
  if (limits.exact && limits.max_trees == 0 && limits.max_height == 0 && limits.equal_trees == 0) {
    return plan_packing(problem, collective, context);
  }
  if (auto possible = check_limited(topology, collective); !possible) return tl::unexpected(possible.error());
  if (limits.equal_trees != 0 && limits.max_height == 0) {
    return plan_equal_trees(problem, collective, limits.equal_trees, context);
  }
  const auto halves = make_halves(problem, collective, context);
  if (!halves) return tl::unexpected(halves.error());
  const std::uint32_t least = min_height(*halves);
  if (limits.max_height != 0 && limits.max_height < least) {
    return fail(ErrorCode::unsupported,
                fmt::format("no tree is lower than {}: that far is the farthest rank from a root", least),
                fmt::format("allow a height of {} or more", least));
  }
  if (limits.gap != 0 && limits.equal_trees == 0) return plan_within_gap(problem, collective, *halves, limits, context);
  return plan_shape(topology, collective, *halves, limits);
}

std::vector<PackingPoint> pareto_packings(const BundledNetwork& asked, const Schedule& best, unsigned threads) {
  const PlanningOrder order(asked, best.collective);
  const BundledNetwork& network = order.network();
  const Collective& collective = order.collective();
  const Topology& topology = network.problem().topology();
  constexpr std::size_t max_ranks = 128;
  constexpr std::uint32_t max_heights = 4;
  std::vector<PackingPoint> points;
  if (topology.rank_count() == 1 || topology.rank_count() > max_ranks) return points;
  const PlanContext context;
  const auto halves = make_halves(network.problem(), collective, context);
  if (!halves) return points;
  std::vector<PackingPoint> all = {{best, compute_loads(best, asked.topology()).time_per_byte, measure_shape(best)}};
  const ScheduleShape shape = all.front().shape;
  const std::uint32_t least = min_height(*halves);
  const std::uint32_t heights = shape.height > least ? std::min(shape.height - least, max_heights) : 0;
  std::vector<std::uint32_t> max_trees;
  for (std::uint32_t few = 1; few < shape.trees_per_root && few <= 4; few *= 2) max_trees.push_back(few);
  std::ranges::reverse(max_trees);
  const std::array<HalfSolutions, 2> solved = solve_halves(*halves, max_trees, least, heights, threads);
  const auto low_ones = [&](std::size_t low) {
    return schedule_of(topology, collective, *halves,
                       [&](const TreeProgram&, bool inward) { return solved[inward ? 0 : 1].low[low]; });
  };
  const auto few_ones = [&](std::size_t place) {
    return schedule_of(topology, collective, *halves, [&](const TreeProgram&, bool inward) {
      const std::vector<ColumnSolution>& few = solved[inward ? 0 : 1].few;
      return place < few.size() ? std::optional(few[place]) : std::nullopt;
    });
  };
  // Low ones first, then those of fewest trees.
  std::vector<std::optional<PackingPoint>> made(heights + max_trees.size());
  run_parallel(made.size(), threads, [&](std::size_t i) {
    auto schedule = i < heights ? low_ones(i) : few_ones(made.size() - 1 - i);
    if (!schedule) return;
    const Rational time_per_byte = compute_loads(*schedule, topology).time_per_byte;
    const ScheduleShape measured = measure_shape(*schedule);
    made[i] = PackingPoint{*std::move(schedule), time_per_byte, measured};
  });
  for (std::optional<PackingPoint>& point : made) {
    if (!point) continue;
    const bool beaten =
        std::any_of(all.begin(), all.end(), [&](const auto& other) { return is_beaten_by(*point, other); });
    if (!beaten) all.push_back(*std::move(point));
  }
  for (std::size_t i = 1; i < all.size(); ++i) {
    const bool beaten = std::any_of(all.begin(), all.end(), [&](const PackingPoint& other) {
      return &other != &all[i] && is_beaten_by(all[i], other) && !is_beaten_by(other, all[i]);
    });
    if (!beaten) points.push_back(std::move(all[i]));
  }
  for (PackingPoint& point : points) point.schedule = order.restore(network.lift(std::move(point.schedule)));
  std::stable_sort(points.begin(), points.end(),
                   [](const auto& a, const auto& b) { return a.time_per_byte < b.time_per_byte; });
  return points;
}

}  // namespace espalier::planners
