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
              static_cast<int>(StepKind::finish) == static_cast<int>(KernelStepKind::finish));

KernelPlace place_of(const Location& location) { return static_cast<KernelPlace>(location.place); }

}  // namespace

KernelProgram lower(const DeviceProgram& program, std::span<std::uint32_t* const> counters) {
  ESPALIER_CHECK(counters.size() == program.counter_count, "every counter has an address");
  KernelProgram lowered;
  std::vector<std::uint32_t> per_run(program.counter_count, 0);
  for (const Step& step : program.steps) {
    if (step.signal != no_counter) ++per_run[step.signal];
    lowered.steps.push_back({static_cast<KernelStepKind>(step.kind), step.peer.value(), step.first_piece,
                             step.piece_count, step.first_wait, step.wait_count,
                             step.signal == no_counter ? nullptr : counters[step.signal]});
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
      const std::uint32_t signal = program.steps[block.first_step + i].signal;
      if (signal != no_counter) owners[signal] = block.rank;
    }
  }
  return owners;
}

Error describe_late_block(const DeviceProgram& program, std::uint32_t block, const KernelReport& report,
                          std::int64_t deadline_ms) {
  const CounterWait& wait = program.waits[report.wait];
  return {ErrorCode::unavailable,
          fmt::format("rank {}, block {}: counter {} did not reach {} within {} ms", program.blocks[block].rank.value(),
                      block, wait.counter, wait.count, deadline_ms),
          {}};
}

}  // namespace espalier::engine::cuda
