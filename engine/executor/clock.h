#pragma once

// Tested by: tests/unit/engine/cuda/device/communicator_on_gpus_test.cpp

#include <cstdint>
#include <ctime>

namespace espalier::engine {

/// Nanoseconds of CLOCK_MONOTONIC: one clock for all processes of a machine.
inline std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

}  // namespace espalier::engine
