#pragma once

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

struct PlacedMeasurement {
  Times times;
  std::optional<std::uint64_t> wrong;  ///< Elements on all ranks; nothing when they were not checked.
};

struct RunMeasurement {
  PlacedMeasurement out_of_place;
  std::optional<PlacedMeasurement> in_place;  ///< Nothing for collectives that cannot.
};

/// Runs a collective as nccl-tests does: warm-ups, then iterations one right after the other, out of place and in
/// place. Collective: every rank gets the same result. Errors: those of the calls.
Result<RunMeasurement> measure(Communicator& communicator, const DataCase& data, const MeasureOptions& options);

/// A real run with its spans, and what recording cost.
struct RecordedRun {
  Timeline timeline;       ///< On all ranks' lanes, in rank 0's time; only on rank 0.
  double clock_error = 0;  ///< Seconds: the largest error of a rank's clock against rank 0's.
  double plain_time = 0;   ///< Medians with and without recording, in seconds.
  double recorded_time = 0;
};

/// Runs a collective out of place with and without recording; the timeline is that of the last iteration. Collective.
Result<RecordedRun> record_run(Communicator& communicator, const DataCase& data, const MeasureOptions& options,
                               std::string title, std::vector<std::string> rank_names);

}  // namespace espalier::engine
