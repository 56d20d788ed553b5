#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

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
  [[nodiscard]] bool holds(LaneIndex lane) const { return are_on() && members_[lane].is_held; }

  /// A lane's chunk departs, or will, at `time`; `next` is the lane's next one, none (no transfer) at its end. Calls
  /// `release(lane, departure)` for every lane that waits for no more rounds: when the last chunk departs, or did, of
  /// those that its chunk waits for. Requires: windows that are on; the lane is not held.
  template <class Release>
  void depart(LaneIndex lane, ChunkId chunk, std::int64_t time, ChunkId next, Release&& release) {
    const Member& member = members_[lane];
    if (member.source == no_source) return;
    Source& source = sources_[member.source];
    Round& round = at(source, member.round);
    round.latest.raise({time, chunk});
    --round.lanes;
    --source.inside;
    // Of one transfer each chunk's round is one more than that before it.
    if (!next.transfer.is_none()) {
      place(source, lane, next.chunk > 0 ? member.round + 1 : rounds_.round(next), release);
    }
    if (at(source, source.lowest).lanes == 0) move_on(source, release);
  }

 private:
  static constexpr std::uint32_t no_source = std::numeric_limits<std::uint32_t>::max();

  /// A lane that takes part, or does not.
  struct Member {
    std::uint32_t source = no_source;
    std::uint32_t round = 0;        ///< Of its next chunk.
    LaneIndex next_held = no_lane;  ///< Of those that are held in its round.
    bool is_held = false;
  };
  struct Round {
    std::uint32_t lanes = 0;         ///< Inside, whose next chunk is of this round.
    LaneIndex first_held = no_lane;  ///< Of those past the window; the others follow by Member::next_held.
    Departure latest;                ///< Of its chunks that have departed.
    Departure before;                ///< Of all lower rounds.
  };
  struct Source {
    std::uint32_t lowest = std::numeric_limits<std::uint32_t>::max();  ///< The window begins here.
    std::uint32_t inside = 0;                                          ///< Lanes within it.
    std::uint32_t near = 0;  ///< Lanes that are held in rounds not far past it.
    std::size_t first = 0;   ///< Of its rounds, a power of two that holds the window and one more, used in turn.
    std::vector<std::pair<std::uint32_t, LaneIndex>> far;  ///< The others that are held, by round; the lowest on top.
  };

  /// Of a round from the lowest on that is not far past the window; as far as `before` goes, of one at most `ahead`
  /// below the lowest or of the lowest.
  [[nodiscard]] Round& at(const Source& source, std::uint32_t round) {
    return by_round_[source.first + (round & last_slot_)];
  }
  template <class Release>
  void place(Source& source, LaneIndex lane, std::uint32_t round, Release&& release) {
    const std::uint32_t beyond = round - source.lowest;
    Member& member = members_[lane];
    member.round = round;
    member.is_held = beyond > rounds_.ahead();
    if (beyond > last_slot_) {
      source.far.emplace_back(round, lane);
      std::ranges::push_heap(source.far, std::greater());
    } else if (member.is_held) {
      member.next_held = std::exchange(at(source, round).first_held, lane);
      ++source.near;
    } else {
      let_in(source, lane, round, release);
    }
  }

  template <class Release>
  void let_in(Source& source, LaneIndex lane, std::uint32_t round, Release&& release) {
    members_[lane].is_held = false;
    ++at(source, round).lanes;
    ++source.inside;
    if (round > rounds_.ahead()) release(lane, at(source, round - rounds_.ahead()).before);
  }

  /// Moves the window up to the lowest round that is left.
  template <class Release>
  void move_on(Source& source, Release&& release) {
    while (at(source, source.lowest).lanes == 0) {
      if (source.inside == 0 && source.near == 0) {
        if (source.far.empty()) return;
        skip_to(source, source.far.front().first);
      } else {
        leave_lowest(source);
      }
      while (!source.far.empty() && source.far.front().first - source.lowest <= last_slot_) {
        const auto [round, lane] = source.far.front();
        std::ranges::pop_heap(source.far, std::greater());
        source.far.pop_back();
        place(source, lane, round, release);
      }
      const std::uint32_t last = source.lowest + rounds_.ahead();
      LaneIndex lane = std::exchange(at(source, last).first_held, no_lane);
      while (lane != no_lane) {
        const LaneIndex next = members_[lane].next_held;
        --source.near;
        let_in(source, lane, last, release);
        lane = next;
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

  /// Over rounds without chunks. Requires: nobody inside nor near.
  void skip_to(Source& source, std::uint32_t round) {
    const std::uint32_t rounds = last_slot_ + 1;
    for (std::uint32_t i = 0; i < rounds; ++i) leave_lowest(source);
    if (round - source.lowest > rounds) {
      const Departure before = at(source, source.lowest).before;
      source.lowest = round - rounds;
      at(source, source.lowest).before = before;
    }
    while (source.lowest < round) leave_lowest(source);
  }

  Rounds rounds_;
  std::vector<Member> members_;  // by lane
  std::vector<Source> sources_;
  std::vector<Round> by_round_;
  std::uint32_t last_slot_ = 0;  // of a source's rounds
};

}  // namespace espalier::sim
