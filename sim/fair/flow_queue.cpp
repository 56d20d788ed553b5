#include "sim/fair/flow_queue.h"

#include <algorithm>

namespace espalier::sim {
namespace {

constexpr std::size_t children = 4;

}  // namespace

void FlowQueue::set(FlowIndex flow, std::int64_t time) {
  if (flow >= places_.size()) places_.resize(std::max<std::size_t>(flow + 1, 2 * places_.size()), absent);
  const std::uint32_t place = places_[flow];
  if (place == absent) {
    heap_.push_back({});
    rise(heap_.size() - 1, {time, flow});
  } else if (time < heap_[place].time) {
    rise(place, {time, flow});
  } else {
    sink(place, {time, flow});
  }
}

void FlowQueue::erase(FlowIndex flow) {
  if (flow >= places_.size() || places_[flow] == absent) return;
  const std::uint32_t place = places_[flow];
  places_[flow] = absent;
  const Entry last = heap_.back();
  const std::int64_t gone = heap_[place].time;
  heap_.pop_back();
  if (place == heap_.size()) return;
  if (last.time < gone) {
    rise(place, last);
  } else {
    sink(place, last);
  }
}

void FlowQueue::rise(std::size_t at, Entry entry) {
  while (at > 0) {
    const std::size_t parent = (at - 1) / children;
    if (heap_[parent].time <= entry.time) break;
    put(at, heap_[parent]);
    at = parent;
  }
  put(at, entry);
}

void FlowQueue::sink(std::size_t at, Entry entry) {
  while (true) {
    const std::size_t first = children * at + 1;
    if (first >= heap_.size()) break;
    const std::size_t last = std::min(first + children, heap_.size());
    std::size_t least = first;
    for (std::size_t i = first + 1; i < last; ++i) {
      if (heap_[i].time < heap_[least].time) least = i;
    }
    if (heap_[least].time >= entry.time) break;
    put(at, heap_[least]);
    at = least;
  }
  put(at, entry);
}

}  // namespace espalier::sim
