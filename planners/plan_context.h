#pragma once

// Tested by: tests/property/planners/lp_test.cpp

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "planners/graph/logical_graph.h"
#include "planners/lp/column_generation.h"

namespace espalier::planners {

class TreeMemory;
struct NcclEra;
struct AllReduceProgram;

/// How far a linear program of a planner or a bound is.
struct ProgramRound {
  std::string_view program;  ///< What is solved: "all_gather", "all_reduce", "all_to_all", ...
  std::uint32_t round = 0;   ///< Of column generation, from 1 on.
  std::size_t columns = 0;   ///< Trees, or trees of paths, met so far.
  double reached = 0;        ///< What these carry: bytes of S per second (an algbw).
  double limit = 0;          ///< What no others can pass, by the prices met so far; the same unit.

  /// The part of `reached` that may be missing.
  [[nodiscard]] double gap() const { return reached > 0 ? limit / reached - 1 : 1; }
};

/// Told when a round begins: the gap of each program closes from one to the next. Programs follow one another, each
/// with round 1 first; those that only make trees fewer are not told of.
using OnRound = std::function<void(const ProgramRound&)>;

/// What planning may use and whom it tells, besides the network and the collective. Neither changes what is proven.
struct PlanContext {
  OnRound on_round;                   ///< May be empty. Costs two pricings per round.
  const TreeMemory* known = nullptr;  ///< Trees of earlier plans, to begin with. May be null.
  /// The program that proves this collective's bound on this network, solved; null where it is not known, or another
  /// proof was found.
  std::shared_ptr<const AllReduceProgram> solution = nullptr;
  const NcclEra* nccl = nullptr;  ///< Whose search finds NCCL's rings and trees. Null: the best there are.
  PairRoutes routes;              ///< Of the network as it is numbered, where it is large. May be empty.
};

/// For ColumnLimits::on_round: tells the context's listener in bytes per second, of which one unit of throughput is
/// `bytes_per_unit`. Empty where nobody listens. The context must outlive it.
std::function<void(const ColumnRound&)> progress_callback(const PlanContext& context, std::string_view program,
                                                          double bytes_per_unit);

}  // namespace espalier::planners
