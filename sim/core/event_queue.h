#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace espalier::sim {

/// A chunk's head asks for its next resource.
struct Event {
  std::int64_t time = 0;     ///< In picoseconds.
  std::uint32_t order = 0;   ///< Orders the events of one time: the transfer's place among those of all runs.
  std::uint32_t packet = 0;  ///< Which chunk in the network it is.
};

/// A monotone priority queue on 64-bit times: what is pushed is never earlier than what was popped last. A radix heap
/// with 256 buckets on each of 8 levels: an event lies on the level of the highest byte in which its time differs from
/// the last popped one, and moves down at most once per level. Events of one time stay in the order of their pushes.
/// Source: R. Ahuja, K. Mehlhorn, J. Orlin, R. Tarjan, "Faster algorithms for the shortest path problem", JACM 37
/// (1990), section 2. Chosen by bench/event_queue_bench.cpp.
class EventQueue {
 public:
  [[nodiscard]] bool empty() const { return size_ == 0; }
  [[nodiscard]] std::size_t size() const { return size_; }

  /// Requires: event.time is at least the time of the last pop, and not negative.
  /// Cost: O(1); O(8) over the event's life.
  void push(const Event& event) {
    place(event);
    ++size_;
    if (event.time < earliest_) earliest_ = event.time;
  }

  /// When the earliest event is. Requires: not empty.
  /// Cost: O(1), or once after a pop O(events of one bucket).
  [[nodiscard]] std::int64_t earliest() const;

  /// Takes out all events of the earliest time, in the order of their pushes. The old contents of `batch` are dropped.
  /// Requires: not empty.
  void pop_earliest(std::vector<Event>& batch);

  /// Events that the last pop found to be among the next ones, if it found out about some; not all and in no order: for
  /// fetching what they need from memory.
  [[nodiscard]] const std::vector<Event>& upcoming() const { return upcoming_; }

 private:
  static constexpr std::size_t level_count = 8;
  static constexpr std::int64_t not_known = std::numeric_limits<std::int64_t>::max();
  static constexpr std::size_t digit_count = 256;
  struct Level {
    std::array<std::vector<Event>, digit_count> buckets;
    std::array<std::uint64_t, digit_count / 64> occupied{};
  };

  void place(const Event& event) {
    const auto time = static_cast<std::uint64_t>(event.time);
    const auto level = static_cast<std::size_t>(63 - std::countl_zero((time ^ last_) | 1U)) / 8;
    const std::size_t digit = (time >> (8 * level)) & (digit_count - 1);
    levels_[level].buckets[digit].push_back(event);
    levels_[level].occupied[digit / 64] |= std::uint64_t{1} << (digit % 64);
    occupied_levels_ |= 1U << level;
  }

  std::vector<Event>& take_first_bucket(std::size_t level);

  std::vector<Level> levels_{level_count};
  unsigned occupied_levels_ = 0;
  std::uint64_t last_ = 0;
  std::size_t size_ = 0;
  mutable std::int64_t earliest_ =
      not_known;  // of the events pushed since the last pop, or of all when it was asked for
  mutable bool earliest_is_of_all_ = true;
  std::vector<Event> moving_;
  std::vector<Event> upcoming_;
};

/// Sorts events of one time by their order. Takes advantage of ascending runs, which is how the symmetry of a schedule
/// makes them arrive. Stable. `scratch` is working space. Cost: O(n log(runs)).
void sort_by_order(std::vector<Event>& events, std::vector<Event>& scratch);

}  // namespace espalier::sim
