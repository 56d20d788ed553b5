#pragma once

// Tested by: tests/unit/engine/cuda/elements_test.cpp

#include <cstddef>
#include <cstdint>

#include "base/element.h"
#include "engine/check/pattern.h"
#include "engine/cuda/kernels/kernel_call.h"

/// The kernels on the host: the same code, with a thread in the place of a block or of a grid. Memory needs no
/// alignment.
namespace espalier::engine::cuda {

/// What the interpreter's kernel does in one thread block. Requires: the other blocks run meanwhile, on other threads.
void run_block_on_host(ElementType type, ReduceOperation operation, const KernelCall& call, const KernelBlock& block);

/// What the reduction kernel does; `avg` adds.
void reduce_on_host(ElementType type, ReduceOperation operation, const ReduceCall& call);

/// What the division kernel does. Requires: ranks > 0.
void divide_on_host(ElementType type, const DivideCall& call);

/// What the kernel of known data does.
void run_pattern_on_host(const PatternCall& call);

/// target[i] = first[i] op source[i], as a step of the interpreter does it.
void combine_on_host(ElementType type, ReduceOperation operation, void* target, const void* first, const void* source,
                     std::size_t element_count);

/// Nanoseconds of the clock that stands for a GPU's global timer here: an hour ahead of CLOCK_MONOTONIC, for a GPU's is
/// no clock of the host's either.
std::uint64_t host_timer_ns();

}  // namespace espalier::engine::cuda
