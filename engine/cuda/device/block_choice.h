#pragma once

// Tested by: tests/unit/engine/cuda/device/block_choice_test.cpp

#include <cstdint>

#include "engine/cuda/device_program.h"
#include "schedule/chunking.h"
#include "schedule/layout.h"
#include "schedule/schedule.h"

/// How schedules are laid over the blocks of a GPU, by what was measured on one (docs/gpu.md, "Measured").
namespace espalier::engine::cuda {

/// Blocks for a call of ranks that may have `max_blocks` each. Mailboxes up to 32 KiB, where all ranks are in kernels.
BlockOptions choose_blocks(const Schedule& schedule, const Layout& layout, const Pacing& pacing,
                           std::uint32_t max_blocks);

/// The chunk for a schedule that leaves it open: a block's part is long enough to hide what a step costs.
Bytes choose_gpu_chunk(const Schedule& schedule, std::uint32_t max_blocks);

}  // namespace espalier::engine::cuda
