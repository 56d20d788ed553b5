#include "engine/cuda/verify_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace espalier::engine::cuda {
namespace {

/// Steps of every block that are known to be done.
using VectorClock = std::vector<std::uint32_t>;

struct StepPlace {
  std::uint32_t block = 0;
  std::uint32_t step = 0;   ///< Within the block, counted over both calls.
  std::uint32_t piece = 0;  ///< Of an access.
};

constexpr std::uint32_t calls = 2;

/// A slot of a mailbox: who fills and who reads it, within a call.
struct Slot {
  std::int64_t bytes = 0;
  std::optional<StepPlace> sender;
  std::optional<StepPlace> receiver;
};

/// Bytes that all accesses treat alike, and who accessed them: the last write, and the reads since.
struct Cell {
  std::optional<StepPlace> write;
  std::vector<StepPlace> reads;
};

/// The memory of one place of one rank, cut where accesses begin or end.
struct CellMap {
  std::vector<std::int64_t> cuts;
  std::vector<Cell> cells;
};

class ProgramVerifier {
 public:
  ProgramVerifier(const DeviceProgram& program, bool in_place) : program_(program), in_place_(in_place) {}

  Result<void> run() {
    for (std::uint32_t block = 0; block < program_.blocks.size(); ++block) {
      if (auto checked = check_block(block); !checked) return checked;
    }
    if (auto checked = check_waits(); !checked) return checked;
    if (auto checked = check_slots(); !checked) return checked;
    cut_memories();
    return replay();
  }

 private:
  [[nodiscard]] const Step& step_at(StepPlace place) const {
    const Block& block = program_.blocks[place.block];
    return program_.steps[block.first_step + place.step % block.step_count];
  }
  [[nodiscard]] std::string describe(StepPlace place) const {
    const Block& block = program_.blocks[place.block];
    return fmt::format("rank {}, block {}, step {}{}", block.rank.value(), place.block, place.step % block.step_count,
                       place.step < block.step_count ? "" : " of the next call");
  }
  [[nodiscard]] tl::unexpected<Error> fail_at(StepPlace place, std::string_view what) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}: {}", describe(place), what));
  }

  [[nodiscard]] bool lies_within(Rank rank, const Location& location, std::int64_t length) const {
    const MemorySizes& sizes = program_.memories[rank.index()];
    const std::int64_t size = location.place == Place::send      ? sizes.send
                              : location.place == Place::receive ? sizes.receive
                                                                 : sizes.scratch;
    return location.offset >= 0 && length > 0 && length <= size && location.offset <= size - length &&
           location.offset % program_.element_size == 0 && length % program_.element_size == 0;
  }

  Result<void> check_block(std::uint32_t index) {
    const Block& block = program_.blocks[index];
    if (block.rank.index() >= program_.memories.size() || block.first_step > program_.steps.size() ||
        block.step_count > program_.steps.size() - block.first_step) {
      return fail(ErrorCode::invalid_input, fmt::format("block {}: its rank or its steps are not there", index));
    }
    signalled_.resize(program_.counter_count);
    for (std::uint32_t i = 0; i < block.step_count; ++i) {
      const StepPlace place{index, i};
      const Step& step = step_at(place);
      if (step.peer.index() >= program_.memories.size() || step.first_piece > program_.pieces.size() ||
          step.piece_count > program_.pieces.size() - step.first_piece || step.first_wait > program_.waits.size() ||
          step.wait_count > program_.waits.size() - step.first_wait) {
        return fail_at(place, "its peer, pieces or waits are not there");
      }
      if (auto checked = check_pieces(place, step, block.rank); !checked) return checked;
      if (auto checked = check_destinations(place, step); !checked) return checked;
      if (auto checked = check_signal(place, step.signal); !checked) return checked;
    }
    return {};
  }

  Result<void> check_pieces(StepPlace place, const Step& step, Rank rank) const {
    for (std::uint32_t piece = step.first_piece; piece < step.first_piece + step.piece_count; ++piece) {
      const Piece& moved = program_.pieces[piece];
      const bool is_read = step.kind != StepKind::receive && step.kind != StepKind::receive_reduce;
      if ((is_read && !lies_within(step.peer, moved.source, moved.length)) ||
          (step.kind != StepKind::send &&
           (!lies_within(rank, moved.target, moved.length) || !lies_within(rank, moved.first, moved.length)))) {
        return fail_at(place, "a piece does not lie within its memory");
      }
      if (step.kind != StepKind::send && moved.target.place == Place::send) {
        return fail_at(place, "it writes a send buffer");
      }
    }
    return {};
  }

  Result<void> check_destinations(StepPlace place, const Step& step) {
    if (step.first_destination > program_.destinations.size() ||
        step.destination_count > program_.destinations.size() - step.first_destination) {
      return fail_at(place, "its destinations are not there");
    }
    std::int64_t bytes = 0;  // Of a slot.
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
      bytes += mailbox_bytes(program_.pieces[step.first_piece + i].length);
    }
    if (step.kind == StepKind::receive || step.kind == StepKind::receive_reduce) {
      if (auto added = add_slot(place, program_.blocks[place.block].rank, step.mailbox, bytes, &Slot::receiver);
          !added) {
        return added;
      }
    }
    for (std::uint32_t d = 0; d < step.destination_count; ++d) {
      const Destination& to = program_.destinations[step.first_destination + d];
      if (to.rank.index() >= program_.memories.size()) return fail_at(place, "a destination is not there");
      if (auto checked = check_signal(place, to.signal); !checked) return checked;
      if (step.kind >= StepKind::send) {
        if (auto added = add_slot(place, to.rank, to.mailbox, bytes, &Slot::sender); !added) return added;
        continue;
      }
      if (to.first_target > program_.targets.size() || step.piece_count > program_.targets.size() - to.first_target) {
        return fail_at(place, "the targets of a destination are not there");
      }
      for (std::uint32_t i = 0; i < step.piece_count; ++i) {
        const Location& target = program_.targets[to.first_target + i];
        if (target.place == Place::send ||
            !lies_within(to.rank, target, program_.pieces[step.first_piece + i].length)) {
          return fail_at(place, "a destination's target does not lie within its memory");
        }
      }
    }
    return {};
  }

  Result<void> add_slot(StepPlace place, Rank rank, std::int64_t begin, std::int64_t bytes,
                        std::optional<StepPlace> Slot::*end) {
    if (bytes == 0) return {};
    if (begin < 0 || begin % mailbox_bytes(1) != 0 || bytes > program_.memories[rank.index()].mailbox - begin) {
      return fail_at(place, "a slot does not lie within its mailbox");
    }
    Slot& slot = slots_.try_emplace({rank, begin}).first->second;
    if (slot.*end || (slot.bytes != 0 && slot.bytes != bytes)) {
      return fail_at(place, "another step uses its slot of the mailbox, or one of other bytes");
    }
    slot.bytes = bytes;
    slot.*end = place;
    return {};
  }

  Result<void> check_slots() const {
    const std::pair<const std::pair<Rank, std::int64_t>, Slot>* last = nullptr;
    for (const auto& entry : slots_) {
      const Slot& slot = entry.second;
      if (!slot.receiver) return fail_at(*slot.sender, "nobody reads the slot of the mailbox that it fills");
      if (!slot.sender) return fail_at(*slot.receiver, "nobody fills the slot of the mailbox that it reads");
      if (last != nullptr && last->first.first == entry.first.first &&
          last->first.second + last->second.bytes > entry.first.second) {
        return fail_at(*slot.receiver, "its slot of the mailbox overlaps another");
      }
      last = &entry;
    }
    return {};
  }

  Result<void> check_signal(StepPlace place, std::uint32_t signal) {
    if (signal == no_counter) return {};
    if (signal >= program_.counter_count) return fail_at(place, "the counter that it signals is not there");
    std::vector<StepPlace>& signals = signalled_[signal];
    if (!signals.empty() && signals.front().block != place.block) {
      return fail_at(place, fmt::format("counter {} is another block's", signal));
    }
    signals.push_back(place);
    return {};
  }

  Result<void> check_waits() const {
    for (const CounterWait& wait : program_.waits) {
      if (wait.counter < program_.counter_count && wait.count <= signalled_[wait.counter].size()) continue;
      return fail(ErrorCode::invalid_input, fmt::format("counter {} never reaches {}", wait.counter, wait.count));
    }
    return {};
  }

  /// Where a location's bytes begin, and in which memory: in place the send buffer is part of the receive buffer's.
  [[nodiscard]] std::pair<std::size_t, std::int64_t> resolve(Rank rank, const Location& location) const {
    const auto& shift = program_.memories[rank.index()].in_place_shift;
    if (in_place_ && shift && location.place == Place::send) {
      return {rank.index() * 3 + static_cast<std::size_t>(Place::receive), location.offset + *shift};
    }
    return {rank.index() * 3 + static_cast<std::size_t>(location.place), location.offset};
  }

  void cut_memories() {
    memories_.resize(program_.memories.size() * 3);
    for (const Block& block : program_.blocks) {
      for (std::uint32_t i = 0; i < block.step_count; ++i) {
        const Step& step = program_.steps[block.first_step + i];
        for (std::uint32_t piece = step.first_piece; piece < step.first_piece + step.piece_count; ++piece) {
          const Piece& moved = program_.pieces[piece];
          add_cut(step.peer, moved.source, moved.length);
          add_cut(block.rank, moved.target, moved.length);
          add_cut(block.rank, moved.first, moved.length);
        }
        if (step.kind >= StepKind::send) continue;
        for (std::uint32_t d = 0; d < step.destination_count; ++d) {
          const Destination& to = program_.destinations[step.first_destination + d];
          for (std::uint32_t p = 0; p < step.piece_count; ++p) {
            add_cut(to.rank, program_.targets[to.first_target + p], program_.pieces[step.first_piece + p].length);
          }
        }
      }
    }
    for (CellMap& memory : memories_) {
      std::ranges::sort(memory.cuts);
      memory.cuts.erase(std::unique(memory.cuts.begin(), memory.cuts.end()), memory.cuts.end());
      memory.cells.resize(memory.cuts.size());
    }
  }

  void add_cut(Rank rank, const Location& location, std::int64_t length) {
    const auto [memory, offset] = resolve(rank, location);
    memories_[memory].cuts.push_back(offset);
    memories_[memory].cuts.push_back(offset + length);
  }

  /// Lets blocks run in turn until none can go on.
  Result<void> replay() {
    const std::size_t blocks = program_.blocks.size();
    next_.assign(blocks, 0);
    clocks_.assign(blocks, VectorClock(blocks, 0));
    clock_after_.resize(program_.steps.size() * calls);
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t block = 0; block < blocks; ++block) {
        while (next_[block] < program_.blocks[block].step_count * calls && may_begin({block, next_[block]})) {
          if (auto done = carry_out({block, next_[block]}); !done) return done;
          ++next_[block];
          moved = true;
        }
      }
    }
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (next_[block] < program_.blocks[block].step_count * calls) {
        return fail_at({block, next_[block]}, "it waits for something that waits for it");
      }
    }
    return {};
  }

  [[nodiscard]] bool is_done(StepPlace place) const { return next_[place.block] > place.step; }
  [[nodiscard]] bool is_next_call(StepPlace place) const {
    return place.step >= program_.blocks[place.block].step_count;
  }
  [[nodiscard]] StepPlace in_call_of(StepPlace place, StepPlace other) const {
    if (is_next_call(place)) other.step += program_.blocks[other.block].step_count;
    return other;
  }

  /// The step whose signal a wait of a step in one of the calls is for; nothing where it is met from the start.
  [[nodiscard]] std::optional<StepPlace> signal_of(StepPlace place, const CounterWait& wait) const {
    const std::vector<StepPlace>& signals = signalled_[wait.counter];
    if (is_next_call(place) && wait.count > 0) return in_call_of(place, signals[wait.count - 1]);
    if (is_next_call(place)) return signals.empty() ? std::nullopt : std::optional(signals.back());
    return wait.count == 0 ? std::nullopt : std::optional(signals[wait.count - 1]);
  }

  /// Calls visit(block) for those of a rank where a block begins its next call.
  template <class Visit>
  void for_each_of_call_before(StepPlace place, const Visit& visit) const {
    if (place.step != program_.blocks[place.block].step_count) return;
    for (std::uint32_t block = 0; block < program_.blocks.size(); ++block) {
      if (program_.blocks[block].rank == program_.blocks[place.block].rank) visit(block);
    }
  }

  [[nodiscard]] bool may_begin(StepPlace place) const {
    const Step& step = step_at(place);
    bool may = true;
    for_each_of_call_before(
        place, [&](std::uint32_t block) { may = may && next_[block] >= program_.blocks[block].step_count; });
    for (std::uint32_t i = 0; may && i < step.wait_count; ++i) {
      const auto signal = signal_of(place, program_.waits[step.first_wait + i]);
      may = !signal || is_done(*signal);
    }
    if (may && (step.kind == StepKind::receive || step.kind == StepKind::receive_reduce)) {
      const auto slot = slots_.find({program_.blocks[place.block].rank, step.mailbox});
      may = step.piece_count == 0 || is_done(in_call_of(place, *slot->second.sender));
    }
    return may;
  }

  void learn(VectorClock& clock, const VectorClock& known) const {
    for (std::size_t block = 0; block < clock.size(); ++block) clock[block] = std::max(clock[block], known[block]);
  }

  VectorClock& clock_after(StepPlace place) {
    const Block& block = program_.blocks[place.block];
    return clock_after_[(block.first_step + place.step % block.step_count) * calls + (is_next_call(place) ? 1 : 0)];
  }

  Result<void> carry_out(StepPlace place) {
    const Step& step = step_at(place);
    VectorClock& clock = clocks_[place.block];
    // At the end of a call, as far as its blocks know it: they may be in the next one.
    for_each_of_call_before(place, [&](std::uint32_t block) {
      const std::uint32_t count = program_.blocks[block].step_count;
      if (block != place.block && count > 0) learn(clock, clock_after({block, count - 1}));
    });
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      const auto signal = signal_of(place, program_.waits[step.first_wait + i]);
      if (signal) learn(clock, clock_after(*signal));
    }
    const Rank rank = program_.blocks[place.block].rank;
    if (auto moved = move_pieces(place, step, rank); !moved) return moved;
    if (step.kind == StepKind::finish && program_.reduces) {
      if (auto divided = divide(place, rank); !divided) return divided;
    }
    clock[place.block] = place.step + 1;
    if (has_signal(step) || (place.step + 1) % program_.blocks[place.block].step_count == 0) clock_after(place) = clock;
    return {};
  }

  [[nodiscard]] bool has_signal(const Step& step) const {
    return step.signal != no_counter || step.destination_count > 0;
  }

  Result<void> move_pieces(StepPlace place, const Step& step, Rank rank) {
    const bool receives = step.kind == StepKind::receive || step.kind == StepKind::receive_reduce;
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
      const Piece& moved = program_.pieces[step.first_piece + i];
      place.piece = step.first_piece + i;
      // In place a rank's own part is where it has to be.
      const bool stays = step.kind == StepKind::copy && resolve(step.peer, moved.source) == resolve(rank, moved.target);
      if (!receives && !(stays && step.destination_count == 0)) {
        if (auto read = access(place, step.peer, moved.source, moved.length, false); !read) return read;
      }
      if (step.kind == StepKind::reduce || step.kind == StepKind::receive_reduce) {
        if (auto read = access(place, rank, moved.first, moved.length, false); !read) return read;
      }
      if (step.kind != StepKind::send && !stays) {
        if (auto written = access(place, rank, moved.target, moved.length, true); !written) return written;
      }
      for (std::uint32_t d = 0; step.kind < StepKind::send && d < step.destination_count; ++d) {
        const Destination& to = program_.destinations[step.first_destination + d];
        const Location& target = program_.targets[to.first_target + i];
        if (auto written = access(place, to.rank, target, moved.length, true); !written) return written;
      }
    }
    return step.kind >= StepKind::send && step.piece_count > 0 ? fill_slots(place, step) : Result<void>();
  }

  /// In the next call the slots have to be read before they are filled again.
  Result<void> fill_slots(StepPlace place, const Step& step) const {
    for (std::uint32_t d = 0; is_next_call(place) && d < step.destination_count; ++d) {
      const Destination& to = program_.destinations[step.first_destination + d];
      const StepPlace receiver = *slots_.find({to.rank, to.mailbox})->second.receiver;
      if (!is_ordered(receiver, place)) return fail_race(place, receiver, "reads");
    }
    return {};
  }

  [[nodiscard]] bool is_ordered(StepPlace earlier, StepPlace later) const {
    if (earlier.block != later.block) return clocks_[later.block][earlier.block] > earlier.step;
    // The pieces of a step are moved by many threads at once.
    return earlier.step != later.step || earlier.piece == later.piece;
  }

  Result<void> access(StepPlace place, Rank rank, const Location& location, std::int64_t length, bool is_write) {
    const auto [index, offset] = resolve(rank, location);
    CellMap& memory = memories_[index];
    auto at = static_cast<std::size_t>(std::ranges::lower_bound(memory.cuts, offset) - memory.cuts.begin());
    for (; memory.cuts[at] < offset + length; ++at) {
      Cell& cell = memory.cells[at];
      if (cell.write && !is_ordered(*cell.write, place)) return fail_race(place, *cell.write, "writes");
      if (!is_write) {
        if (!cell.write && location.place == Place::scratch) return fail_at(place, "it reads what nobody wrote");
        std::erase_if(cell.reads, [&](StepPlace read) {
          return read.block == place.block && (read.step != place.step || read.piece == place.piece);
        });
        cell.reads.push_back(place);
        continue;
      }
      for (const StepPlace read : cell.reads) {
        if (!is_ordered(read, place)) return fail_race(place, read, "reads");
      }
      cell.reads.clear();
      cell.write = place;
    }
    return {};
  }

  /// What `avg` does at the end: it writes the whole result.
  Result<void> divide(StepPlace place, Rank rank) {
    const auto index = rank.index() * 3 + static_cast<std::size_t>(Place::receive);
    const std::vector<std::int64_t>& cuts = memories_[index].cuts;
    for (std::size_t at = 0; at + 1 < cuts.size(); ++at) {
      if (cuts[at] < 0 || cuts[at] >= program_.memories[rank.index()].receive) continue;
      const Location cell{Place::receive, cuts[at]};
      if (auto written = access(place, rank, cell, cuts[at + 1] - cuts[at], true); !written) return written;
    }
    return {};
  }

  [[nodiscard]] tl::unexpected<Error> fail_race(StepPlace place, StepPlace other, std::string_view does) const {
    return fail_at(place, fmt::format("nothing orders it with what {} the same bytes: {}", does, describe(other)));
  }

  const DeviceProgram& program_;
  bool in_place_;
  std::vector<std::vector<StepPlace>> signalled_;        ///< By counter.
  std::map<std::pair<Rank, std::int64_t>, Slot> slots_;  ///< By mailbox and place.
  std::vector<CellMap> memories_;                        ///< Three per rank, by Place.
  std::vector<std::uint32_t> next_;                      ///< By block.
  std::vector<VectorClock> clocks_;                      ///< By block.
  std::vector<VectorClock> clock_after_;                 ///< By step and call, for those that others learn from.
};

}  // namespace

Result<void> verify(const DeviceProgram& program, bool in_place) { return ProgramVerifier(program, in_place).run(); }

}  // namespace espalier::engine::cuda
