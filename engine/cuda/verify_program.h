#pragma once

// Tested by: tests/unit/engine/cuda/verify_program_test.cpp

#include "base/result.h"
#include "engine/cuda/device_program.h"

namespace espalier::engine::cuda {

/// Proves of a device program, whatever the speed of its blocks, in two calls one after the other, between which the
/// blocks of a rank wait for each other and ranks do not:
/// 1. ids are in range, pieces lie within their memories and begin at whole elements;
/// 2. each counter is counted up by one block alone, and as often as any step waits for;
/// 3. every block reaches its end when all run at the same time;
/// 4. two accesses of a byte of which one writes are ordered by waits and signals (happens-before, by vector clocks);
///    the pieces of one step are not;
/// 5. no step reads scratch memory that nobody wrote;
/// 6. every slot of a mailbox is filled by one step and read by one, of as many bytes; slots do not overlap, and no
/// step
///    fills one whose last contents may not have been read. What a step receives orders nothing but its own bytes.
/// `in_place`: with send buffers that overlap receive buffers as `in_place_shift` says, where there is one.
/// Errors: invalid_input, with the rank, the block and the step.
/// Cost: O(steps x blocks) memory; time as well, and the cells that accesses cut memory into.
Result<void> verify(const DeviceProgram& program, bool in_place);

}  // namespace espalier::engine::cuda
