#include "planners/packing/split/even_split.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier::planners {
namespace {

SwitchSide side(std::vector<std::int64_t> amounts) {
  SwitchSide made{std::move(amounts), {}};
  for (std::uint32_t i = 0; i < made.amounts.size(); ++i) made.neighbours.push_back(i);
  return made;
}

TEST(EvenSplit, DealsEqualWaysEqually) {
  const auto amounts = even_split(side({6, 6, 6, 6}), side({6, 6, 6, 6}));
  EXPECT_EQ(amounts, (std::vector<std::vector<std::int64_t>>{{0, 2, 2, 2}, {2, 0, 2, 2}, {2, 2, 0, 2}, {2, 2, 2, 0}}));
}

TEST(EvenSplit, NothingReturnsToItsNeighbour) {
  // Two neighbours with two edges each: what comes from one goes to the other.
  const SwitchSide pairs{{5, 5, 5, 5}, {0, 0, 1, 1}};
  const auto amounts = even_split(pairs, pairs);
  ASSERT_EQ(amounts.size(), 4U);
  for (const std::size_t i : {0U, 1U}) {
    for (const std::size_t j : {0U, 1U}) EXPECT_EQ(amounts[i][j] + amounts[2 + i][2 + j], 0);
  }
}

TEST(EvenSplit, RefusesWhatWouldHaveToReturn) {
  // The first neighbour alone brings more than all others take.
  EXPECT_TRUE(even_split(side({9, 1}), side({9, 1})).empty());
  EXPECT_TRUE(even_split(side({3}), side({3})).empty());
}

TEST(EvenSplit, SumsAreKeptOnRandomSwitches) {
  Random random(31);
  for (int round = 0; round < 500; ++round) {
    std::vector<std::int64_t> in, out;
    const auto ways = static_cast<std::size_t>(random.between(2, 7));
    for (std::size_t i = 0; i < ways; ++i) in.push_back(random.between(1, 30));
    out = in;
    for (std::size_t i = ways; i-- > 1;) std::swap(out[i], out[random.below(i + 1)]);
    const auto amounts = even_split(side(in), side(out));
    if (amounts.empty()) continue;
    for (std::size_t i = 0; i < ways; ++i) {
      std::int64_t row = 0, column = 0;
      for (std::size_t j = 0; j < ways; ++j) {
        ASSERT_GE(amounts[i][j], 0);
        row += amounts[i][j];
        column += amounts[j][i];
      }
      ASSERT_EQ(row, in[i]);
      ASSERT_EQ(column, out[i]);
      ASSERT_EQ(amounts[i][i], 0);
    }
  }
}

}  // namespace
}  // namespace espalier::planners
