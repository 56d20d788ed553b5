#include "sim/core/event_queue.h"

#include <algorithm>

#include "base/check.h"

namespace espalier::sim {
namespace {

/// Buckets larger than this give their memory back when they are emptied, so that a burst does not stay in all of them.
constexpr std::size_t kept_capacity = 4096;

/// So many events are sorted at once, where they are not all of one time; pushes go in between as long as there are not
/// many more.
constexpr std::size_t max_sorted = 32;
constexpr std::size_t max_with_pushes = 128;

/// What so many events need stays in a cache until it is their turn.
constexpr std::size_t max_upcoming = 1024;

bool by_order(const Event& a, const Event& b) { return a.order < b.order; }

/// For a few, or nearly sorted ones. Stable.
void sort_by_time(std::vector<Event>& events) {
  for (std::size_t i = 1; i < events.size(); ++i) {
    const Event event = events[i];
    std::size_t at = i;
    for (; at > 0 && events[at - 1].time > event.time; --at) events[at] = events[at - 1];
    events[at] = event;
  }
}

void clear_kept(std::vector<Event>& events) {
  events.clear();
  if (events.capacity() > kept_capacity) std::vector<Event>().swap(events);
}

}  // namespace

std::int64_t EventQueue::earliest() const {
  ESPALIER_CHECK(size_ > 0, "an empty queue has no earliest event");
  if (!earliest_is_of_all_) {
    if (taken_ < sorted_.size()) {
      earliest_ = sorted_[taken_].time;
    } else {
      const Level& level = levels_[first_level()];
      earliest_ = std::ranges::min_element(level.buckets[level.first()], {}, &Event::time)->time;
    }
    earliest_is_of_all_ = true;
  }
  return earliest_;
}

void EventQueue::push_sorted(const Event& event) {
  const auto later = [](std::int64_t time, const Event& other) { return time < other.time; };
  const bool is_last = taken_ == sorted_.size() || sorted_.back().time <= event.time;
  if (!is_last && sorted_.size() - taken_ > max_with_pushes) {
    moving_.assign(sorted_.begin() + static_cast<std::ptrdiff_t>(taken_), sorted_.end());
    keep_earliest(moving_, moving_.front().time);
    moving_.clear();
    if (static_cast<std::uint64_t>(event.time) >= sorted_end_) return place(event);
  } else if (taken_ > max_with_pushes && 2 * taken_ > sorted_.size()) {
    sorted_.erase(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  const auto begin = sorted_.begin() + static_cast<std::ptrdiff_t>(taken_);
  sorted_.insert(std::upper_bound(begin, sorted_.end(), event.time, later), event);
}

/// Of these events those of the earliest time are what is sorted; the others go back to levels, in relation to the same
/// time as what is there already.
void EventQueue::keep_earliest(std::vector<Event>& events, std::int64_t earliest) {
  sorted_end_ = static_cast<std::uint64_t>(earliest) + 1;
  sorted_.clear();
  taken_ = 0;
  for (const Event& event : events) {
    if (event.time == earliest) {
      sorted_.push_back(event);
    } else {
      place(event);
    }
  }
}

/// Sorts the first bucket, or of a large one the events of the earliest time. Requires: nothing sorted is left; not
/// empty.
void EventQueue::sort_next() {
  const std::size_t level_index = first_level();
  Level& level = levels_[level_index];
  std::vector<Event>& bucket = level.buckets[level.first()];
  level.occupied &= level.occupied - 1;
  if (level.occupied == 0) occupied_levels_ &= ~(1U << level_index);
  if (bucket.size() > max_sorted && level_index > 0) {
    moving_.swap(bucket);
    const std::int64_t earliest = std::ranges::min_element(moving_, {}, &Event::time)->time;
    last_ = static_cast<std::uint64_t>(earliest);
    keep_earliest(moving_, earliest);
    if (moving_.size() <= max_upcoming) upcoming_.swap(moving_);
    clear_kept(moving_);
    return;
  }
  clear_kept(sorted_);
  taken_ = 0;
  sorted_.swap(bucket);
  if (level_index > 0) sort_by_time(sorted_);
  last_ = static_cast<std::uint64_t>(sorted_.front().time);
  const std::size_t shift = digit_bits * level_index;
  sorted_end_ = ((last_ >> shift) + 1) << shift;
  imminent_ = sorted_.size();
  if (level.occupied != 0) following_ = level.buckets[level.first()];
  if (following_.size() > max_sorted) following_ = {};
}

void EventQueue::pop_earliest(std::vector<Event>& batch) {
  ESPALIER_CHECK(size_ > 0, "nothing to take out of an empty queue");
  upcoming_.clear();
  following_ = {};
  imminent_ = 0;
  if (taken_ == sorted_.size()) sort_next();
  clear_kept(batch);
  const std::int64_t time = sorted_[taken_].time;
  if (taken_ == 0 && sorted_.back().time == time) {
    batch.swap(sorted_);
    imminent_ = 0;
  } else {
    do batch.push_back(sorted_[taken_++]);
    while (taken_ < sorted_.size() && sorted_[taken_].time == time);
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
