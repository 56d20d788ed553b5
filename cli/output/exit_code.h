#pragma once

// Tested by: tests/unit/cli/output/progress_test.cpp

#include "base/result.h"

namespace espalier::cli {

/// What the command returns to the shell; the meanings are part of the interface (docs/command-line.md).
enum class ExitCode : int {
  ok = 0,
  check_failed = 1,        ///< An invalid input file, a breach, a threshold exceeded.
  wrong_usage = 2,         ///< Flags or arguments that do not make sense.
  missing_capability = 3,  ///< Something this machine or build does not have.
  internal_error = 4,      ///< A bug.
  interrupted = 130,
};

}  // namespace espalier::cli
