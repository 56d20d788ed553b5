#pragma once

// Tested by: tests/unit/cli/calibration/profile_calibration_test.cpp

#include <string>
#include <utility>
#include <vector>

#include "cli/jobs/stop.h"
#include "cli/output/console.h"
#include "compare/read/read_run.h"

namespace espalier::cli {

using NamedRuns = std::vector<std::pair<std::string, compare::RunFile>>;

/// Reads runs, each with the name that was given for it. `collective`, the value of --collective, stands for what
/// nccl-tests measured where a file does not say, `traffic`, that of --matrix, for what alltoallv_perf sent; empty when
/// not given.
/// Errors: those of read_run; wrong usage when every file says it itself.
OrStop<NamedRuns> load_runs(const Console& console, const std::vector<std::string>& paths,
                            const std::string& collective, const std::string& traffic = {});

}  // namespace espalier::cli
