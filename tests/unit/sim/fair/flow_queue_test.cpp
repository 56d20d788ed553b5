#include "sim/fair/flow_queue.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace espalier::sim {
namespace {

using sim::FlowIndex;
using sim::FlowQueue;

TEST(FlowQueue, GivesTheEarliestWhateverMoves) {
  Random random(7);
  FlowQueue queue;
  std::map<FlowIndex, std::int64_t> expected;
  for (int step = 0; step < 20'000; ++step) {
    const auto flow = static_cast<FlowIndex>(random.below(60));
    if (random.below(3) == 0) {
      queue.erase(flow);
      expected.erase(flow);
    } else {
      const std::int64_t time = random.between(0, 50);
      queue.set(flow, time);
      expected[flow] = time;
    }
    ASSERT_EQ(queue.size(), expected.size());
    if (expected.empty()) continue;
    std::int64_t earliest = 100;
    for (const auto& [index, time] : expected) earliest = std::min(earliest, time);
    ASSERT_EQ(queue.earliest(), earliest);
    ASSERT_EQ(expected.at(queue.first()), earliest);
  }
}

}  // namespace
}  // namespace espalier::sim
