#pragma once

// Tested by: tests/options/options_test.py

#include <memory>

#include "cli/flags/inputs.h"
#include "cli/jobs/run_rank.h"
#include "cli/output/console.h"
#include "engine/device/device.h"
#include "engine/launch/detect_launch.h"

namespace espalier::cli {

/// The GPU of a rank in a process of its own (`run --device cuda-ranks`): those of this machine take the GPUs in turn.
/// Of `flags`: `cuda-ranks-copies` has the host give it copies and reductions; `bulk_copies`.
/// Errors: unsupported without kernels; unavailable without a driver or a GPU; those of the driver.
Result<std::unique_ptr<engine::Device>> open_gpu_of_rank(const engine::launch::LaunchInfo& launch,
                                                         const RunFlags& flags);

/// `run --device cuda` and `cuda-copies`: all ranks in this process, on the GPUs that it sees. Requires: check_run
/// passed.
ExitCode run_on_gpus(const Console& console, const RunFlags& flags, Input& input);

}  // namespace espalier::cli
