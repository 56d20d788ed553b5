#pragma once

// Tested by: tests/unit/engine/cuda/verify_program_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cuda/device_program.h"
#include "engine/cuda/kernels/kernel_call.h"

namespace espalier::engine::cuda {

/// Counters lie this many 32-bit words apart: one per cache line that GPUs fetch.
inline constexpr std::size_t counter_stride = 32;

/// A device program with the addresses of its counters: what the kernel reads.
struct KernelProgram {
  std::vector<KernelBlock> blocks;  ///< In the program's order, numbered so.
  std::vector<KernelStep> steps;
  std::vector<KernelPiece> pieces;
  std::vector<KernelWait> waits;
  std::vector<KernelDestination> destinations;
  std::vector<KernelTarget> targets;
};

/// Requires: a program that verifies; an address for each of its counters.
KernelProgram lower(const DeviceProgram& program, std::span<std::uint32_t* const> counters);

/// The rank whose block counts each counter up: on its GPU the counter belongs. Rank 0 for those that nobody does.
std::vector<Rank> counter_owners(const DeviceProgram& program);

/// What a report says of a block that waited too long.
Error describe_late_block(const DeviceProgram& program, std::uint32_t block, const KernelReport& report,
                          std::int64_t deadline_ms);

}  // namespace espalier::engine::cuda
