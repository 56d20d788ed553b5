#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "planners/packing/problem.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

using BestTrees = std::optional<std::vector<Arborescence>>;

/// A search for trees. docs/packing.md says what each is for.
struct Finder {
  std::string_view name;
  /// Whether it is worth its time, given the best trees that those before it found.
  bool (*applies)(const PackingProblem& problem, const BestTrees& best);
  /// Trees that span the ranks and load no link past what the problem's rate allows. Requires: it applies.
  Result<std::vector<Arborescence>> (*propose)(const PackingProblem& problem, const BestTrees& best);
};

/// All of them in the order in which they are asked.
std::span<const Finder> finders();

}  // namespace espalier::planners
