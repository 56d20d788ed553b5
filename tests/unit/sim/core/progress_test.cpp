#include "sim/core/progress.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace espalier::sim {
namespace {

KnownTimes times_of(std::size_t transfers) {
  KnownTimes times;
  times.reset(transfers);
  return times;
}

TEST(KnownTimes, KnowNothingAboutWhatHasNotStarted) {
  KnownTimes times = times_of(2);
  EXPECT_EQ(times.of(TransferId(1), 5), unknown_time);
  EXPECT_EQ(times.known(TransferId(1)), 0U);
  EXPECT_EQ(times.first_waiting(TransferId(1)), no_lane);
}

TEST(KnownTimes, RememberTimesPerChunk) {
  KnownTimes times = times_of(2);
  times.add(TransferId(0), 50, 0);
  times.add(TransferId(0), 70, 0);
  times.add(TransferId(1), 7, 0);
  EXPECT_EQ(times.of(TransferId(0), 0), 50);
  EXPECT_EQ(times.of(TransferId(0), 1), 70);
  EXPECT_EQ(times.of(TransferId(0), 2), unknown_time);
  EXPECT_EQ(times.of(TransferId(1), 0), 7);
}

// Two places are there from the start: the third chunk takes that of the first one, which is past, and the fourth no
// other's.
TEST(KnownTimes, ForgetOnlyWhatIsPast) {
  KnownTimes times = times_of(1);
  for (const std::int64_t time : {50, 60}) times.add(TransferId(0), time, 0);
  times.add(TransferId(0), 90, 51);
  EXPECT_EQ(times.of(TransferId(0), 0), 0);
  EXPECT_EQ(times.of(TransferId(0), 1), 60);
  times.add(TransferId(0), 95, 60);  // 60 is not past at 60
  EXPECT_EQ(times.of(TransferId(0), 1), 60);
  EXPECT_EQ(times.of(TransferId(0), 2), 90);
  EXPECT_EQ(times.of(TransferId(0), 3), 95);
}

TEST(Progress, KeepsDeparturesApartFromArrivals) {
  Progress progress;
  progress.reset(1, true);
  progress.add(TransferId(0), Wait::departure, 3);
  progress.add(TransferId(0), Wait::arrival, 5);
  EXPECT_EQ(progress.times(Wait::departure).of(TransferId(0), 0), 3);
  EXPECT_EQ(progress.times(Wait::arrival).of(TransferId(0), 0), 5);
}

// Against times that are all kept: transfers in a random order, some far ahead of what is past.
TEST(KnownTimes, KnowAllThatIsNotPast) {
  Random random(20'261'123);
  constexpr std::size_t transfers = 20;
  KnownTimes times = times_of(transfers);
  std::vector<std::vector<std::int64_t>> kept(transfers);
  std::int64_t now = 0;
  for (int step = 0; step < 4000; ++step) {
    const auto transfer = static_cast<std::size_t>(random.between(0, transfers - 1));
    now += random.between(0, 3);
    const std::int64_t before = kept[transfer].empty() ? 0 : kept[transfer].back();
    const std::int64_t reach = transfer % 2 == 0 ? 20 : 2000;
    kept[transfer].push_back(std::max(before, now + random.between(0, reach)));
    times.add(TransferId(transfer), kept[transfer].back(), now);
    for (std::size_t other = 0; other < transfers; ++other) {
      ASSERT_EQ(times.known(TransferId(other)), kept[other].size());
      ASSERT_EQ(times.of(TransferId(other), times.known(TransferId(other))), unknown_time);
      for (std::uint32_t i = 0; i < kept[other].size(); ++i) {
        const std::int64_t found = times.of(TransferId(other), i);
        ASSERT_TRUE(found == kept[other][i] || (found == 0 && kept[other][i] < now));
      }
    }
  }
}

}  // namespace
}  // namespace espalier::sim
