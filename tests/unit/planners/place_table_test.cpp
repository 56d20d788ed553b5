#include "planners/place_table.h"

#include <gtest/gtest.h>

namespace espalier::planners {
namespace {

TEST(PlaceTable, KeepsAValueForEverySliceAtEveryRank) {
  for (const std::size_t side : {std::size_t{100}, std::size_t{1} << 20U}) {  // the second as far as it is used
    PlaceTable<int> table(side, side);
    int& first = table.at(Rank(0), 0);
    for (std::size_t i = 0; i < 50; ++i) table.at(Rank(i), side - 1 - i) = static_cast<int>(i);
    first = 7;
    for (std::size_t i = 0; i < 50; ++i) EXPECT_EQ(table.at(Rank(i), side - 1 - i), static_cast<int>(i));
    EXPECT_EQ(table.at(Rank(0), 0), 7);
    EXPECT_EQ(table.at(Rank(side - 1), side / 2), 0);
  }
}

}  // namespace
}  // namespace espalier::planners
