#include "sim/core/progress.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

#include "base/random.h"

namespace espalier::sim {
namespace {

Progress progress_of(std::vector<std::uint32_t> chunk_counts) {
  Progress progress;
  progress.reset(std::move(chunk_counts));
  return progress;
}

TEST(Progress, KnowsNothingAboutWhatHasNotStarted) {
  const Progress progress = progress_of({1, 6});
  EXPECT_EQ(progress.look_up(TransferId(1), 5).departed, unknown_time);
  EXPECT_EQ(progress.look_up(TransferId(1), 5).arrived, unknown_time);
}

TEST(Progress, RemembersTimesPerChunk) {
  Progress progress = progress_of({3, 1});
  progress.depart(TransferId(0), 2, 40);
  progress.arrive(TransferId(0), 2, 50);
  progress.depart(TransferId(1), 0, 7);
  EXPECT_EQ(progress.look_up(TransferId(0), 2).arrived, 50);
  EXPECT_EQ(progress.look_up(TransferId(0), 1).arrived, unknown_time);
  EXPECT_EQ(progress.look_up(TransferId(1), 0).departed, 7);
}

TEST(Progress, ForgetsOnlyWhatIsPast) {
  Progress progress = progress_of({4, 1});
  for (std::uint32_t chunk = 0; chunk < 2; ++chunk) {
    progress.depart(TransferId(0), chunk, 40);
    progress.arrive(TransferId(0), chunk, 50);
  }
  progress.set_past(50);  // 50 is not past at 50
  progress.depart(TransferId(0), 2, 60);
  EXPECT_EQ(progress.look_up(TransferId(0), 1).arrived, 50);
  progress.set_past(51);
  progress.depart(TransferId(0), 3, 70);
  EXPECT_EQ(progress.look_up(TransferId(0), 1).arrived, 0);
  // The other transfer's chunk of the same index is still to come.
  EXPECT_EQ(progress.look_up(TransferId(0), 0).arrived, 50);
  EXPECT_EQ(progress.look_up(TransferId(1), 0).arrived, unknown_time);
  // Memory is used again, and clean.
  EXPECT_EQ(progress.look_up(TransferId(0), 3).departed, 70);
  EXPECT_EQ(progress.look_up(TransferId(0), 3).arrived, unknown_time);
}

/// Against times that are all kept: transfers of unequal length over several pages, in a random order.
TEST(Progress, KnowsAllThatIsNotPast) {
  Random random(20'261'123);
  std::vector<std::uint32_t> counts(200);
  for (std::uint32_t& count : counts) count = static_cast<std::uint32_t>(random.between(1, 12));
  Progress progress = progress_of(counts);
  std::vector<std::vector<ChunkTimes>> kept;
  for (const std::uint32_t count : counts) kept.emplace_back(count);
  std::vector<std::uint32_t> next(counts.size(), 0);
  std::int64_t now = 0;
  for (std::size_t left = std::accumulate(counts.begin(), counts.end(), std::size_t{0}); left > 0;) {
    const auto transfer = static_cast<std::size_t>(random.between(0, 199));
    const std::uint32_t chunk = next[transfer];
    if (chunk == counts[transfer]) continue;
    ++next[transfer];
    --left;
    now += random.between(0, 3);
    progress.set_past(now);
    const ChunkTimes times{now + random.between(0, 20), now + random.between(20, 90)};
    kept[transfer][chunk] = times;
    progress.depart(TransferId(transfer), chunk, times.departed);
    progress.arrive(TransferId(transfer), chunk, times.arrived);
    for (std::size_t other = 0; other < counts.size(); ++other) {
      for (std::uint32_t i = 0; i < counts[other]; ++i) {
        const ChunkTimes found = progress.look_up(TransferId(other), i);
        const bool is_forgotten = found.arrived == 0 && kept[other][i].arrived < now;
        ASSERT_TRUE(is_forgotten || found.arrived == kept[other][i].arrived);
        ASSERT_TRUE(is_forgotten || found.departed == kept[other][i].departed);
      }
    }
  }
}

}  // namespace
}  // namespace espalier::sim
