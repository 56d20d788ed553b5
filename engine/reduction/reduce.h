#pragma once

// Tested by: tests/unit/engine/reduction/reduce_test.cpp

#include <cstddef>
#include <cstdint>

#include "base/element.h"
#include "engine/reduction/instruction_set.h"

namespace espalier::engine::reduction {

/// target[i] = first[i] op sources[0][i] op sources[1][i] ..., left to right, in one pass over memory.
///
/// `first` may be `target` (in place) or lie elsewhere; nothing else may overlap `target`. Pointers need no alignment.
/// Without sources it copies. An element's result depends on its inputs alone, so cutting a buffer anywhere changes
/// nothing, and is the same on every CPU but for the bits of a NaN:
/// - Integer sums and products wrap.
/// - float16 and bfloat16 are combined in float32 over all sources of a call and rounded once, to nearest even. A
/// result
///   beyond the largest finite value is infinite; subnormal numbers are kept.
/// - min and max follow IEEE 754-2019 minimum and maximum: a NaN on any side gives NaN, and -0 is below +0.
/// Requires: the floating-point environment that C++ starts with (round to nearest, subnormals on).
/// Cost: reads each input once and writes the target once.
using ReduceFunction = void (*)(void* target, const void* first, const void* const* sources, std::size_t source_count,
                                std::size_t element_count);

/// The same result into several targets, each of which may be `first` or any of the sources: every rank's buffer is
/// read and written in one pass. Without sources it copies one buffer to many.
/// Requires: target_count > 0.
using ReduceToManyFunction = void (*)(void* const* targets, std::size_t target_count, const void* first,
                                      const void* const* sources, std::size_t source_count, std::size_t element_count);

/// The kernel of a type and an operation for this CPU; `avg` adds as `sum` does, and `divide_by` follows.
/// Requires: is_supported(set).
ReduceFunction find_reduce(ElementType type, ReduceOperation operation, InstructionSet set = best_instruction_set());
/// Requires: is_supported(set).
ReduceToManyFunction find_reduce_to_many(ElementType type, ReduceOperation operation,
                                         InstructionSet set = best_instruction_set());

/// Divides every element by `ranks`, which makes a sum the average: integers towards zero, floats to nearest even.
/// Requires: ranks > 0; is_supported(set).
void divide_by(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks,
               InstructionSet set = best_instruction_set());

}  // namespace espalier::engine::reduction
