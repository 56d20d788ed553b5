#pragma once

// Tested by: tests/unit/engine/cuda/program_time_test.cpp

#include <cstdint>

#include "engine/cuda/device_program.h"

namespace espalier::engine::cuda {

/// What a device program costs where its ranks share a GPU. Seconds, and bytes per second read plus written. Fitted to
/// 34 times of one H100 80GB HBM3 (docs/gpu.md, "What a call costs").
struct GpuCosts {
  double call = 12.3e-6;           ///< Launch and end, and what blocks read of the program.
  double packet_step = 0.77e-6;    ///< A step that fills or reads mailboxes, from when they are full,
  double counter_step = 1.13e-6;   ///< or one that reads another rank's memory.
  double counter_wait = 2.45e-6;   ///< From a signal until a block that waits for its counter goes on.
  double destination = 0.18e-6;    ///< A further place that a step writes to.
  double rate_of_block = 57e9;     ///< What one block moves.
  double rate_of_memory = 2.0e12;  ///< What all blocks move together.
  double cached_read = 0.2;        ///< A byte that was written in the call is read from the cache: of a byte's time.
};

/// Seconds of a call: the longest chain of steps, each behind its block's step before and what it waits for, or all
/// bytes through memory, whichever is longer. Requires: a program that verifies. Cost: about linear in its steps.
double program_seconds(const DeviceProgram& program, const GpuCosts& costs = {});

}  // namespace espalier::engine::cuda
