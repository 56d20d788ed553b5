#pragma once

// Tested by: tests/unit/sim/core/event_queue_test.cpp

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace espalier::sim {

/// A chunk's head asks for its next resource.
struct Event {
  std::int64_t time = 0;     ///< In picoseconds.
  std::uint32_t order = 0;   ///< Orders the events of one time: the transfer's place among those of all runs.
  std::uint32_t packet = 0;  ///< Which chunk in the network it is.
};

/// A monotone priority queue on 64-bit times: what is pushed is never earlier than what was popped last. A radix heap
/// with 64 buckets on each level: an event lies on the level of the highest six bits in which its time differs from
/// `last_`, and moves down at most once per level. The first bucket is not taken apart further where it holds few
/// events, or all of one time: these are sorted, and taken one after the other. Events of one time stay in the order of
/// their pushes.
///
/// Invariants: (1) all events before sorted_end_ are sorted, all others on levels; (2) all events on levels lie there
/// in relation to the same `last_`, which changes only when a bucket is taken and nothing sorted is left, to a time in
/// that bucket: every other event differs from both in the same highest digits. Source: R. Ahuja, K. Mehlhorn, J.
/// Orlin, R. Tarjan, "Faster algorithms for the shortest path problem", JACM 37 (1990), section 2. Chosen by
/// bench/event_queue_bench.cpp.
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Requires: event.time is at least the time of the last pop, and not negative.
  /// Cost: O(1); O(11) over the event's life.
  void push(const Event& event) {
    if (static_cast<std::uint64_t>(event.time) < sorted_end_) {
      push_sorted(event);
    } else {
      place(event);
    }
    ++size_;
    if (event.time < earliest_) earliest_ = event.time;
  }

  /// When the earliest event is. Requires: not empty.
  /// Cost: O(1), or once after a pop O(events of one bucket).
  [[nodiscard]] std::int64_t earliest() const;

  /// Takes out all events of the earliest time, in the order of their pushes. The old contents of `batch` are dropped.
  /// Requires: not empty.
  void pop_earliest(std::vector<Event>& batch);

  /// Events that the last pop found to be among the next ones, some time ahead, right behind those that are sorted now,
  /// and sorted now; if it found out about some, not all and in no order: for fetching what they need from memory,
  /// until the next push.
  [[nodiscard]] std::span<const Event> upcoming() const { return upcoming_; }
  [[nodiscard]] std::span<const Event> following() const { return following_; }
  [[nodiscard]] std::span<const Event> imminent() const { return std::span(sorted_).first(imminent_); }

 private:
  static constexpr std::size_t digit_bits = 6;
  static constexpr std::size_t digit_count = std::size_t{1} << digit_bits;
  static constexpr std::size_t level_count = (63 + digit_bits - 1) / digit_bits;
  static constexpr std::int64_t not_known = std::numeric_limits<std::int64_t>::max();
  struct Level {
    std::array<std::vector<Event>, digit_count> buckets;
    std::uint64_t occupied = 0;

    [[nodiscard]] std::size_t first() const { return static_cast<std::size_t>(std::countr_zero(occupied)); }
  };

  void place(const Event& event) {
    const auto time = static_cast<std::uint64_t>(event.time);
    const auto level = static_cast<std::size_t>(63 - std::countl_zero((time ^ last_) | 1U)) / digit_bits;
    const std::size_t digit = (time >> (digit_bits * level)) & (digit_count - 1);
    levels_[level].buckets[digit].push_back(event);
    levels_[level].occupied |= std::uint64_t{1} << digit;
    occupied_levels_ |= 1U << level;
  }
  [[nodiscard]] std::size_t first_level() const { return static_cast<std::size_t>(std::countr_zero(occupied_levels_)); }

  void push_sorted(const Event& event);
  void sort_next();
  void keep_earliest(std::vector<Event>& events, std::int64_t earliest);

  std::vector<Level> levels_{level_count};
  unsigned occupied_levels_ = 0;
  std::uint64_t last_ = 0;  // the first time of the bucket that was sorted last: no later than any event
  std::size_t size_ = 0;
  // All events before sorted_end_, by time; those before `taken_` are gone.
  std::vector<Event> sorted_;
  std::size_t taken_ = 0;
  std::size_t imminent_ = 0;
  std::uint64_t sorted_end_ = 0;
  mutable std::int64_t earliest_ =
      not_known;  // of the events pushed since the last pop, or of all when it was asked for
  mutable bool earliest_is_of_all_ = true;
  std::vector<Event> moving_;
  std::vector<Event> upcoming_;
  std::span<const Event> following_;
};

/// Sorts events of one time by their order. Takes advantage of ascending runs, which is how the symmetry of a schedule
/// makes them arrive. Stable. `scratch` is working space. Cost: O(n log(runs)).
void sort_by_order(std::vector<Event>& events, std::vector<Event>& scratch);

}  // namespace espalier::sim
