#include "sim/core/progress.h"

#include <gtest/gtest.h>

namespace espalier::sim {
namespace {

TEST(Progress, KnowsNothingAboutWhatHasNotStarted) {
  const Progress progress(2);
  EXPECT_EQ(progress.look_up(TransferId(1), 5).departed, unknown_time);
  EXPECT_EQ(progress.look_up(TransferId(1), 5).arrived, unknown_time);
}

TEST(Progress, RemembersTimesPerChunk) {
  Progress progress(2);
  progress.start(TransferId(0), 3, 0);
  progress.start(TransferId(1), 1, 0);
  progress.times(TransferId(0), 2) = {40, 50};
  progress.times(TransferId(1), 0).departed = 7;
  EXPECT_EQ(progress.look_up(TransferId(0), 2).arrived, 50);
  EXPECT_EQ(progress.look_up(TransferId(0), 1).arrived, unknown_time);
  EXPECT_EQ(progress.look_up(TransferId(1), 0).departed, 7);
}

TEST(Progress, ForgetsOnlyWhatIsPast) {
  Progress progress(4);
  progress.start(TransferId(0), 2, 0);
  progress.times(TransferId(0), 1) = {40, 50};
  progress.finish(TransferId(0), 2, 50);
  progress.start(TransferId(1), 2, 50);  // 50 is not past at 50
  EXPECT_EQ(progress.look_up(TransferId(0), 1).arrived, 50);
  progress.start(TransferId(2), 2, 51);
  EXPECT_EQ(progress.look_up(TransferId(0), 1).arrived, 0);
  // Its memory is used again, and clean.
  EXPECT_EQ(progress.look_up(TransferId(2), 1).arrived, unknown_time);
}

}  // namespace
}  // namespace espalier::sim
