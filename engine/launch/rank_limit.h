#pragma once

// Tested by: tests/unit/engine/launch/rank_limit_test.cpp

#include <cstdint>
#include <string>

#include "base/result.h"

namespace espalier::engine::launch {

/// What this machine lets one user have.
struct MachineLimits {
  std::int64_t processes = 0;    ///< And threads: the soft limit (ulimit -u), or the kernel's where that is lower.
  std::int64_t descriptors = 0;  ///< Open files of a process: the soft limit (ulimit -n).
  std::int64_t memory = 0;       ///< Bytes that are available now.
};

/// Errors: unavailable when /proc cannot be read.
Result<MachineLimits> read_machine_limits();

/// Whether so many ranks can be started on a machine: each takes up to 4 threads and 16 MiB, and in rank 0 and in the
/// launcher a descriptor. Errors: too_large, naming the limit that is exceeded and how many ranks it allows.
Result<void> check_local_ranks(std::uint32_t ranks, const MachineLimits& limits);

}  // namespace espalier::engine::launch
