#pragma once

// Tested by: tests/unit/planners/used_paths_test.cpp

#include <string>
#include <vector>

#include "base/result.h"
#include "planners/graph/logical_graph.h"
#include "planners/graph/rank_groups.h"
#include "planners/planning_problem.h"
#include "schedule/schedule.h"

namespace espalier::planners {

/// Routes and trees are chosen for messages whose latency counts.
inline constexpr Bytes small_message{4096};

/// Errors: unsupported when the collective has unequal shards, which runs of equal blocks cannot be.
Result<void> check_equal_shards(const Collective& collective, std::string_view planner);

/// The ranks in machine order, and the direct routes that an algorithm with fixed partners needs.
class Partners {
 public:
  Partners(const PlanningProblem& problem, std::string algorithm);

  [[nodiscard]] const std::vector<Rank>& order() const { return order_; }
  /// Errors: unsupported when the ranks have no route through nodes that only forward, naming them.
  [[nodiscard]] Result<std::vector<LinkId>> route(Rank from, Rank to) const;

 private:
  const LogicalGraph& graph_;
  std::vector<Rank> order_;
  std::string algorithm_;
};

/// A run of places in machine order, going round the end.
struct PlaceRun {
  std::size_t first = 0;
  std::size_t count = 0;
};

/// Writes the transfers of algorithms whose every message is a run of shards (in machine order) or blocks.
class ExchangeWriter {
 public:
  /// For all_gather and reduce_scatter one slice per rank; for all_reduce `blocks` equal slices that belong to nobody.
  ExchangeWriter(const Topology& topology, const Collective& collective, const Partners& partners,
                 std::string algorithm, std::size_t blocks);

  /// A message with the shards of these places, in as many transfers as runs of slices they make.
  Result<void> send(Rank from, Rank to, PlaceRun places, Action action);

  [[nodiscard]] Schedule take() { return std::move(schedule_); }

 private:
  const Partners& partners_;
  std::vector<std::uint32_t> slice_at_;  ///< By place.
  Schedule schedule_;
};

}  // namespace espalier::planners
