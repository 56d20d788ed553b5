#include "engine/cuda/kernel_program.h"

#include <fmt/format.h>

#include "base/check.h"

namespace espalier::engine::cuda {
namespace {

static_assert(static_cast<int>(Place::send) == static_cast<int>(KernelPlace::send) &&
              static_cast<int>(Place::receive) == static_cast<int>(KernelPlace::receive) &&
              static_cast<int>(Place::scratch) == static_cast<int>(KernelPlace::scratch));
static_assert(static_cast<int>(StepKind::enter) == static_cast<int>(KernelStepKind::enter) &&
              static_cast<int>(StepKind::copy) == static_cast<int>(KernelStepKind::copy) &&
              static_cast<int>(StepKind::reduce) == static_cast<int>(KernelStepKind::reduce) &&
              static_cast<int>(StepKind::finish) == static_cast<int>(KernelStepKind::finish) &&
              static_cast<int>(StepKind::send) == static_cast<int>(KernelStepKind::send) &&
              static_cast<int>(StepKind::receive) == static_cast<int>(KernelStepKind::receive) &&
              static_cast<int>(StepKind::receive_reduce) == static_cast<int>(KernelStepKind::receive_reduce));

KernelPlace place_of(const Location& location) { return static_cast<KernelPlace>(location.place); }

std::uint64_t word_of(std::int64_t mailbox) { return static_cast<std::uint64_t>(mailbox) / sizeof(std::uint64_t); }

}  // namespace

KernelProgram lower(const DeviceProgram& program, std::span<std::uint32_t* const> counters) {
  ESPALIER_CHECK(counters.size() == program.counter_count, "every counter has an address");
  KernelProgram lowered;
  std::vector<std::uint32_t> per_run(program.counter_count, 0);
  for (const Destination& destination : program.destinations) {
    if (destination.signal != no_counter) ++per_run[destination.signal];
    lowered.destinations.push_back({destination.rank.value(), destination.first_target, word_of(destination.mailbox),
                                    destination.signal == no_counter ? nullptr : counters[destination.signal]});
  }
  for (const Location& target : program.targets) lowered.targets.push_back({target.offset, place_of(target)});
  for (const Step& step : program.steps) {
    if (step.signal != no_counter) ++per_run[step.signal];
    lowered.steps.push_back({static_cast<KernelStepKind>(step.kind), step.peer.value(), step.first_piece,
                             step.piece_count, step.first_wait, step.wait_count,
                             step.signal == no_counter ? nullptr : counters[step.signal], step.first_destination,
                             step.destination_count, word_of(step.mailbox)});
  }
  for (const CounterWait& wait : program.waits) {
    lowered.waits.push_back({counters[wait.counter], wait.count, per_run[wait.counter]});
  }
  for (const Piece& piece : program.pieces) {
    lowered.pieces.push_back({piece.length, piece.source.offset, piece.first.offset, piece.target.offset,
                              place_of(piece.source), place_of(piece.first), place_of(piece.target)});
  }
  for (const Block& block : program.blocks) {
    lowered.blocks.push_back(
        {block.rank.value(), block.first_step, block.step_count, static_cast<std::uint32_t>(lowered.blocks.size())});
  }
  return lowered;
}

std::vector<Rank> counter_owners(const DeviceProgram& program) {
  std::vector<Rank> owners(program.counter_count, Rank(0));
  for (const Block& block : program.blocks) {
    for (std::uint32_t i = 0; i < block.step_count; ++i) {
      const Step& step = program.steps[block.first_step + i];
      if (step.signal != no_counter) owners[step.signal] = block.rank;
      for (std::uint32_t d = 0; d < step.destination_count; ++d) {
        const std::uint32_t signal = program.destinations[step.first_destination + d].signal;
        if (signal != no_counter) owners[signal] = block.rank;
      }
    }
  }
  return owners;
}

Error describe_late_block(const DeviceProgram& program, std::uint32_t block, const KernelReport& report,
                          std::int64_t deadline_ms) {
  if (report.wait == mailbox_wait) {
    const Block& late = program.blocks[block];
    return {ErrorCode::unavailable,
            fmt::format("rank {}, block {}: nothing came from rank {} within {} ms", late.rank.value(), block,
                        program.steps[late.first_step + report.step].peer.value(), deadline_ms),
            {}};
  }
  const CounterWait& wait = program.waits[report.wait];
  return {ErrorCode::unavailable,
          fmt::format("rank {}, block {}: counter {} did not reach {} within {} ms", program.blocks[block].rank.value(),
                      block, wait.counter, wait.count, deadline_ms),
          {}};
}

}  // namespace espalier::engine::cuda
