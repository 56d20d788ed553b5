#pragma once

#include <functional>
#include <optional>

#include "base/result.h"
#include "planners/chunking.h"
#include "schedule/chunking.h"
#include "schedule/timeline/run_report.h"

namespace espalier::planners {

/// What of a cut is given, the rest is chosen; and what is known of runs besides loads and latencies.
struct FixedCut {
  std::optional<Bytes> chunk;
  std::optional<std::uint32_t> ahead;
  double payload = 1;  ///< The part of what goes over links that is payload; the rest is a protocol's flags.
};

/// What is fixed of a schedule at a size: what is given, or where nothing is, what the schedule brings for this size.
FixedCut fixed_cut(const Schedule& schedule, Bytes size, const FixedCut& given);

/// How long a schedule takes at one size when it is cut so.
using EvaluateCut = std::function<Result<RunReport>(const Cut&)>;

/// What find_best_cut begins with.
Cut first_cut(const ChunkModel& chunks, Bytes size, const FixedCut& fixed);

/// Runs with the model's chunk, or a larger one that is quick to simulate, and no limit on who is ahead. Where that
/// takes longer than loads and latencies explain, smaller chunks are tried while they gain; where the first chunk's
/// path does not explain it either, also runs in step (in two to four measures of it) and larger chunks. The fastest of
/// these. Smaller chunks cost more events, so they have to be worth them: the last half percent is left where it takes
/// long. Errors: those of `evaluate`. Cost: one run, or about ten.
Result<RunReport> find_best_cut(const ChunkModel& chunks, Bytes size, const FixedCut& fixed,
                                const EvaluateCut& evaluate);

}  // namespace espalier::planners
