#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/console.h"
#include "compare/fit/calibrate.h"
#include "compare/read/measurements.h"
#include "compare/read/read_run.h"
#include "planners/chunking.h"
#include "schedule/schedule.h"

namespace espalier::cli {

/// What the files of runs leave open, by flags.
struct CalibrationHints {
  std::string algorithm;         ///< What ran where the file does not say (nccl-tests).
  std::optional<Bytes> chunk;    ///< Its chunk where the file does not say; chosen as `simulate` does when absent.
  std::optional<Schedule> plan;  ///< What ran everywhere, planned on the topology.
  Bytes smallest{1};             ///< Runs of other sizes are left out.
  Bytes largest = max_message_size;
};

/// One run that can be simulated again.
struct CalibrationRun {
  std::string label;  ///< "all_reduce by ring, 64 KiB (run.json:12)"
  std::shared_ptr<const Schedule> schedule;
  Bytes size;
  Bytes chunk;
  std::int64_t element_size = 4;
  double seconds = 0;
};

/// The runs of a calibration, with their schedules planned anew on the given topology.
struct CalibrationRuns {
  std::vector<CalibrationRun> runs;
  std::vector<std::string> notes;  ///< What was left out.

  [[nodiscard]] std::vector<double> seconds() const;
  /// Whether any of them reduces.
  [[nodiscard]] bool reduces() const;
};

/// Plans what ran, each schedule once.
/// Errors: invalid_input when a file does not fit the topology or leaves open what ran; those of the planners.
Result<CalibrationRuns> plan_runs(const Console& console, const Topology& topology,
                                  const std::vector<std::pair<std::string, compare::RunFile>>& files,
                                  const CalibrationHints& hints);

/// The simulator as a calibration needs it. `runs` must outlive it.
compare::PredictTimes simulated_times(const CalibrationRuns& runs);

}  // namespace espalier::cli
