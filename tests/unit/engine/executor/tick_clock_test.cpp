#include "engine/executor/tick_clock.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "engine/executor/recorder.h"

namespace espalier::engine {
namespace {

TEST(TickClockTest, TicksTurnIntoNanosecondsOnTheLineThroughTheAnchors) {
  const ClockAnchor first{1'000, 50'000};
  const ClockAnchor last{4'000, 51'000};
  EXPECT_EQ(ns_at(1'000, first, last), 50'000);
  EXPECT_EQ(ns_at(2'500, first, last), 50'500);
  EXPECT_EQ(ns_at(4'000, first, last), 51'000);
  EXPECT_EQ(ns_at(700, first, last), 49'900);
}

TEST(TickClockTest, OneMomentAloneCountsTicksAsNanoseconds) {
  const ClockAnchor only{1'000, 50'000};
  EXPECT_EQ(ns_at(1'007, only, only), 50'007);
}

TEST(TickClockTest, AnchorsLieBetweenReadingsOfBothClocks) {
  const TickClock clock;
  const std::int64_t ticks_before = clock.now();
  const std::int64_t ns_before = now_ns();
  const ClockAnchor anchor = clock.anchor();
  const std::int64_t ns_after = now_ns();
  const std::int64_t ticks_after = clock.now();
  EXPECT_LE(ticks_before, anchor.ticks);
  EXPECT_LE(anchor.ticks, ticks_after);
  EXPECT_LE(ns_before, anchor.ns);
  EXPECT_LE(anchor.ns, ns_after);
}

TEST(RecorderTest, RecordsLieBetweenReadingsOfTheMonotonicClock) {
  Recorder recorder;
  recorder.clear();
  recorder.reserve(3);
  constexpr std::int64_t slack_ns = 100'000;  // A thread may lose the processor within an anchor.
  std::vector<std::int64_t> before;
  std::vector<std::int64_t> after;
  for (std::uint32_t i = 0; i < 3; ++i) {
    before.push_back(now_ns());
    const std::int64_t begin = recorder.now();
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    recorder.add(TransferId{i}, i, Phase::reduce, begin, recorder.now());
    after.push_back(now_ns());
  }
  const std::vector<Record> records = recorder.records();
  ASSERT_EQ(records.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(records[i].transfer, TransferId{i});
    EXPECT_EQ(records[i].chunk, i);
    EXPECT_GE(records[i].begin_ns, before[i] - slack_ns);
    EXPECT_LE(records[i].end_ns, after[i] + slack_ns);
    EXPECT_GE(records[i].end_ns - records[i].begin_ns, 2'000'000 - slack_ns);
  }
}

TEST(RecorderTest, ClearForgetsAndReserveKeepsWhatWasAdded) {
  Recorder recorder;
  recorder.reserve(1);
  recorder.add(TransferId{7}, 0, Phase::send, recorder.now(), recorder.now());
  recorder.reserve(1'000);
  ASSERT_EQ(recorder.records().size(), 1U);
  EXPECT_EQ(recorder.records().front().transfer, TransferId{7});
  recorder.clear();
  EXPECT_TRUE(recorder.records().empty());
}

}  // namespace
}  // namespace espalier::engine
