#pragma once

// Tested by: tests/options/options_test.py

#include <string>

#include "base/result.h"
#include "cli/reports/tune_output.h"

namespace espalier::cli {

/// Errors: invalid_input for collectives that NCCL's tuner does not know.
Result<void> check_nccl_tuner(CollectiveKind kind);
/// What `tune` found as the configuration file of NCCL's example tuner (ext-tuner/example in NCCL): a row per region,
/// or a comment where NCCL has nothing like it. Requires: a collective that passes `check_nccl_tuner`.
std::string nccl_tuner_csv(const Tuning& tuning);

}  // namespace espalier::cli
