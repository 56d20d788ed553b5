#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "schedule/chunking.h"
#include "sim/compiled/compiled_schedule.h"
#include "sim/rounds/rounds.h"

namespace espalier::sim {

/// Keeps the lanes of every source within a window of rounds (docs/simulator.md, "Rounds"). Only lanes that share a
/// resource with others take part, where a source has two of them at least.
///
/// A lane is *inside* when its next chunk's round is in its source's window, and may hand it over; it is held
/// otherwise, until all chunks of lower rounds that its chunk waits for have departed.
class SendWindows {
 public:
  /// The latest departure of some chunks; time 0 when there is none.
  struct Departure {
    std::int64_t time = 0;
    ChunkId chunk;

    void raise(const Departure& other) {
      if (other.time > time) *this = other;
    }
  };

  /// Begins anew: every lane is at the first chunk of its first transfer.
  void begin(const CompiledSchedule& compiled, Rounds rounds);

  [[nodiscard]] bool are_on() const { return rounds_.are_on(); }
  [[nodiscard]] bool holds(LaneIndex lane) const { return are_on() && is_held_[lane]; }

  /// A lane's chunk departs, or will, at `time`; `next` is the lane's next one, none (no transfer) at its end. Calls
  /// `release(lane, departure)` for every lane that waits for no more rounds: when the last chunk departs, or did, of
  /// those that its chunk waits for. Requires: windows that are on; the lane is not held.
  template <class Release>
  void depart(LaneIndex lane, ChunkId chunk, std::int64_t time, ChunkId next, Release&& release) {
    if (source_of_[lane] == no_source) return;
    Source& source = sources_[source_of_[lane]];
    Round& round = at(source, rounds_.round(chunk));
    round.latest.raise({time, chunk});
    --round.lanes;
    --source.inside;
    if (!next.transfer.is_none()) place(source, lane, rounds_.round(next), release);
    move_on(source, release);
  }

 private:
  static constexpr std::uint32_t no_source = std::numeric_limits<std::uint32_t>::max();

  struct Round {
    std::uint32_t lanes = 0;  ///< Whose next chunk is of this round.
    Departure latest;         ///< Of its chunks that have departed.
    Departure before;         ///< Of all lower rounds.
  };
  struct Source {
    std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();  ///< The window begins here.
    std::uint32_t inside = 0;                                          ///< Lanes within it.
    std::size_t first = 0;                                  ///< Of its rounds, `ahead` + 1 of them, used in turn.
    std::vector<std::pair<std::uint32_t, LaneIndex>> held;  ///< By round; a heap, the lowest on top.
  };

  /// Of a round of the window; as far as `before` goes, of one at most `ahead` below it or of its first.
  [[nodiscard]] Round& at(const Source& source, std::uint32_t round) {
    return by_round_[source.first + round % (rounds_.ahead() + 1)];
  }
  template <class Release>
  void place(Source& source, LaneIndex lane, std::uint32_t round, Release&& release) {
    is_held_[lane] = round > source.lowest + rounds_.ahead();
    if (is_held_[lane]) {
      source.held.emplace_back(round, lane);
      std::ranges::push_heap(source.held, std::greater());
      return;
    }
    ++at(source, round).lanes;
    ++source.inside;
    if (round > rounds_.ahead()) release(lane, at(source, round - rounds_.ahead()).before);
  }

  /// Moves the window up to the lowest round that is left.
  template <class Release>
  void move_on(Source& source, Release&& release) {
    while (source.inside > 0 || !source.held.empty()) {
      if (source.inside == 0) {
        skip_to(source, source.held.front().first);
      } else if (at(source, source.lowest).lanes > 0) {
        return;
      } else {
        leave_lowest(source);
      }
      while (!source.held.empty() && source.held.front().first <= source.lowest + rounds_.ahead()) {
        const auto [round, lane] = source.held.front();
        std::ranges::pop_heap(source.held, std::greater());
        source.held.pop_back();
        place(source, lane, round, release);
      }
    }
  }

  void leave_lowest(Source& source) {
    Round& lowest = at(source, source.lowest++);
    Departure before = lowest.before;
    before.raise(lowest.latest);
    lowest.latest = {};
    at(source, source.lowest).before = before;
  }

  /// Over rounds without chunks.
  void skip_to(Source& source, std::uint32_t round) {
    const std::uint32_t rounds = rounds_.ahead() + 1;
    for (std::uint32_t i = 0; i < rounds; ++i) leave_lowest(source);
    if (round - source.lowest > rounds) {
      const Departure before = at(source, source.lowest).before;
      source.lowest = round - rounds;
      at(source, source.lowest).before = before;
    }
    while (source.lowest < round) leave_lowest(source);
  }

  Rounds rounds_;
  std::vector<std::uint32_t> source_of_;  // by lane: its source's place; none where it takes no part
  std::vector<char> is_held_;             // by lane
  std::vector<Source> sources_;
  std::vector<Round> by_round_;
};

}  // namespace espalier::sim
