#pragma once

// Tested by: tests/unit/engine/launch/shared_secret_test.cpp

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace espalier {

/// What /proc tells of a process; its id and start together are never used again.
struct ProcessStat {
  pid_t parent = 0;
  std::uint64_t start = 0;  ///< Clock ticks after boot.
};

/// Nothing when there is no such process.
std::optional<ProcessStat> read_process_stat(pid_t process);

}  // namespace espalier
