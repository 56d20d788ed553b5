#pragma once

// Tested by: tests/unit/engine/cuda/verify_program_test.cpp

#include <chrono>
#include <cstddef>
#include <span>

#include "base/element.h"
#include "base/result.h"
#include "engine/cuda/device_program.h"
#include "engine/cuda/kernels/kernel_call.h"

namespace espalier::engine::cuda {

/// A rank's memories, of the sizes that the program says. In place, `send` is `receive` + in_place_shift.
struct RankBuffers {
  const std::byte* send = nullptr;
  std::byte* receive = nullptr;
  std::byte* scratch = nullptr;
};

/// The same as the kernel takes them. `mailbox`: of so many bytes as the sizes say, zero at first.
KernelMemory kernel_memory(const RankBuffers& buffers, const MemorySizes& sizes, std::uint64_t* mailbox);

/// What a run of a program leaves open.
struct DeviceCall {
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::chrono::milliseconds deadline{30'000};  ///< For the whole run.
};

/// Runs a device program on host memory with the kernel's own code (kernels/interpreter.h), a thread per block:
/// counters are read with acquire and written with release order, and nothing else is shared. It is how programs and
/// the interpreter are tested where there is no GPU. Requires: a program that verifies, of the type's element size;
/// buffers of each rank, and no others' bytes in them. `runs`: so many calls on the same buffers, of which the blocks
/// of a rank wait for each other between two, and ranks do not. Errors: unavailable when the deadline passes, with the
/// block and what it waited for; all threads have ended then.
Result<void> run_on_threads(const DeviceProgram& program, std::span<const RankBuffers> buffers, const DeviceCall& call,
                            std::uint32_t runs = 1);

}  // namespace espalier::engine::cuda
