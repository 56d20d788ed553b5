#include "sim/core/event_queue.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::sim {
namespace {

/// Buckets larger than this give their memory back when they are emptied, so that a burst does not stay in all of them.
constexpr std::size_t kept_capacity = 4096;

/// What so many events need stays in a cache until it is their turn.
constexpr std::size_t most_upcoming = 256;

bool by_order(const Event& a, const Event& b) { return a.order < b.order; }

}  // namespace

std::vector<Event>& EventQueue::take_first_bucket(std::size_t level_index) {
  Level& level = levels_[level_index];
  std::size_t word = 0;
  while (level.occupied[word] == 0) ++word;
  const auto bit = static_cast<std::size_t>(std::countr_zero(level.occupied[word]));
  level.occupied[word] &= level.occupied[word] - 1;
  if (std::ranges::all_of(level.occupied, [](std::uint64_t bits) { return bits == 0; })) {
    occupied_levels_ &= ~(1U << level_index);
  }
  return level.buckets[word * 64 + bit];
}

std::int64_t EventQueue::earliest() const {
  ESPALIER_CHECK(size_ > 0, "an empty queue has no earliest event");
  if (!earliest_is_of_all_) {
    const Level& level = levels_[static_cast<std::size_t>(std::countr_zero(occupied_levels_))];
    std::size_t word = 0;
    while (level.occupied[word] == 0) ++word;
    const auto bit = static_cast<std::size_t>(std::countr_zero(level.occupied[word]));
    earliest_ = std::ranges::min_element(level.buckets[word * 64 + bit], {}, &Event::time)->time;
    earliest_is_of_all_ = true;
  }
  return earliest_;
}

void EventQueue::pop_earliest(std::vector<Event>& batch) {
  ESPALIER_CHECK(size_ > 0, "nothing to take out of an empty queue");
  upcoming_.clear();
  batch.clear();
  if (batch.capacity() > kept_capacity) std::vector<Event>().swap(batch);
  if ((occupied_levels_ & 1U) != 0) {
    batch.swap(take_first_bucket(0));
    last_ = static_cast<std::uint64_t>(batch.front().time);
  } else {
    // The earliest of all are in one bucket: they are taken out of it at once, the others move down.
    moving_.swap(take_first_bucket(static_cast<std::size_t>(std::countr_zero(occupied_levels_))));
    const std::int64_t earliest = std::ranges::min_element(moving_, {}, &Event::time)->time;
    last_ = static_cast<std::uint64_t>(earliest);
    for (const Event& event : moving_) {
      if (event.time == earliest) {
        batch.push_back(event);
      } else {
        place(event);
      }
    }
    if (moving_.size() <= most_upcoming) upcoming_.swap(moving_);
    moving_.clear();
    if (moving_.capacity() > kept_capacity) std::vector<Event>().swap(moving_);
  }
  size_ -= batch.size();
  earliest_ = not_known;
  earliest_is_of_all_ = size_ == 0;
}

void sort_by_order(std::vector<Event>& events, std::vector<Event>& scratch) {
  while (true) {
    // One pass: merges neighbouring ascending runs two by two into `scratch`.
    auto begin = events.begin();
    auto middle = std::is_sorted_until(begin, events.end(), by_order);
    if (middle == events.end()) return;
    scratch.clear();
    while (begin != events.end()) {
      middle = std::is_sorted_until(begin, events.end(), by_order);
      const auto end = std::is_sorted_until(middle, events.end(), by_order);
      std::merge(begin, middle, middle, end, std::back_inserter(scratch), by_order);
      begin = end;
    }
    events.swap(scratch);
  }
}

}  // namespace espalier::sim
