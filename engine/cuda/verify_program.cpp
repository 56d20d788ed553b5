#include "engine/cuda/verify_program.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  std::uint32_t step = 0;   ///< Within the block.
  std::uint32_t piece = 0;  ///< Of an access.
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
    cut_memories();
    return replay();
  }

 private:
  [[nodiscard]] const Step& step_at(StepPlace place) const {
    return program_.steps[program_.blocks[place.block].first_step + place.step];
  }
  [[nodiscard]] std::string describe(StepPlace place) const {
    return fmt::format("rank {}, block {}, step {}", program_.blocks[place.block].rank.value(), place.block,
                       place.step);
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
      for (std::uint32_t piece = step.first_piece; piece < step.first_piece + step.piece_count; ++piece) {
        const Piece& moved = program_.pieces[piece];
        if (!lies_within(step.peer, moved.source, moved.length) ||
            !lies_within(block.rank, moved.target, moved.length) ||
            !lies_within(block.rank, moved.first, moved.length)) {
          return fail_at(place, "a piece does not lie within its memory");
        }
        if (moved.target.place == Place::send) return fail_at(place, "it writes a send buffer");
      }
      if (step.signal == no_counter) continue;
      if (step.signal >= program_.counter_count) return fail_at(place, "the counter that it signals is not there");
      std::vector<StepPlace>& signals = signalled_[step.signal];
      if (!signals.empty() && signals.front().block != index) {
        return fail_at(place, fmt::format("counter {} is another block's", step.signal));
      }
      signals.push_back(place);
    }
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
    clock_after_.resize(program_.steps.size());
    bool moved = true;
    while (moved) {
      moved = false;
      for (std::uint32_t block = 0; block < blocks; ++block) {
        while (next_[block] < program_.blocks[block].step_count && may_begin({block, next_[block]})) {
          if (auto done = carry_out({block, next_[block]}); !done) return done;
          ++next_[block];
          moved = true;
        }
      }
    }
    for (std::uint32_t block = 0; block < blocks; ++block) {
      if (next_[block] < program_.blocks[block].step_count) {
        return fail_at({block, next_[block]}, "it waits for something that waits for it");
      }
    }
    return {};
  }

  [[nodiscard]] bool is_done(StepPlace place) const { return next_[place.block] > place.step; }

  [[nodiscard]] bool may_begin(StepPlace place) const {
    const Step& step = step_at(place);
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      const CounterWait& wait = program_.waits[step.first_wait + i];
      if (wait.count > 0 && !is_done(signalled_[wait.counter][wait.count - 1])) return false;
    }
    return true;
  }

  Result<void> carry_out(StepPlace place) {
    const Step& step = step_at(place);
    VectorClock& clock = clocks_[place.block];
    for (std::uint32_t i = 0; i < step.wait_count; ++i) {
      const CounterWait& wait = program_.waits[step.first_wait + i];
      if (wait.count == 0) continue;
      const StepPlace signal = signalled_[wait.counter][wait.count - 1];
      const VectorClock& known = clock_after_[program_.blocks[signal.block].first_step + signal.step];
      for (std::size_t block = 0; block < clock.size(); ++block) clock[block] = std::max(clock[block], known[block]);
    }
    const Rank rank = program_.blocks[place.block].rank;
    for (std::uint32_t piece = step.first_piece; piece < step.first_piece + step.piece_count; ++piece) {
      const Piece& moved = program_.pieces[piece];
      place.piece = piece;
      // In place a rank's own part is where it has to be.
      if (step.kind == StepKind::copy && resolve(step.peer, moved.source) == resolve(rank, moved.target)) continue;
      if (auto read = access(place, step.peer, moved.source, moved.length, false); !read) return read;
      if (step.kind == StepKind::reduce) {
        if (auto read = access(place, rank, moved.first, moved.length, false); !read) return read;
      }
      if (auto written = access(place, rank, moved.target, moved.length, true); !written) return written;
    }
    if (step.kind == StepKind::finish && program_.reduces) {
      if (auto divided = divide(place, rank); !divided) return divided;
    }
    clock[place.block] = place.step + 1;
    if (step.signal != no_counter) clock_after_[program_.blocks[place.block].first_step + place.step] = clock;
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
  std::vector<std::vector<StepPlace>> signalled_;  ///< By counter.
  std::vector<CellMap> memories_;                  ///< Three per rank, by Place.
  std::vector<std::uint32_t> next_;                ///< By block.
  std::vector<VectorClock> clocks_;                ///< By block.
  std::vector<VectorClock> clock_after_;           ///< By step, for those that signal.
};

}  // namespace

Result<void> verify(const DeviceProgram& program, bool in_place) { return ProgramVerifier(program, in_place).run(); }

}  // namespace espalier::engine::cuda
