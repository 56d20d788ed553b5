#pragma once

// Tested by: tests/unit/sim/core/progress_test.cpp

#include <array>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/id.h"
#include "schedule/dependencies.h"
#include "sim/compiled/lanes.h"

namespace espalier::sim {

/// A time that is not known yet; later than any other.
inline constexpr std::int64_t unknown_time = std::numeric_limits<std::int64_t>::max();

/// When the chunks of each transfer departed, or arrived, as far as it is known; and who waits for more of it.
///
/// The chunks of a transfer become known in order, each at a time that is not before the last one's. What lies in the
/// past delays nobody, so only the latest times of a transfer are kept: as many as are still to come, and a few at
/// least. So memory goes with the chunks under way and not with all.
class KnownTimes {
 public:
  /// Forgets everything and keeps its memory.
  void reset(std::size_t transfers);

  /// The next chunk of the transfer; `past`: what was before this time may be forgotten.
  void add(TransferId transfer, std::int64_t time, std::int64_t past) {
    Line& line = lines_[transfer.index()];
    std::int64_t* slot = &at(line, line.known);
    if (line.known > line.last_slot && *slot >= past) slot = &make_room(line);
    *slot = time;
    ++line.known;
  }

  /// How many chunks of it are known.
  [[nodiscard]] std::uint32_t known(TransferId transfer) const { return lines_[transfer.index()].known; }

  /// `unknown_time` for a chunk that is not known; a time in the past may come out as 0.
  [[nodiscard]] std::int64_t of(TransferId transfer, std::uint32_t chunk) const {
    const Line& line = lines_[transfer.index()];
    if (chunk >= line.known) return unknown_time;
    if (line.known - chunk > line.last_slot + 1) return 0;
    return at(line, chunk);
  }

  /// The first of the lanes that wait for a chunk which is not known; the others follow by Lane::next_waiting.
  [[nodiscard]] LaneIndex& first_waiting(TransferId transfer) { return lines_[transfer.index()].first_waiting; }
  [[nodiscard]] LaneIndex first_waiting(TransferId transfer) const { return lines_[transfer.index()].first_waiting; }
  /// Asks memory for all of a transfer.
  void fetch(TransferId transfer) const { __builtin_prefetch(&lines_[transfer.index()]); }

 private:
  static constexpr std::uint32_t few = 2;

  /// All of one transfer, next to each other: its times are looked up soon after they were written.
  struct alignas(32) Line {
    std::uint32_t known = 0;
    std::uint32_t last_slot = few - 1;  ///< Of those that are used in turn, a power of two; more than few are apart.
    std::uint32_t first_slot = 0;       ///< Then: where they begin.
    LaneIndex first_waiting = no_lane;
    std::array<std::int64_t, few> times{};
  };

  [[nodiscard]] std::int64_t at(const Line& line, std::uint32_t chunk) const {
    return line.last_slot < few ? line.times[chunk % few] : apart_[line.first_slot + (chunk & line.last_slot)];
  }
  [[nodiscard]] std::int64_t& at(Line& line, std::uint32_t chunk) {
    return line.last_slot < few ? line.times[chunk % few] : apart_[line.first_slot + (chunk & line.last_slot)];
  }
  /// Twice as much, and the place of the next one in it.
  std::int64_t& make_room(Line& line);

  std::vector<Line> lines_;  // by transfer
  std::vector<std::int64_t> apart_;
};

/// When chunks departed and arrived. Times are known ahead: as soon as a link has taken a chunk, it is certain when the
/// chunk leaves it.
class Progress {
 public:
  /// Forgets everything. `keeps_departures`: somebody waits for some.
  void reset(std::size_t transfers, bool keeps_departures) {
    arrivals_.reset(transfers);
    departures_.reset(keeps_departures ? transfers : 0);
    past_ = 0;
  }

  /// What was before this time may be forgotten; it never goes back.
  void set_past(std::int64_t time) { past_ = time; }

  /// The transfer's next chunk departs or arrives, or will. Requires: departures that are kept.
  void add(TransferId transfer, Wait wait, std::int64_t time) { times(wait).add(transfer, time, past_); }

  void fetch_arrivals(TransferId transfer) const { arrivals_.fetch(transfer); }
  [[nodiscard]] LaneIndex first_waiting_for_arrival(TransferId transfer) const {
    return arrivals_.first_waiting(transfer);
  }

  [[nodiscard]] KnownTimes& times(Wait wait) { return wait == Wait::arrival ? arrivals_ : departures_; }

 private:
  KnownTimes arrivals_;
  KnownTimes departures_;
  std::int64_t past_ = 0;
};

}  // namespace espalier::sim
