#pragma once

#include <cstdint>

#include "engine/cuda/kernels/kernel_call.h"
#include "engine/cuda/kernels/vectors.h"

/// The interpreter of device programs, once for GPUs and hosts. A team is the threads of a block: besides `index` and
/// `size`, `sync` is its barrier, `any` a barrier that says whether any thread's value is true, `load_acquire`,
/// `store_release` and `load_relaxed` are of system scope, `now` is nanoseconds of a clock that all teams share.
namespace espalier::engine::cuda {

template <class Team>
ESPALIER_KERNEL_CODE void report_end(const KernelCall& call, const KernelBlock& block, const KernelReport& report,
                                     const Team&) {
  call.reports[block.number] = report;
}

/// Waits for a counter; false when the block has to stop.
template <class Team>
ESPALIER_KERNEL_CODE bool await_counter(const KernelCall& call, const KernelBlock& block, std::uint32_t step,
                                        std::uint32_t index, std::uint64_t ends_at, Team& team) {
  const KernelWait wait = call.waits[index];
  const std::uint32_t goal = call.run * wait.per_run + wait.count;
  for (std::uint32_t polls = 1;; ++polls) {
    const std::uint32_t seen = team.load_acquire(wait.counter);
    if (static_cast<std::int32_t>(seen - goal) >= 0) return true;
    if (polls % Team::polls_per_look != 0) continue;
    const bool is_late = team.now() >= ends_at;
    const bool is_aborted = team.load_relaxed(call.abort_flag) != 0;
    if (is_late && !is_aborted) team.store_release(call.abort_flag, 1);
    if (is_late || is_aborted) {
      const BlockState state = is_aborted ? BlockState::stopped : BlockState::timed_out;
      report_end(call, block, {state, step, index, seen}, team);
      return false;
    }
    team.pause();
  }
}

ESPALIER_KERNEL_CODE unsigned char* written_at(const KernelMemory& memory, KernelPlace place, std::int64_t offset) {
  return (place == KernelPlace::receive ? memory.receive : memory.scratch) + offset;
}
ESPALIER_KERNEL_CODE const unsigned char* read_at(const KernelMemory& memory, KernelPlace place, std::int64_t offset) {
  return place == KernelPlace::send ? memory.send + offset : written_at(memory, place, offset);
}

template <class T, class Operation, class Team>
ESPALIER_KERNEL_CODE void carry_out(const KernelCall& call, const KernelBlock& block, const KernelStep& step,
                                    const Team& team) {
  const KernelMemory& own = call.memories[block.rank];
  for (std::uint32_t i = 0; i < step.piece_count; ++i) {
    const KernelPiece piece = call.pieces[step.first_piece + i];
    unsigned char* const target = written_at(own, piece.target_place, piece.target);
    const unsigned char* const source = read_at(call.memories[step.peer], piece.source_place, piece.source);
    const std::uint64_t elements = static_cast<std::uint64_t>(piece.length) / sizeof(T);
    if (step.kind == KernelStepKind::reduce) {
      combine_range<T, Operation>(team, target, read_at(own, piece.first_place, piece.first), source, elements);
    } else if (source != target) {  // In place a rank's own part is where it has to be.
      copy_range<T>(team, target, source, elements);
    }
  }
  if (step.kind == KernelStepKind::finish && call.divides != 0) {
    divide_range<T>(team, own.receive, static_cast<std::uint64_t>(own.receive_bytes) / sizeof(T), call.rank_count);
  }
}

/// What a thread block does in a call. Step by step: some threads wait for the step's counters with acquire order, a
/// barrier, all threads move the bytes, a barrier, one thread signals with release order.
template <class T, class Operation, class Team>
ESPALIER_KERNEL_CODE void run_block(const KernelCall& call, const KernelBlock& block, Team& team) {
  const std::uint64_t ends_at = team.now() + call.deadline_ns;
  for (std::uint32_t i = 0; i < block.step_count; ++i) {
    const std::uint32_t index = block.first_step + i;
    const KernelStep& step = call.steps[index];
    bool stops = false;
    for (std::uint32_t wait = team.index(); wait < step.wait_count && !stops; wait += team.size()) {
      stops = !await_counter(call, block, i, step.first_wait + wait, ends_at, team);
    }
    if (team.any(stops)) return;
    if (call.stamps != nullptr && team.index() == 0) call.stamps[index].begin = team.now();
    carry_out<T, Operation>(call, block, step, team);
    team.sync();
    if (team.index() != 0) continue;
    if (call.stamps != nullptr) call.stamps[index].end = team.now();
    if (step.signal != nullptr) team.store_release(step.signal, team.load_relaxed(step.signal) + 1);
  }
  if (team.index() == 0) report_end(call, block, {BlockState::ended, block.step_count, 0, 0}, team);
}

}  // namespace espalier::engine::cuda
