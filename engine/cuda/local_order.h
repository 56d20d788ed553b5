#pragma once

// Tested by: tests/unit/engine/cuda/device_program_test.cpp

#include <cstdint>
#include <vector>

#include "engine/cuda/move_plan.h"
#include "engine/program/rank_program.h"

namespace espalier::engine::cuda {

/// With mailboxes ranks touch their own memory alone: for each move, the moves of its rank before it in the shared
/// order that touch some of its bytes, one of the two writing them, as far as none between them does. In place send
/// buffers lie in receive buffers; so they are taken to here. Moves that are attached touch no memory. Cost: O(pieces x
/// moves that touch the same bytes).
std::vector<std::vector<std::uint32_t>> find_local_order(const MovePlan& plan, const std::vector<RankProgram>& ranks);

}  // namespace espalier::engine::cuda
