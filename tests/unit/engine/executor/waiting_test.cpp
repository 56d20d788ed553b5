#include "engine/executor/waiting.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <functional>

namespace espalier::engine {
namespace {

TEST(Waiting, RanksThatShareCoresYieldBeforeTheySleep) {
  Waiting waiting(true);
  EXPECT_EQ(waiting.next(), Waiting::Action::yield);
}

TEST(Waiting, WhoSleepsAtOnceDoesNotYieldBetween) {
  Waiting waiting(true);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(waiting.next(false), Waiting::Action::sleep);
  waiting.reset();
  EXPECT_EQ(waiting.next(), Waiting::Action::yield) << "the next wait is as any other";
}

TEST(Waiting, WhoHasACoreSpinsFirst) {
  Waiting waiting(false);
  EXPECT_EQ(waiting.next(false), Waiting::Action::spin);
  const std::int64_t much_longer = 2'000'000;
  Waiting::Action action = Waiting::Action::spin;
  for (std::int64_t i = 0; i < much_longer && action == Waiting::Action::spin; ++i) action = waiting.next(false);
  EXPECT_EQ(action, Waiting::Action::sleep);
}

/// Where this rank and one other show their cores; the other shows the core that this one is on, or none.
class WaitingBesideAnother : public ::testing::Test {
 protected:
  WaitingBesideAnother() {
    CPU_ZERO(&before_);
    sched_getaffinity(0, sizeof(before_), &before_);
    cpu_set_t here;
    CPU_ZERO(&here);
    CPU_SET(static_cast<std::size_t>(sched_getcpu()), &here);
    sched_setaffinity(0, sizeof(here), &here);  // So that it cannot part.
  }
  ~WaitingBesideAnother() override { sched_setaffinity(0, sizeof(before_), &before_); }

  Waiting make_waiting(bool is_oversubscribed) { return Waiting(is_oversubscribed, RankCores(own_, {&other_}), true); }
  /// How it waits for so long: the first action that is no spin.
  static Waiting::Action first_after_spins(Waiting& waiting, std::chrono::milliseconds longest) {
    const auto end = std::chrono::steady_clock::now() + longest;
    Waiting::Action action = Waiting::Action::spin;
    while (action == Waiting::Action::spin && std::chrono::steady_clock::now() < end) action = waiting.next();
    return action;
  }

  /// Whether a claim holds in one of many tries: another program may run between any two waits.
  static bool holds_once(const std::function<bool()>& claim) {
    for (int i = 0; i < 1000; ++i) {
      if (claim()) return true;
    }
    return false;
  }

  RankCores::Shown own_ = 0;
  RankCores::Shown other_ = 0;

 private:
  cpu_set_t before_{};
};

TEST_F(WaitingBesideAnother, OnItsCoreYields) {
  Waiting waiting = make_waiting(true);
  other_.store(own_.load());
  EXPECT_TRUE(holds_once([&] {
    waiting.begin_call();
    return waiting.next() == Waiting::Action::yield;
  }));
}

TEST_F(WaitingBesideAnother, OnItsCoreYieldsAfterFewSpinsAlsoWhereEachCouldHaveACore) {
  Waiting waiting = make_waiting(false);
  EXPECT_TRUE(holds_once([&] {
    other_.store(own_.load());
    waiting.begin_call();
    if (first_after_spins(waiting, std::chrono::seconds(1)) != Waiting::Action::yield) return false;
    waiting.reset();
    if (waiting.next() != Waiting::Action::yield) return false;  // It knows now.
    other_.store(0);                                             // The other goes.
    return waiting.next() != Waiting::Action::sleep && waiting.next() == Waiting::Action::spin;
  }));
}

TEST_F(WaitingBesideAnother, OnAnotherCoreSpinsEvenWhereTheJobHasMoreRanksThanCores) {
  Waiting waiting = make_waiting(true);
  other_.store(own_.load() + 1);
  EXPECT_TRUE(holds_once([&] {
    waiting.begin_call();
    return waiting.next() == Waiting::Action::spin &&
           first_after_spins(waiting, std::chrono::seconds(1)) == Waiting::Action::sleep;  // Nobody to yield to.
  }));
}

TEST_F(WaitingBesideAnother, SpinsLongerThanATimeSliceWhereEachHasACore) {
  Waiting waiting = make_waiting(false);
  other_.store(own_.load() + 1);
  waiting.begin_call();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_EQ(first_after_spins(waiting, std::chrono::seconds(10)), Waiting::Action::sleep);
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(5));
}

TEST_F(WaitingBesideAnother, SpinsShortlyWhereRanksOfOtherMachinesAreWaitedForToo) {
  Waiting waiting(false, RankCores(own_, {&other_}), false);
  other_.store(own_.load() + 1);
  waiting.begin_call();
  // Of a thousand waits some go without another program in between.
  auto shortest = std::chrono::nanoseconds::max();
  for (int i = 0; i < 1000; ++i, waiting.reset()) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_EQ(first_after_spins(waiting, std::chrono::seconds(10)), Waiting::Action::sleep);
    shortest = std::min<std::chrono::nanoseconds>(shortest, std::chrono::steady_clock::now() - begin);
  }
  EXPECT_LT(shortest, std::chrono::milliseconds(1));
}

}  // namespace
}  // namespace espalier::engine
