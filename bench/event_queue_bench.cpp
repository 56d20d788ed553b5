// Which queue the simulator's event loop should use. The hold model: a queue of a given size, from which the earliest
// event is taken and put back a random time later; and the same with the regular times of a symmetric schedule, where
// many events share a moment.

#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <queue>
#include <vector>

#include "base/random.h"
#include "sim/core/event_queue.h"

namespace espalier::bench {
namespace {

using sim::Event;

struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time > b.time : a.order > b.order;
  }
};

/// The simulator's own: hands out all events of a moment together, sorted by transfer.
class Radix {
 public:
  void push(const Event& event) { queue_.push(event); }
  Event pop() {
    if (next_ == batch_.size()) {
      queue_.pop_earliest(batch_);
      sort_by_order(batch_, scratch_);
      next_ = 0;
    }
    return batch_[next_++];
  }

 private:
  sim::EventQueue queue_;
  std::vector<Event> batch_;
  std::vector<Event> scratch_;
  std::size_t next_ = 0;
};

class Standard {
 public:
  void push(const Event& event) { queue_.push(event); }
  Event pop() {
    const Event event = queue_.top();
    queue_.pop();
    return event;
  }

 private:
  std::priority_queue<Event, std::vector<Event>, Later> queue_;
};

/// An implicit heap with four children per entry.
class FourAry {
 public:
  void push(const Event& event) {
    std::size_t at = heap_.size();
    heap_.push_back(event);
    for (; at > 0 && Later()(heap_[(at - 1) / 4], event); at = (at - 1) / 4) heap_[at] = heap_[(at - 1) / 4];
    heap_[at] = event;
  }
  Event pop() {
    const Event first = heap_.front();
    const Event last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(last);
    return first;
  }

 private:
  void sift_down(const Event& event) {
    std::size_t at = 0;
    while (4 * at + 1 < heap_.size()) {
      std::size_t least = 4 * at + 1;
      const std::size_t end = std::min(least + 4, heap_.size());
      for (std::size_t child = least + 1; child < end; ++child) {
        if (Later()(heap_[least], heap_[child])) least = child;
      }
      if (!Later()(event, heap_[least])) break;
      heap_[at] = heap_[least];
      at = least;
    }
    heap_[at] = event;
  }

  std::vector<Event> heap_;
};

constexpr std::uint64_t microsecond = 1'000'000;

template <class Queue>
void bm_random_times(benchmark::State& state) {
  Queue queue;
  Random random(1);
  const auto pending = static_cast<std::uint32_t>(state.range(0));
  const auto later = [&](std::int64_t now) {
    return now + static_cast<std::int64_t>(microsecond + random.below(10 * microsecond));
  };
  for (std::uint32_t i = 0; i < pending; ++i) queue.push({later(0), i, i});
  for (auto _ : state) {
    Event event = queue.pop();
    event.time = later(event.time);
    queue.push(event);
  }
  state.SetItemsProcessed(state.iterations());
}

template <class Queue>
void bm_regular_times(benchmark::State& state) {
  Queue queue;
  const auto pending = static_cast<std::uint32_t>(state.range(0));
  for (std::uint32_t i = 0; i < pending; ++i) queue.push({0, i, i});
  for (auto _ : state) {
    Event event = queue.pop();
    event.time += 3 * microsecond;
    event.order += pending;
    queue.push(event);
  }
  state.SetItemsProcessed(state.iterations());
}

BENCHMARK_TEMPLATE(bm_random_times, Radix)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_TEMPLATE(bm_random_times, FourAry)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_TEMPLATE(bm_random_times, Standard)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_TEMPLATE(bm_regular_times, Radix)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_TEMPLATE(bm_regular_times, FourAry)->RangeMultiplier(10)->Range(100, 1'000'000);
BENCHMARK_TEMPLATE(bm_regular_times, Standard)->RangeMultiplier(10)->Range(100, 1'000'000);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
