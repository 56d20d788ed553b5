#include "sim/time_table.h"

#include <gtest/gtest.h>

namespace espalier::sim {
namespace {

TimeTable table_of(std::vector<TimeTable::Point> points) { return TimeTable::make(std::move(points)).value(); }

TEST(TimeTable, IsStraightBetweenPointsAndBeyondThem) {
  const TimeTable table = table_of({{{100}, {1000}}, {{200}, {1500}}, {{400}, {3500}}});
  EXPECT_EQ(table.at({0}).count, 1000);
  EXPECT_EQ(table.at({100}).count, 1000);
  EXPECT_EQ(table.at({150}).count, 1250);  // Half of the way from 1000 to 1500.
  EXPECT_EQ(table.at({200}).count, 1500);
  EXPECT_EQ(table.at({300}).count, 2500);
  EXPECT_EQ(table.at({400}).count, 3500);
  EXPECT_EQ(table.at({500}).count, 4500);  // 10 a byte, as from 200 to 400.
}

TEST(TimeTable, NeverFalls) {
  const TimeTable table = table_of({{{1}, {50}}, {{2}, {40}}, {{3}, {60}}});
  for (std::int64_t size = 1; size < 10; ++size) EXPECT_LE(table.at({size}), table.at({size + 1}));
  EXPECT_EQ(table.at({2}).count, 50);
}

TEST(TimeTable, OfOnePointIsConstant) { EXPECT_EQ(table_of({{{8}, {7}}}).at({1'000'000}).count, 7); }

TEST(TimeTable, StaysWithinItsType) {
  const TimeTable table = table_of({{{1}, {0}}, {{2}, {1'000'000'000'000'000}}});
  EXPECT_GT(table.at({std::int64_t{1} << 62}).count, 1'000'000'000'000'000);
}

TEST(TimeTable, RefusesSizesThatDoNotRise) {
  EXPECT_FALSE(TimeTable::make({}));
  EXPECT_FALSE(TimeTable::make({{{0}, {1}}}));
  EXPECT_FALSE(TimeTable::make({{{2}, {1}}, {{2}, {1}}}));
}

}  // namespace
}  // namespace espalier::sim
