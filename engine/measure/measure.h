#pragma once

// Tested by: tests/unit/engine/cuda/device/gpu_measure_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/check/data_case.h"
#include "engine/communicator/communicator.h"
#include "schedule/timeline/timeline.h"

namespace espalier::engine {

struct MeasureOptions {
  std::uint32_t iterations = 20;
  std::uint32_t warmups = 5;
  bool checks = true;                     ///< Compares every element that ranks receive, on data of its own.
  bool registers_buffers = true;          ///< Buffers that ranks of a machine reach directly; else plain memory.
  MemorySpace space = MemorySpace::host;  ///< Where registered buffers are: `device` is that of the rank's device.
};

/// Seconds of the iterations, each the time of the slowest rank.
struct Times {
  double least = 0;
  double median = 0;
  double p99 = 0;
};

/// What one rank did in an iteration, in seconds. A rank waits with or without a core, so the two times need not add
/// up.
struct RankUse {
  double time = 0;     ///< The median of its iterations, from the end of the one before.
  double cpu = 0;      ///< On a core, on average.
  double no_core = 0;  ///< Ready to run while others had its cores, on average; 0 where the system does not say.
};

struct PlacedMeasurement {
  Times times;
  std::optional<std::uint64_t> wrong;  ///< Elements on all ranks; nothing when they were not checked.
  std::vector<RankUse> ranks;          ///< By rank.
};

struct RunMeasurement {
  PlacedMeasurement out_of_place;
  std::optional<PlacedMeasurement> in_place;  ///< Nothing for collectives that cannot.
};

/// The spans of iterations that were measured, at one rank.
struct KeptIterations {
  Recorder recorder;
  std::vector<std::int64_t> ends;  ///< When each of them ended, and before them the moment when the first one began.
  std::size_t median = 0;          ///< Which of them took the median time, and which took longest, by the slowest rank.
  std::size_t slowest = 0;
  std::int64_t clock_offset_ns = 0;  ///< Of rank 0's clock, before they ran, with its error.
  std::int64_t clock_error_ns = 0;
};

/// Runs a collective as nccl-tests does: warm-ups, then iterations one right after the other, out of place and in
/// place. `kept` gets the spans of the iterations out of place, of the last ones where there are too many for memory.
/// Collective: every rank gets the same result. Errors: those of the calls.
Result<RunMeasurement> measure(Communicator& communicator, const DataCase& data, const MeasureOptions& options,
                               KeptIterations* kept = nullptr);

/// Real runs with their spans, and what recording cost.
struct RecordedRun {
  Timeline timeline;       ///< On all ranks' lanes, in rank 0's time; only on rank 0.
  Timeline slowest;        ///< Likewise of the iteration that took longest; without spans where only one was kept.
  double clock_error = 0;  ///< Seconds: the largest error of a rank's clock against rank 0's.
  double plain_time = 0;   ///< Medians with and without recording, in seconds.
  double recorded_time = 0;
};

/// The timelines of the median and of the slowest iteration that were kept, named as such behind the title. Then runs
/// the collective with and without recording, to say what that costs. Collective.
Result<RecordedRun> record_run(Communicator& communicator, const DataCase& data, const MeasureOptions& options,
                               KeptIterations& kept, const std::string& title, std::vector<std::string> rank_names);

}  // namespace espalier::engine
