#include "engine/cuda/program_time.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "base/check.h"

namespace espalier::engine::cuda {
namespace {

/// Carries out a program's steps on a clock alone.
class ProgramClock {
 public:
  ProgramClock(const DeviceProgram& program, const GpuCosts& costs)
      : program_(program),
        costs_(costs),
        signals_(program.counter_count),
        next_(program.blocks.size()),
        free_at_(program.blocks.size()) {}

  double run() {
    // Steps only wait for steps that come before them in an order that all blocks share, so each round ends some.
    for (bool moves = true; moves;) {
      moves = false;
      for (std::size_t block = 0; block < program_.blocks.size(); ++block) {
        while (next_[block] < program_.blocks[block].step_count && try_step(block)) moves = true;
      }
    }
    double last = 0;
    for (std::size_t block = 0; block < program_.blocks.size(); ++block) {
      ESPALIER_CHECK(next_[block] == program_.blocks[block].step_count, "no step of a verified program waits for ever");
      last = std::max(last, free_at_[block]);
    }
    return costs_.call + std::max(last, moved_bytes_ / costs_.rate_of_memory);
  }

 private:
  /// False where what it waits for has no time yet.
  bool try_step(std::size_t block) {
    const Step& step = program_.steps[program_.blocks[block].first_step + next_[block]];
    const auto ready = ready_at(program_.blocks[block].rank, step);
    if (!ready) return false;
    const double bytes = bytes_of(step);
    moved_bytes_ += bytes;
    const double end = std::max(free_at_[block], *ready) + cost_of(step) + bytes / costs_.rate_of_block;
    free_at_[block] = end;
    ++next_[block];
    note(step.signal, end);
    for (std::uint32_t i = 0; i < step.destination_count; ++i) {
      const Destination& to = program_.destinations[step.first_destination + i];
      note(to.signal, end);
      if (step.kind >= StepKind::send) filled_at_[{to.rank, to.mailbox}] = end;
    }
    return true;
  }

  [[nodiscard]] std::optional<double> ready_at(Rank rank, const Step& step) const {
    double ready = 0;
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      const CounterWait& wait = program_.waits[step.first_wait + i];
      if (wait.count == 0) continue;  // Of the call before.
      const std::vector<double>& signals = signals_[wait.counter];
      if (signals.size() < wait.count) return std::nullopt;
      ready = std::max(ready, signals[wait.count - 1] + costs_.counter_wait);
    }
    if (step.kind == StepKind::receive || step.kind == StepKind::receive_reduce) {
      const auto filled = filled_at_.find({rank, step.mailbox});
      if (filled == filled_at_.end()) return std::nullopt;
      ready = std::max(ready, filled->second);
    }
    return ready;
  }

  [[nodiscard]] double cost_of(const Step& step) const {
    if (step.kind == StepKind::enter || step.kind == StepKind::finish) return 0;
    const double step_alone = step.kind >= StepKind::send ? costs_.packet_step : costs_.counter_step;
    return step_alone + step.destination_count * costs_.destination;
  }

  /// Read plus written, as memory counts them. Packets are twice their data.
  [[nodiscard]] double bytes_of(const Step& step) const {
    if (step.kind == StepKind::enter || step.kind == StepKind::finish) return 0;
    const bool sends = step.kind == StepKind::send;
    const bool pulls = step.kind == StepKind::copy || step.kind == StepKind::reduce;
    const double packet = 2;
    double bytes = 0;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
      const Piece& piece = program_.pieces[step.first_piece + i];
      const auto read = [&](Place place) { return place == Place::send ? 1 : costs_.cached_read; };
      double per_byte = step.destination_count * (pulls ? 1 : packet);
      if (pulls || sends) per_byte += read(piece.source.place);
      if (!pulls && !sends) per_byte += packet * costs_.cached_read;
      if (step.kind == StepKind::reduce || step.kind == StepKind::receive_reduce) per_byte += read(piece.first.place);
      if (!sends) per_byte += 1;
      bytes += per_byte * static_cast<double>(piece.length);
    }
    return bytes;
  }

  void note(std::uint32_t counter, double at) {
    if (counter != no_counter) signals_[counter].push_back(at);
  }

  const DeviceProgram& program_;
  const GpuCosts& costs_;
  std::vector<std::vector<double>> signals_;                   ///< By counter: when it went up.
  std::map<std::pair<Rank, std::int64_t>, double> filled_at_;  ///< Slots of mailboxes.
  std::vector<std::uint32_t> next_;                            ///< By block: its next step, and when that may begin.
  std::vector<double> free_at_;
  double moved_bytes_ = 0;
};

}  // namespace

double program_seconds(const DeviceProgram& program, const GpuCosts& costs) {
  return ProgramClock(program, costs).run();
}

}  // namespace espalier::engine::cuda
