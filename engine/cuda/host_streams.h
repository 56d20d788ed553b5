#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <cstdint>
#include <span>
#include <vector>

#include "engine/cuda/device_program.h"
#include "engine/cuda/kernel_program.h"
#include "engine/program/rank_program.h"
#include "schedule/schedule.h"

namespace espalier::engine::cuda {

/// An op between a rank and one of another machine, which their hosts carry out: what the kernel of this end has to
/// have done before, and which counters say to kernels of this machine that the op is done.
struct HostOp {
  std::uint32_t stream = 0;  ///< Of the rank's program.
  std::uint32_t index = 0;   ///< Within it.
  Rank peer;
  bool is_outgoing = false;
  TransferId transfer;
  std::uint32_t chunk = 0;
  std::vector<CounterWait> waits;
  std::vector<std::uint32_t> signals;
};

/// Those of one rank, in the order that all ranks share. What the other end has to wait for is the other host's
/// business. Requires: a program compiled for machines as `in_kernel` says, of the same schedule, size and chunk as
/// `own`, the rank's part of it.
std::vector<HostOp> find_host_ops(const DeviceProgram& program, const RankProgram& own, const Schedule& schedule,
                                  Rank self, const std::vector<bool>& in_kernel);

/// By counter, the rank of this machine in whose memory it lies: whose block counts it up, or for those that hosts do,
/// the end on this machine. `self` for those that nobody here reads.
std::vector<Rank> counter_places(const DeviceProgram& program, const std::vector<bool>& in_kernel, Rank self);

/// Words in pinned memory by which host and kernel tell each other about one stream of the rank's program. Like
/// counters they grow from call to call.
struct HostStreamWords {
  std::uint32_t* permitted = nullptr;  ///< By the kernel: ops that the host may begin.
  std::uint32_t* done = nullptr;       ///< By the host.
  std::uint32_t op_count = 0;
};

/// Adds two blocks of the rank to its kernel. Of the first, each step waits for what an op has to wait for, and permits
/// it; of the second, each waits until the host has done an op, and counts up its counters. In the ops' order they are
/// blocks like others: each waits only for what comes before it in the order that all ranks share.
void add_host_blocks(KernelProgram& lowered, Rank self, std::span<const HostOp> ops,
                     std::span<std::uint32_t* const> counters, std::span<const HostStreamWords> words);

}  // namespace espalier::engine::cuda
