#pragma once

// Tested by: tests/unit/planners/packing/find/finders_test.cpp

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

using Trees = std::vector<Arborescence>;
using BestTrees = std::optional<Trees>;

/// A search for trees. docs/packing.md says what each is for.
struct Finder {
  std::string_view name;
  /// Whether it is worth its time, given the best trees that those before it found.
  bool (*applies)(const PackingProblem& problem, const BestTrees& best);
  /// Trees that span the ranks and load no link past what the problem's rate allows. Requires: it applies.
  Result<Trees> (*propose)(const PackingProblem& problem, const BestTrees& best);
};

/// What every finder proposes, by its four steps. `reduce` makes a smaller or simpler network of the problem's, `find`
/// looks for trees there, `improve` makes them fewer or shallower, and `lift` brings them back to the problem's links.
template <class Steps>
Result<Trees> propose(const PackingProblem& problem, const BestTrees& best) {
  auto reduced = Steps::reduce(problem);
  if (!reduced) return tl::unexpected(reduced.error());
  auto found = Steps::find(problem, *reduced, best);
  if (!found) return tl::unexpected(found.error());
  Steps::improve(*reduced, *found);
  return Steps::lift(problem, *reduced, *found);
}

/// All of them in the order in which they are asked.
std::span<const Finder> finders();

}  // namespace espalier::planners
