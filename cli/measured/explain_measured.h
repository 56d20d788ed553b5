#pragma once

// Tested by: tests/options/options_test.py

#include <string>

#include "cli/flags/prediction_flags.h"
#include "cli/output/console.h"
#include "cli/output/exit_code.h"

namespace espalier::cli {

/// What `explain --measured` was asked.
struct MeasuredQuestion {
  const PredictionFlags& flags;
  const CLI::App& command;  ///< What was given is seen from it.
  std::string file;
};

/// Says where the time of a measured run went: of a timeline by its spans, of a table by what the machine's profile
/// simulates at each size.
ExitCode explain_measured(const Console& console, const MeasuredQuestion& question);

}  // namespace espalier::cli
