#include "sim/core/event_queue.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/random.h"
#include "tests/support/random/rounds.h"
#include "tests/support/sanitized.h"

namespace espalier::sim {
namespace {

/// (time, which push it was): what comes out is ascending in both.
using Order = std::pair<std::int64_t, std::uint32_t>;

/// A queue, and a sorted multiset of the same events.
class QueueAndSet {
 public:
  void push(std::int64_t time, std::uint64_t copies) {
    for (; copies > 0; --copies) {
      queue_.push({time, 0, pushed_});
      set_.emplace(time, pushed_++);
    }
  }

  /// Whether the queue gives out exactly the earliest time's events, in the order of their pushes.
  [[nodiscard]] bool pop() {
    queue_.pop_earliest(batch_);
    now_ = set_.begin()->first;
    for (const Event& event : batch_) {
      if (set_.empty() || *set_.begin() != Order{event.time, event.packet} || event.time != now_) return false;
      set_.erase(set_.begin());
    }
    return set_.empty() || set_.begin()->first > now_;
  }

  [[nodiscard]] bool empty() const { return set_.empty(); }
  [[nodiscard]] std::int64_t now() const { return now_; }
  [[nodiscard]] bool knows_earliest() const { return queue_.earliest() == set_.begin()->first; }
  [[nodiscard]] bool has_all() const { return queue_.size() == set_.size() && queue_.empty() == set_.empty(); }

 private:
  EventQueue queue_;
  std::multiset<Order> set_;
  std::vector<Event> batch_;
  std::int64_t now_ = 0;
  std::uint32_t pushed_ = 0;
};

/// Pushes single events and bursts of one time, between pops: many more than are sorted at once, before, at and behind
/// what is sorted. Whether all came out in order.
bool comes_out_in_order(Random& random) {
  QueueAndSet both;
  // Times beyond one, two or three digits, so that the queue's levels are crossed often.
  const std::uint64_t longest_delay = std::uint64_t{1} << (4 + random.below(20));
  const std::uint64_t largest_burst = 1 + random.below(300);
  const std::uint64_t between_bursts = 1 + random.below(20);
  const auto push = [&] {
    const std::uint64_t delay = random.below(longest_delay) >> random.below(12);
    both.push(both.now() + static_cast<std::int64_t>(delay),
              random.below(between_bursts) == 0 ? 1 + random.below(largest_burst) : 1);
  };
  both.push(static_cast<std::int64_t>(random.below(longest_delay)), 1);
  for (int step = 0; step < 100 && !both.empty(); ++step) {
    for (std::uint64_t pushes = random.below(6); pushes > 0; --pushes) push();
    if (random.below(4) == 0 && !both.knows_earliest()) return false;
    if (!both.pop() || !both.has_all()) return false;
    if (both.empty()) push();
  }
  while (!both.empty()) {
    if (!both.pop()) return false;
  }
  return both.has_all();
}

/// ESPALIER_EVENT_QUEUE=20000 for more.
TEST(EventQueue, GivesOutWhatASortedMultisetDoesWhateverTheBursts) {
  // A sanitizer looks for what touches memory wrongly, for which a few of them do: they take forty times as long there.
  const auto sequences =
      static_cast<std::uint64_t>(test::rounds("ESPALIER_EVENT_QUEUE", ESPALIER_SANITIZED != 0 ? 500 : 5'000));
  for (std::uint64_t seed = 0; seed < sequences; ++seed) {
    Random random(seed);
    ASSERT_TRUE(comes_out_in_order(random)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace espalier::sim
