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
  const std::vector<Record> records = *recorder.records();
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
  ASSERT_EQ(recorder.records()->size(), 1U);
  EXPECT_EQ(recorder.records()->front().transfer, TransferId{7});
  recorder.clear();
  EXPECT_TRUE(recorder.records()->empty());
}

/// A device whose clock is ahead, or is not to be read.
class DeviceWithClock final : public Device {
 public:
  explicit DeviceWithClock(Result<DeviceClock> clock) : clock_(std::move(clock)) {}
  [[nodiscard]] std::string_view name() const override { return "clock"; }
  Result<std::unique_ptr<DeviceQueue>> make_queue() override { return host_.make_queue(); }
  Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) override { return host_.allocate(bytes, space); }
  void release(std::byte* data, std::int64_t bytes) override { host_.release(data, bytes); }
  Result<DeviceClock> compare_clock() override { return clock_; }

 private:
  Result<DeviceClock> clock_;
  HostDevice host_;
};

TEST(RecorderTest, BringsADevicesSpansIntoTheHostsTime) {
  DeviceWithClock device(DeviceClock{1'000'000, 250});
  Recorder recorder;
  recorder.reserve(1);
  recorder.add_of_device({TransferId{3}, 2, Phase::recv, 1'000'070, 1'000'090, 5}, device);
  recorder.add(TransferId{7}, 0, Phase::send, recorder.now(), recorder.now());
  const auto records = recorder.records();
  ASSERT_TRUE(records) << records.error().message;
  ASSERT_EQ(records->size(), 2U);
  EXPECT_EQ(records->front().rank, own_rank);
  EXPECT_EQ(records->back().transfer, TransferId{3});
  EXPECT_EQ(records->back().begin_ns, 70);
  EXPECT_EQ(records->back().end_ns, 90);
  EXPECT_EQ(records->back().rank, 5U);
  EXPECT_EQ(recorder.device_clock_error_ns(), 250);
  recorder.clear();
  EXPECT_TRUE(recorder.records()->empty());
}

TEST(RecorderTest, SaysWhyADevicesClockIsNotKnown) {
  DeviceWithClock device(fail(ErrorCode::unavailable, "cannot compare clocks"));
  Recorder recorder;
  recorder.add_of_device({TransferId{3}, 2, Phase::recv, 70, 90, 5}, device);
  const auto records = recorder.records();
  ASSERT_FALSE(records);
  EXPECT_EQ(records.error().message, "cannot compare clocks");
}

}  // namespace
}  // namespace espalier::engine
