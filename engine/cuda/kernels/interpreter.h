#pragma once

// Tested by: tests/unit/engine/cuda/elements_test.cpp

#include <cstdint>

#include "engine/cuda/kernels/bulk_copy.h"
#include "engine/cuda/kernels/kernel_call.h"
#include "engine/cuda/kernels/mailbox.h"
#include "engine/cuda/kernels/vectors.h"

/// The interpreter of device programs, once for GPUs and hosts. A team is the threads of a block: besides `index` and
/// `size`, `any` is its barrier and says whether any thread's value is true, `load_acquire`, `store_release` and
/// `load_relaxed` are of system scope, `now` is nanoseconds of a clock that all teams share. Where `has_bulk_copies`,
/// `mover` gives them.
namespace espalier::engine::cuda {

template <class Team>
ESPALIER_KERNEL_CODE void report_end(const KernelCall& call, const KernelBlock& block, const KernelReport& report,
                                     const Team&) {
  call.reports[block.number] = report;
}

template <class Team>
ESPALIER_KERNEL_CODE void stop(const KernelCall& call, const KernelBlock& block, const Team& team) {
  if (team.index() == 0) call.progress[block.number].is_stopped = 1;
}

/// Polls until something is there, with pauses once it has waited for a while: blocks that poll without pauses keep
/// others from memory. The abort flag is in host memory, so it is read seldom. False when the block has to stop.
/// `wait`: of the program's waits, for the report; `seen` is what it was last.
template <class Team, class IsThere>
ESPALIER_KERNEL_CODE bool await(const KernelCall& call, const KernelBlock& block, std::uint32_t step,
                                std::uint32_t wait, std::uint64_t ends_at, const std::uint32_t& seen, Team& team,
                                const IsThere& is_there) {
  for (std::uint32_t polls = 1;; ++polls) {
    if (is_there()) return true;
    if (polls >= Team::quick_polls) team.pause();
    if (polls % Team::polls_per_look != 0) continue;
    const bool is_late = team.now() >= ends_at;
    const bool is_aborted = team.load_relaxed(call.abort_flag) != 0;
    if (is_late && !is_aborted) team.store_release(call.abort_flag, 1);
    if (is_late || is_aborted) {
      const BlockState state = is_aborted ? BlockState::stopped : BlockState::timed_out;
      report_end(call, block, {state, step, wait, seen}, team);
      return false;
    }
  }
}

/// Waits for a counter; false when the block has to stop. It is polled with relaxed loads, which order
/// nothing, and acquired once it is there.
template <class Team>
ESPALIER_KERNEL_CODE bool await_counter(const KernelCall& call, const KernelBlock& block, std::uint32_t step,
                                        std::uint32_t index, std::uint64_t ends_at, Team& team) {
  const KernelWait wait = call.waits[index];
  const std::uint32_t goal = call.progress[block.number].run * wait.per_run + wait.count;
  std::uint32_t seen = 0;
  const bool came = await(call, block, step, index, ends_at, seen, team, [&] {
    seen = team.load_relaxed(wait.counter);
    return static_cast<std::int32_t>(seen - goal) >= 0;
  });
  if (came) seen = team.load_acquire(wait.counter);
  return came;
}

ESPALIER_KERNEL_CODE unsigned char* written_at(const KernelMemory& memory, KernelPlace place, std::int64_t offset) {
  return (place == KernelPlace::receive ? memory.receive : memory.scratch) + offset;
}
ESPALIER_KERNEL_CODE const unsigned char* read_at(const KernelMemory& memory, KernelPlace place, std::int64_t offset) {
  return place == KernelPlace::send ? memory.send + offset : written_at(memory, place, offset);
}

/// The other places to which a step writes a piece.
struct PieceDestinations {
  static constexpr bool is_none = false;
  const KernelCall& call;
  const KernelStep& step;
  std::uint32_t piece;

  [[nodiscard]] ESPALIER_KERNEL_CODE std::uint32_t count() const { return step.destination_count; }
  [[nodiscard]] ESPALIER_KERNEL_CODE unsigned char* at(std::uint32_t index) const {
    const KernelDestination& to = call.destinations[step.first_destination + index];
    const KernelTarget target = call.targets[to.first_target + piece];
    return written_at(call.memories[to.rank], target.place, target.offset);
  }
};

/// Steps that fill or read mailboxes, a packet per thread at a time. False when the block has to stop.
template <class T, class Operation, class Team>
ESPALIER_KERNEL_CODE bool carry_out_packets(const KernelCall& call, const KernelBlock& block, const KernelStep& step,
                                            std::uint32_t index, std::uint64_t ends_at, Team& team) {
  const KernelMemory& own = call.memories[block.rank];
  const std::uint32_t flag = call.progress[block.number].run + 1;
  const bool receives = step.kind != KernelStepKind::send;
  std::uint64_t slot = 0;  // Words of the pieces before.
  ESPALIER_ROLLED
  for (std::uint32_t i = 0; i < step.piece_count; ++i) {
    const KernelPiece piece = call.pieces[step.first_piece + i];
    const std::uint64_t elements = static_cast<std::uint64_t>(piece.length) / sizeof(T);
    const std::uint64_t packets = (static_cast<std::uint64_t>(piece.length) + packet_data - 1) / packet_data;
    const unsigned char* const source = read_at(own, piece.source_place, piece.source);
    const unsigned char* const first = read_at(own, piece.first_place, piece.first);
    unsigned char* const target = written_at(own, piece.target_place, piece.target);
    ESPALIER_ROLLED
    for (std::uint64_t packet = team.index(); packet < packets; packet += team.size()) {
      std::uint64_t data = 0;
      if (receives) {
        const std::uint64_t* const mailbox = own.mailbox + step.mailbox + slot;
        const bool came = await(call, block, index, mailbox_wait, ends_at, flag, team,
                                [&] { return read_packet(mailbox, packet, flag, data, team); });
        if (!came) return false;
        if (step.kind == KernelStepKind::receive_reduce)
          data = combine_packets<T, Operation>(load_packet<T>(first, packet, elements), data);
        store_packet<T>(target, packet, elements, data);
      } else {
        data = load_packet<T>(source, packet, elements);
      }
      ESPALIER_ROLLED
      for (std::uint32_t d = 0; d < step.destination_count; ++d) {
        const KernelDestination& to = call.destinations[step.first_destination + d];
        fill_packet(call.memories[to.rank].mailbox + to.mailbox + slot, packet, flag, data, team);
      }
    }
    slot += 2 * packets;
  }
  return true;
}

/// Whether a piece of a copy goes by bulk copies.
template <class Team, class Others>
ESPALIER_KERNEL_CODE bool goes_in_bulk(const KernelCall& call, const unsigned char* target, const unsigned char* source,
                                       const Others& others, std::int64_t bytes) {
  return Team::has_bulk_copies && call.bulk_copies != 0 && source != target &&
         takes_bulk(distance(target, source) | misalignment_of(target, others), static_cast<std::uint64_t>(bytes));
}

/// The pieces of a copy that do. Apart from the others, which then have more registers.
template <class T, class Team>
ESPALIER_KERNEL_CODE void carry_out_in_bulk(const KernelCall& call, const KernelBlock& block, const KernelStep& step,
                                            Team& team) {
  ESPALIER_ROLLED
  for (std::uint32_t i = 0; i < step.piece_count; ++i) {
    const KernelPiece piece = call.pieces[step.first_piece + i];
    unsigned char* const target = written_at(call.memories[block.rank], piece.target_place, piece.target);
    const unsigned char* const source = read_at(call.memories[step.peer], piece.source_place, piece.source);
    const PieceDestinations others{call, step, i};
    if (!goes_in_bulk<Team>(call, target, source, others, piece.length)) continue;
    copy_in_bulk<T>(team, target, source, static_cast<std::uint64_t>(piece.length) / sizeof(T), others);
  }
}

template <class T, class Operation, class Team>
ESPALIER_KERNEL_CODE void carry_out(const KernelCall& call, const KernelBlock& block, const KernelStep& step,
                                    Team& team) {
  const KernelMemory& own = call.memories[block.rank];
  ESPALIER_ROLLED
  for (std::uint32_t i = 0; i < step.piece_count; ++i) {
    const KernelPiece piece = call.pieces[step.first_piece + i];
    unsigned char* const target = written_at(own, piece.target_place, piece.target);
    const unsigned char* const source = read_at(call.memories[step.peer], piece.source_place, piece.source);
    const std::uint64_t elements = static_cast<std::uint64_t>(piece.length) / sizeof(T);
    const PieceDestinations others{call, step, i};
    if (step.kind == KernelStepKind::reduce) {
      const unsigned char* const first = read_at(own, piece.first_place, piece.first);
      if (others.count() == 0) {
        combine_range<T, Operation>(team, target, first, source, elements);
      } else {
        combine_range<T, Operation>(team, target, first, source, elements, others);
      }
    } else if (source != target || others.count() > 0) {  // In place a rank's own part is where it has to be.
      if (goes_in_bulk<Team>(call, target, source, others, piece.length)) continue;  // carry_out_in_bulk's.
      copy_range<T>(team, target, source, elements, others);
    }
  }
  if (step.kind == KernelStepKind::finish && call.divides != 0) {
    divide_range<T>(team, own.receive, static_cast<std::uint64_t>(own.receive_bytes) / sizeof(T), call.rank_count);
  }
}

/// What a thread block does in a call. Step by step: some threads wait for the step's counters with acquire order, a
/// barrier, all threads move the bytes, a barrier, then a thread for each counter signals with release order.
template <class T, class Operation, class Team>
ESPALIER_KERNEL_CODE void run_block(const KernelCall& call, const KernelBlock& block, Team& team) {
  if (call.progress[block.number].is_stopped != 0) return;
  const std::uint64_t ends_at = team.now() + call.deadline_ns;
  if constexpr (Team::has_bulk_copies) {
    if (call.bulk_copies != 0 && team.index() == 0) team.mover().begin();
  }
  for (std::uint32_t i = 0; i < block.step_count; ++i) {
    const std::uint32_t index = block.first_step + i;
    const KernelStep& step = call.steps[index];
    bool stops = false;
    for (std::uint32_t wait = team.index(); wait < step.wait_count && !stops; wait += team.size()) {
      stops = !await_counter(call, block, i, step.first_wait + wait, ends_at, team);
    }
    if (team.any(stops)) return stop(call, block, team);
    if (call.stamps != nullptr && team.index() == 0) call.stamps[index].begin = team.now();
    if (step.kind >= KernelStepKind::send) {
      stops = !carry_out_packets<T, Operation>(call, block, step, i, ends_at, team);
    } else {
      if constexpr (Team::has_bulk_copies) {
        const bool is_copy = step.kind == KernelStepKind::enter || step.kind == KernelStepKind::copy;
        if (call.bulk_copies != 0 && is_copy) carry_out_in_bulk<T>(call, block, step, team);
      }
      carry_out<T, Operation>(call, block, step, team);
    }
    if (team.any(stops)) return stop(call, block, team);
    if (call.stamps != nullptr && team.index() == 0) call.stamps[index].end = team.now();
    ESPALIER_ROLLED
    for (std::uint32_t s = team.index(); s <= step.destination_count; s += team.size()) {
      std::uint32_t* const signal =
          s == step.destination_count ? step.signal : call.destinations[step.first_destination + s].signal;
      if (signal != nullptr) team.store_release(signal, team.load_relaxed(signal) + 1);
    }
  }
  if (team.index() != 0) return;
  ++call.progress[block.number].run;
  report_end(call, block, {BlockState::ended, block.step_count, 0, 0}, team);
}

}  // namespace espalier::engine::cuda
