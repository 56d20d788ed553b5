#pragma once

// Tested by: tests/property/pipeline/pacing_search_test.cpp

#include <functional>
#include <optional>

#include "base/result.h"
#include "planners/chunking.h"
#include "schedule/chunking.h"
#include "schedule/timeline/run_report.h"

namespace espalier::planners {

/// What of a cut is given, the rest is chosen; and what is known of runs besides loads and latencies.
struct FixedPacing {
  std::optional<Bytes> chunk;
  std::optional<std::uint32_t> ahead;
  double payload = 1;       ///< The part of what goes over links that is payload; the rest is a protocol's flags.
  Bytes min_chunk{0};       ///< No chunk that is chosen is smaller.
  Picoseconds launch{0};    ///< Of the time elapsed: what no cut has a part in.
  std::uint32_t parts = 1;  ///< A run simulates one of so many like parts, and stands for all.
  unsigned threads = 1;     ///< So many cuts at once, each evaluated on a thread; what is found does not depend on it.
};

/// What is fixed of a schedule at a size: what is given, or where nothing is, what the schedule brings for this size.
FixedPacing fixed_pacing(const Schedule& schedule, Bytes size, const FixedPacing& given);

/// How long a schedule takes at one size when it is cut so; nothing where it was given up, as it takes longer than the
/// deadline.
using EvaluatePacing = std::function<Result<std::optional<RunReport>>(const Pacing&, Picoseconds deadline)>;

/// A run of more chunks times links takes seconds: no more of them are run than a per cent is worth.
inline constexpr double dear_hops = 4'000'000;

/// Whether even a run of whole transfers is dear.
bool exceeds_hop_budget(const ChunkModel& chunks, Bytes size);

/// What find_best_pacing begins with, unless that is dear.
Pacing first_pacing(const ChunkModel& chunks, Bytes size, const FixedPacing& fixed);

/// Runs with the model's chunk, or a larger one that is quick to simulate, and no limit on who is ahead. Where that
/// takes longer than loads and latencies explain, smaller chunks are tried while they gain; where the first chunk's
/// path does not explain it either, also runs in step (in two to four measures of it) and larger chunks; from 64 ranks
/// on once more with smaller ones where they stay far off. The fastest of these. Where even whole transfers are dear,
/// the first run has the chunk that loads and latencies say is within a per cent of enough, down to a quarter of them,
/// and no larger one is tried. Smaller chunks cost more events, so they have to be worth them: the last half percent is
/// left where it takes long, and in calls of a millisecond and more nothing below 99 % of the least time that a few
/// more would reach, or, past 64 ranks, some seconds more; there a quarter of the measure is tried in step before a run
/// takes seconds. A cut that is slower than the best before it is given up as soon as that is certain. Errors: those of
/// `evaluate`. Cost: one run, or about ten.
Result<RunReport> find_best_pacing(const ChunkModel& chunks, Bytes size, const FixedPacing& fixed,
                                   const EvaluatePacing& evaluate);

/// By when a first run has to be over beside other schedules, of which the best takes so long: what takes twice as long
/// is hardly made good by another cut.
Picoseconds latest_beside(Picoseconds best_of_others);

/// The same as find_best_pacing beside other schedules: nothing where the first run is later than that. Where no more
/// than a hundredth can be gained on that best, no more is run than for the last hundredth.
Result<std::optional<RunReport>> find_best_pacing_beside(Picoseconds best_of_others, const ChunkModel& chunks,
                                                         Bytes size, const FixedPacing& fixed,
                                                         const EvaluatePacing& evaluate);

}  // namespace espalier::planners
