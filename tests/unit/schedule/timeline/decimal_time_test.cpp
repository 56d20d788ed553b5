#include "schedule/timeline/decimal_time.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier {
namespace {

TEST(DecimalTime, WritesOnlyTheDecimalsThatAreNeeded) {
  EXPECT_EQ(format_microseconds({0}), "0");
  EXPECT_EQ(format_microseconds({1}), "0.000001");
  EXPECT_EQ(format_microseconds({1'500'000}), "1.5");
  EXPECT_EQ(format_microseconds({2'000'000}), "2");
  EXPECT_EQ(format_microseconds({-12'000'001}), "-12.000001");
  EXPECT_EQ(format_microseconds({INT64_MAX}), "9223372036854.775807");
  EXPECT_EQ(format_microseconds({INT64_MIN}), "-9223372036854.775808");
}

TEST(DecimalTime, ReadsAnyFormOfTheSameNumber) {
  for (const char* text : {"2.5", "2.50", "2.5000000000000000000000000", "25e-1", "0.25E1", "0.025e+2"}) {
    EXPECT_EQ(parse_microseconds(text), Picoseconds{2'500'000}) << text;
  }
  EXPECT_EQ(parse_microseconds("1e-06"), Picoseconds{1});
  EXPECT_EQ(parse_microseconds("-3"), Picoseconds{-3'000'000});
  EXPECT_EQ(parse_microseconds("0e999999999999999999999"), Picoseconds{0});
}

TEST(DecimalTime, RefusesWhatIsNoWholeNumberOfPicoseconds) {
  for (const char* text : {"0.0000001", "1e-7", "1e-99999999999999999999", "9223372036854.775808", "1e300", "1e13",
                           "99999999999999999999", "", "true", "\"1\"", "[1]"}) {
    EXPECT_FALSE(parse_microseconds(text)) << text;
  }
}

TEST(DecimalTime, ReadsBackExactly) {
  Random random(9);
  for (int i = 0; i < 10'000; ++i) {
    const auto magnitude = static_cast<std::int64_t>(random.next() >> (1 + random.below(62)));
    const Picoseconds time{random.below(2) == 0 ? magnitude : -magnitude};
    EXPECT_EQ(parse_microseconds(format_microseconds(time)), time);
  }
}

}  // namespace
}  // namespace espalier
