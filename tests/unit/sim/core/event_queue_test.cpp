#include "sim/core/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>

#include "base/random.h"

namespace espalier::sim {
namespace {

struct Later {
  bool operator()(const Event& a, const Event& b) const {
    return a.time != b.time ? a.time > b.time : a.packet > b.packet;
  }
};

/// The standard heap; `packet` counts the pushes, so that events of one time come out in that order.
using Reference = std::priority_queue<Event, std::vector<Event>, Later>;

/// Pops one batch of both and compares. Returns its time.
std::int64_t compare_batch(EventQueue& queue, Reference& reference) {
  std::vector<Event> batch;
  queue.pop_earliest(batch);
  for (const Event& event : batch) {
    EXPECT_EQ(event.time, reference.top().time);
    EXPECT_EQ(event.packet, reference.top().packet);
    reference.pop();
  }
  EXPECT_TRUE(reference.empty() || reference.top().time > batch.front().time) << "a batch is all of its time";
  return batch.front().time;
}

/// A queue and the standard heap with the same events.
struct Both {
  EventQueue queue;
  Reference reference;
  std::uint32_t pushed = 0;

  void push(std::int64_t time) {
    queue.push({time, 0, pushed});
    reference.push({time, 0, pushed++});
  }
};

TEST(EventQueue, AgreesWithTheStandardHeap) {
  // Delays from 0 up to 2^40, so that many levels of the radix heap are used and ties occur.
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    Both both;
    std::int64_t now = 0;
    for (int step = 0; step < 300; ++step) {
      std::uint64_t more = random.below(4);
      if (both.queue.empty()) more += 1;
      for (; more > 0; --more) {
        both.push(now + static_cast<std::int64_t>(random.next() >> (24 + random.below(40))));
      }
      now = compare_batch(both.queue, both.reference);
    }
    while (!both.queue.empty()) compare_batch(both.queue, both.reference);
    EXPECT_TRUE(both.reference.empty());
  }
}

TEST(EventQueue, AgreesWithTheStandardHeapWhenPushesComeInBursts) {
  // Few events far apart, then hundreds between them: what is sorted is full, and goes back to levels.
  Random random(12);
  for (int round = 0; round < 200; ++round) {
    Both both;
    std::int64_t now = 0;
    const std::uint64_t largest_burst = 1 + random.below(600);
    const std::uint64_t longest_delay = std::uint64_t{1} << (8 + random.below(40));
    for (int step = 0; step < 400; ++step) {
      std::uint64_t more = random.below(3) + (both.queue.empty() ? 1 : 0);
      if (random.below(50) == 0) more += random.below(largest_burst);
      for (; more > 0; --more) {
        const std::uint64_t delay = random.below(longest_delay) / (1 + random.below(1000));
        both.push(now + static_cast<std::int64_t>(delay));
      }
      if (random.below(3) == 0) {
        ASSERT_EQ(both.queue.earliest(), both.reference.top().time);
      }
      now = compare_batch(both.queue, both.reference);
      ASSERT_EQ(both.queue.size(), both.reference.size());
    }
  }
}

TEST(EventQueue, AgreesWithTheStandardHeapWhenSortedOnesOverflowBeforeAnEarlierTime) {
  // 129 events of one time are more than stay sorted while earlier ones are pushed: the next push moves the later ones
  // to a level, in relation to a time (4224) that is not the earliest any more when 4106 and 4108 are pushed.
  Both both;
  both.push(4096);
  EXPECT_EQ(compare_batch(both.queue, both.reference), 4096);
  for (int i = 0; i < 129; ++i) both.push(4224);
  both.push(4225);
  both.push(4106);
  both.push(4108);
  std::vector<std::int64_t> times;
  while (!both.queue.empty()) times.push_back(compare_batch(both.queue, both.reference));
  EXPECT_EQ(times, (std::vector<std::int64_t>{4106, 4108, 4224, 4225}));
}

TEST(EventQueue, TakesTheLargestTimes) {
  EventQueue queue;
  std::vector<Event> batch;
  for (const std::int64_t time : {INT64_MAX, INT64_MAX - 1, std::int64_t{1} << 62, std::int64_t{0}}) {
    queue.push({time, 0, 0});
  }
  std::vector<std::int64_t> times;
  while (!queue.empty()) {
    queue.pop_earliest(batch);
    times.push_back(batch.front().time);
  }
  EXPECT_EQ(times, (std::vector<std::int64_t>{0, std::int64_t{1} << 62, INT64_MAX - 1, INT64_MAX}));
}

TEST(SortByTransfer, SortsStably) {
  Random random(5);
  std::vector<Event> scratch;
  for (int round = 0; round < 500; ++round) {
    std::vector<Event> events;
    for (std::uint64_t i = random.below(40); i > 0; --i) {
      events.push_back({7, static_cast<std::uint32_t>(random.below(20)), static_cast<std::uint32_t>(i)});
    }
    std::vector<Event> expected = events;
    std::ranges::stable_sort(expected, {}, &Event::order);
    sort_by_order(events, scratch);
    ASSERT_EQ(events.size(), expected.size());
    for (std::size_t i = 0; i < events.size(); ++i) EXPECT_EQ(events[i].packet, expected[i].packet);
  }
}

}  // namespace
}  // namespace espalier::sim
