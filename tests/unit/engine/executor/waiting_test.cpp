#include "engine/executor/waiting.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace espalier::engine
