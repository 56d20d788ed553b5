#include <gtest/gtest.h>

#include "cli/flag_values.h"
#include "cli/packing_flags.h"

namespace espalier::cli {
namespace {

TEST(FlagValues, PartsArePercentagesOrFractions) {
  EXPECT_EQ(*parse_part("--gap", "1%"), make_rational(1, 100));
  EXPECT_EQ(*parse_part("--gap", "0.01"), make_rational(1, 100));
  EXPECT_EQ(*parse_part("--gap", "0"), make_rational(0));
  EXPECT_EQ(*parse_part("--gap", "100%"), make_rational(1));
  // A bare 1 could be meant as 1 % or as all of it.
  for (const char* const text : {"", "1", "1.5", "101%", "-1%", "1 %", "1%%", "nan", "part"}) {
    const auto part = parse_part("--gap", text);
    ASSERT_FALSE(part) << text;
    EXPECT_TRUE(part.error().message.starts_with("--gap: '")) << part.error().message;
  }
}

TEST(FlagValues, MessageSizesAreWholeFloats) {
  EXPECT_EQ(parse_message_size("1K")->count, 1024);
  EXPECT_EQ(parse_message_size("1023")->count, 1020);
  const auto size = parse_message_size("1Q");
  ASSERT_FALSE(size);
  EXPECT_TRUE(size.error().message.starts_with("-s: ")) << size.error().message;
}

TEST(PackingFlags, BecomeLimits) {
  EXPECT_FALSE(PackingFlags{}.resolve()->any());
  const auto limits = PackingFlags{.most_trees = 3, .most_height = 2, .gap = "5%"}.resolve();
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->most_trees, 3U);
  EXPECT_EQ(limits->most_height, 2U);
  EXPECT_EQ(limits->equal_trees, 0U);
  EXPECT_EQ(limits->gap, make_rational(1, 20));
  EXPECT_EQ(PackingFlags{.equal_trees = 4}.resolve()->equal_trees, 4U);
}

TEST(PackingFlags, AFixedNumberOfTreesCannotFall) {
  EXPECT_TRUE((PackingFlags{.most_height = 2, .equal_trees = 4}.resolve()));
  EXPECT_TRUE((PackingFlags{.equal_trees = 4, .gap = "0%"}.resolve()));
  EXPECT_FALSE((PackingFlags{.most_trees = 2, .equal_trees = 4}.resolve()));
  EXPECT_FALSE((PackingFlags{.equal_trees = 4, .gap = "1%"}.resolve()));
  EXPECT_FALSE((PackingFlags{.gap = "much"}.resolve()));
}

}  // namespace
}  // namespace espalier::cli
