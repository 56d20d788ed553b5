#pragma once

// Tested by: tests/unit/sim/fair/fair_model_test.cpp

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "sim/core/event_queue.h"

namespace espalier::sim {

/// The events of one moment in the order (run, transfer, chunk), those that arise while it is handled among them.
/// `chunk_of(event.packet)` says which chunk of its transfer an event is of.
class Timestep {
 public:
  /// To be filled with the events that are known, in any order; nothing is left of the moment before.
  std::vector<Event>& clear() {
    batch_.clear();
    position_ = 0;
    return batch_;
  }

  /// Puts what `clear` was filled with in order. Two chunks of one transfer are rarely among it, so these are put right
  /// afterwards.
  template <class ChunkOf>
  void begin(ChunkOf chunk_of) {
    if (batch_.size() == 1) return;
    if (batch_.size() == 2) {
      if (is_later(chunk_of)(batch_[0], batch_[1])) std::swap(batch_[0], batch_[1]);
      return;
    }
    sort_by_order(batch_, scratch_);
    for (auto begin = batch_.begin(); begin != batch_.end();) {
      const auto end = std::find_if(begin, batch_.end(), [&](const Event& e) { return e.order != begin->order; });
      const auto chunk = [&](const Event& event) { return chunk_of(event.packet); };
      if (end - begin > 1) std::ranges::sort(begin, end, {}, chunk);
      begin = end;
    }
  }

  [[nodiscard]] bool is_over() const { return position_ == batch_.size() && late_.empty(); }

  /// Takes the next event out. Requires: not over.
  template <class ChunkOf>
  Event next(ChunkOf chunk_of) {
    if (late_.empty()) return batch_[position_++];
    const auto later = is_later(chunk_of);
    if (position_ < batch_.size() && !later(batch_[position_], late_.front())) {
      return batch_[position_++];
    }
    std::ranges::pop_heap(late_, later);
    const Event event = late_.back();
    late_.pop_back();
    return event;
  }

  /// An event that arises now.
  template <class ChunkOf>
  void add(const Event& event, ChunkOf chunk_of) {
    late_.push_back(event);
    std::ranges::push_heap(late_, is_later(chunk_of));
  }

  /// The event that stands `count` places behind the next one, or nullptr: for fetching what it needs ahead.
  [[nodiscard]] const Event* ahead(std::size_t count) const {
    return position_ + count < batch_.size() ? &batch_[position_ + count] : nullptr;
  }

 private:
  template <class ChunkOf>
  static auto is_later(ChunkOf chunk_of) {
    return [chunk_of](const Event& a, const Event& b) {
      return a.order != b.order ? a.order > b.order : chunk_of(a.packet) > chunk_of(b.packet);
    };
  }

  std::vector<Event> batch_;  // in order, up to `position_` handled
  std::size_t position_ = 0;
  std::vector<Event> late_;  // a heap
  std::vector<Event> scratch_;
};

}  // namespace espalier::sim
