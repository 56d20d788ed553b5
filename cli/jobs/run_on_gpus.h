#pragma once

#include "cli/flags/inputs.h"
#include "cli/jobs/run_rank.h"
#include "cli/output/console.h"

namespace espalier::cli {

/// `run --device cuda` and `cuda-copies`: all ranks in this process, on the GPUs that it sees. Requires: check_run
/// passed.
ExitCode run_on_gpus(const Console& console, const RunFlags& flags, Input& input);

}  // namespace espalier::cli
