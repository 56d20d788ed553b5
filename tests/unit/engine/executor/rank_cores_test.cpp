#include "engine/executor/rank_cores.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <cstdlib>
#include <vector>

namespace espalier::engine {
namespace {

/// The cores that this thread may use, and back to them at the end.
class UsableCores {
 public:
  UsableCores() { sched_getaffinity(0, sizeof(mask_), &mask_); }
  ~UsableCores() { sched_setaffinity(0, sizeof(mask_), &mask_); }
  UsableCores(const UsableCores&) = delete;
  UsableCores& operator=(const UsableCores&) = delete;

  [[nodiscard]] int count() const { return CPU_COUNT(&mask_); }
  /// The numbers of the first two.
  [[nodiscard]] std::array<std::uint32_t, 2> first_two() const {
    std::vector<std::uint32_t> found;
    for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &mask_)) found.push_back(core);
    }
    return {found.at(0), found.at(1)};
  }
  /// Only those, until the end.
  static void narrow_to(std::initializer_list<std::uint32_t> cores) {
    cpu_set_t mask;
    CPU_ZERO(&mask);
    for (const std::uint32_t core : cores) CPU_SET(core, &mask);
    sched_setaffinity(0, sizeof(mask), &mask);
  }

 private:
  cpu_set_t mask_{};
};

TEST(RankCores, OfARankThatKnowsNoOthersShareNothing) {
  RankCores cores;
  EXPECT_FALSE(cores.knows_others());
  EXPECT_FALSE(cores.shares_core());
}

TEST(RankCores, ShowTheCoreThatTheThreadRunsOn) {
  const UsableCores usable;
  if (usable.count() < 2) GTEST_SKIP() << "one core";
  const auto [first, second] = usable.first_two();
  RankCores::Shown own = 0;
  const RankCores::Shown other = 0;
  UsableCores::narrow_to({first});
  RankCores cores(own, {&other});
  EXPECT_EQ(own, first + 1);
  UsableCores::narrow_to({second});
  cores.show();
  EXPECT_EQ(own, second + 1);
  EXPECT_FALSE(cores.shares_core()) << "where the other runs is not known";
}

TEST(RankCores, PartWhereACoreHasNoRank) {
  const UsableCores usable;
  if (usable.count() < 2) GTEST_SKIP() << "one core";
  const auto [first, second] = usable.first_two();
  RankCores::Shown own = 0;
  const RankCores::Shown other = first + 1;
  UsableCores::narrow_to({first});
  RankCores cores(own, {&other});
  UsableCores::narrow_to({first, second});  // Stays on the first: nothing makes it go.
  bool shares = true;                       // A busy scheduler may bring it back before it looks.
  for (int i = 0; i < 100'000 && shares; ++i) shares = cores.shares_core();
  EXPECT_FALSE(shares);
  EXPECT_NE(own, first + 1);
  cpu_set_t now;
  ASSERT_EQ(sched_getaffinity(0, sizeof(now), &now), 0);
  EXPECT_TRUE(CPU_ISSET(first, &now) && CPU_ISSET(second, &now)) << "it is tied to no core";
}

TEST(RankCores, StayWhereNoCoreHasTwoRanksFewer) {
  const UsableCores usable;
  if (usable.count() < 2) GTEST_SKIP() << "one core";
  const auto [first, second] = usable.first_two();
  RankCores::Shown own = 0;
  const std::array<RankCores::Shown, 2> others = {first + 1, second + 1};
  UsableCores::narrow_to({first});
  RankCores cores(own, {&others[0], &others[1]});
  UsableCores::narrow_to({first, second});
  // Two here and one there: the scheduler may take it elsewhere meanwhile, which changes nothing.
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(cores.shares_core());
  EXPECT_EQ(cores.moves(), 0U);
}

TEST(RankCores, LeaveNoCoreThatTheUserTiedThemTo) {
  const UsableCores usable;
  if (usable.count() < 2) GTEST_SKIP() << "one core";
  const std::uint32_t first = usable.first_two()[0];
  RankCores::Shown own = 0;
  const RankCores::Shown other = first + 1;
  UsableCores::narrow_to({first});
  RankCores cores(own, {&other});
  for (int i = 0; i < 100; ++i) EXPECT_TRUE(cores.shares_core());
  EXPECT_EQ(cores.moves(), 0U);
  EXPECT_EQ(own, first + 1);
}

TEST(RankCores, DoNotMoveAgainAndAgainWhereMovesAreUndone) {
  const UsableCores usable;
  if (usable.count() < 2) GTEST_SKIP() << "one core";
  const auto [first, second] = usable.first_two();
  RankCores::Shown own = 0;
  RankCores::Shown other = first + 1;
  UsableCores::narrow_to({first});
  RankCores cores(own, {&other});
  constexpr int looks = 20'000;
  for (int i = 0; i < looks; ++i) {
    UsableCores::narrow_to({first, second});
    cores.shares_core();
    cores.show();
    other.store(own.load());  // Wherever it goes the other is.
  }
  EXPECT_LT(cores.moves(), looks / 2);
}

}  // namespace
}  // namespace espalier::engine
