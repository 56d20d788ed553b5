#pragma once

// Tested by: tests/options/options_test.py

#include <cstdint>
#include <optional>

#include "cli/output/console.h"

namespace espalier::cli {

/// Starts this command anew as each rank of a job on this machine, with the same arguments, and waits for all: what a
/// verb of ranks does without a launcher. At most `max_ranks`, where it is given; `timeout` in seconds is what a rank
/// waits for others. The exit code is that of the rank that failed first.
ExitCode start_ranks(const Console& console, std::uint32_t world, const std::optional<std::uint32_t>& max_ranks,
                     double timeout);

}  // namespace espalier::cli
