#pragma once

// Tested by: tests/unit/sim/fair/flow_queue_test.cpp

#include <cstdint>
#include <limits>
#include <vector>

#include "sim/fair/max_min.h"

namespace espalier::sim {

/// Flows by the moment of what they do next, which may move in both directions: a heap with four children to a node in
/// which every flow knows its place.
class FlowQueue {
 public:
  [[nodiscard]] bool empty() const { return heap_.empty(); }
  [[nodiscard]] std::size_t size() const { return heap_.size(); }

  /// Requires: not empty.
  [[nodiscard]] std::int64_t earliest() const { return heap_.front().time; }
  [[nodiscard]] FlowIndex first() const { return heap_.front().flow; }

  /// Puts a flow in, or moves it to another moment. Cost: O(log n), O(1) where it stays before those after it.
  void set(FlowIndex flow, std::int64_t time);

  /// Takes a flow out if it is in. Cost: O(log n).
  void erase(FlowIndex flow);

 private:
  struct Entry {
    std::int64_t time;
    FlowIndex flow;
  };
  static constexpr std::uint32_t absent = std::numeric_limits<std::uint32_t>::max();

  void rise(std::size_t at, Entry entry);
  void sink(std::size_t at, Entry entry);
  void put(std::size_t at, const Entry& entry) {
    heap_[at] = entry;
    places_[entry.flow] = static_cast<std::uint32_t>(at);
  }

  std::vector<Entry> heap_;
  std::vector<std::uint32_t> places_;  // by flow
};

}  // namespace espalier::sim
