#pragma once

// Tested by: tests/unit/planners/not_relaying_test.cpp

#include <functional>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/result.h"
#include "planners/bundled_network.h"
#include "planners/plan_context.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"
#include "schedule/symmetry/symmetry.h"

namespace espalier::planners {

/// Makes a schedule for a collective on a topology. Pure: the same input, the context's trees included, gives the same
/// schedule, byte for byte.
/// Errors: unsupported, when this planner does not make this collective or not on this graph, naming what would work;
/// infeasible, when no schedule exists; too_large past a written limit.
/// A planner that solves no program needs no context (`without_context`).
using PlanFunction = std::function<Result<Schedule>(const PlanningProblem&, const Collective&, const PlanContext&)>;

/// A planner's function that has no use for a context, and may have none for a problem but its topology.
template <class Plan>
PlanFunction without_context(Plan plan) {
  return [plan](const PlanningProblem& problem, const Collective& collective, const PlanContext&) -> Result<Schedule> {
    if constexpr (std::is_invocable_v<Plan, const PlanningProblem&, const Collective&>) {
      return plan(problem, collective);
    } else {
      return plan(problem.topology(), collective);
    }
  };
}

struct Planner {
  std::string_view name;     ///< What `-a` takes.
  std::string_view summary;  ///< One line for help.
  PlanFunction plan;
  bool uses_context = false;  ///< Else it was made `without_context`.
  /// Plans in the canonical order wherever ranks are not all alike, also on a network as it came.
  bool is_canonical = false;
  /// Plans traffic matrices alone; "auto" does not ask it for equal blocks and other collectives.
  bool needs_matrix = false;
  /// Plans as software does that knows of links what they report (Link::reported).
  bool goes_by_reports = false;

  [[nodiscard]] bool suits(const Collective& collective) const { return !needs_matrix || collective.has_matrix(); }
};

/// All planners, in the order in which tables list them.
std::span<const Planner> all_planners();

/// Errors: invalid_input, with the nearest name.
Result<Planner> find_planner(std::string_view name);

/// Plans with one planner and verifies the result; a breach is a bug of ours.
Result<Schedule> plan_unbounded(const BundledNetwork& network, const Collective& collective, const Planner& planner,
                                const PlanContext& context = {});

/// Maps of the ranks that likely take a large schedule to itself (schedule/symmetry): automorphisms of the network.
/// None where the schedule is small, and past 256 ranks only for an all_to_all, where nothing else shows them.
std::vector<RankMap> likely_rank_maps(const BundledNetwork& network, const Schedule& schedule);

/// As `plan_unbounded`, with the bound of the collective set.
Result<Schedule> plan(const BundledNetwork& network, const Collective& collective, const Planner& planner,
                      const PlanContext& context = {});

}  // namespace espalier::planners
