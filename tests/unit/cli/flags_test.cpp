#include <gtest/gtest.h>

#include "cli/flags/condition_flags.h"
#include "cli/flags/flag_values.h"
#include "cli/flags/packing_flags.h"
#include "cli/flags/sizes.h"

namespace espalier::cli {
namespace {

TEST(FlagValues, PartsArePercentagesOrFractions) {
  EXPECT_EQ(*parse_part("--gap", "1%"), make_rational(1, 100));
  EXPECT_EQ(*parse_part("--gap", "0.01"), make_rational(1, 100));
  EXPECT_EQ(*parse_part("--gap", "0"), make_rational(0));
  EXPECT_EQ(*parse_part("--gap", "100%"), make_rational(1));
  // A bare 1 could be meant as 1 % or as all of it.
  for (const char* const text : {"", "1", "1.5", "101%", "-1%", "0.00001%", "1%%", "nan", "part"}) {
    const auto part = parse_part("--gap", text);
    ASSERT_FALSE(part) << text;
    EXPECT_TRUE(part.error().message.starts_with("--gap: '")) << part.error().message;
  }
}

TEST(ConditionFlags, AreThoseOfAScenario) {
  const auto plain = ConditionFlags{}.resolve();
  ASSERT_TRUE(plain);
  EXPECT_TRUE(plain->are_plain());
  EXPECT_EQ(circumstances_text(*plain), "");
  EXPECT_TRUE(circumstances_json(*plain).is_null());
  ConditionFlags flags;
  flags.protocol = "ll128";
  flags.copy_engines = "2";
  flags.jitter = "2%";
  flags.seed = 7;
  const auto all = flags.resolve();
  ASSERT_TRUE(all);
  EXPECT_EQ(all->endpoints, (sim::Endpoints{.payload_ppm = 937'500, .launch = {14'000'000}, .copy_engines = 2}));
  EXPECT_EQ(all->conditions.jitter_ppm, 20'000);
  EXPECT_EQ(all->conditions.seed, 7U);
  EXPECT_EQ(circumstances_text(*all), "  payload 93.75 %  launch 14 us  copy engines 2  jitter 2 %  seed 7");
  flags.launch = "0 us";
  flags.payload = "50%";
  EXPECT_EQ(flags.resolve()->endpoints, (sim::Endpoints{.payload_ppm = 500'000, .launch = {}, .copy_engines = 2}));
}

TEST(ConditionFlags, RefuseWhatIsOutOfRange) {
  const auto refused = [](ConditionFlags flags) {
    const auto resolved = flags.resolve();
    return resolved ? std::string() : resolved.error().message;
  };
  EXPECT_EQ(refused({.protocol = "ll12"}), "--protocol: there is no protocol 'll12'");
  EXPECT_EQ(refused({.payload = "0.9%"}), "--payload: '0.9%' of the wire is below 1 %");
  EXPECT_EQ(refused({.payload = "2"}), "--payload: '2' is more than the whole");
  EXPECT_EQ(refused({.launch = "5"}), "--launch: the time '5' has no unit");
  EXPECT_EQ(refused({.launch = "9000000s"}), "--launch: '9000000s' is past the longest time here (1 hour)");
  EXPECT_EQ(refused({.copy_engines = "65"}), "--copy-engines: '65' is not a whole number from 0 to 64");
  EXPECT_EQ(refused({.copy_engines = "-1"}), "--copy-engines: '-1' is not a whole number from 0 to 64");
  EXPECT_EQ(refused({.jitter = "1"}), "--jitter: '1' may mean 1 % or all");
  EXPECT_EQ(refused({.jitter = "101%"}), "--jitter: '101%' is more than the whole");
  EXPECT_EQ(refused({.jitter = "much"}), "--jitter: 'much' is no part: neither a percentage nor a number up to 1");
  EXPECT_EQ(refused({.seed = 3}), "--seed goes with --jitter or --scenario");
}

TEST(FlagValues, MessageSizesAreWholeFloats) {
  EXPECT_EQ(parse_message_size("1K")->count, 1024);
  EXPECT_EQ(parse_message_size("1023")->count, 1020);
  const auto size = parse_message_size("1Q");
  ASSERT_FALSE(size);
  EXPECT_TRUE(size.error().message.starts_with("-s: ")) << size.error().message;
}

std::vector<std::int64_t> sizes_of(const SizeFlags& flags) {
  const auto sizes = parse_sizes(flags, ElementType::float32);
  EXPECT_TRUE(sizes) << sizes.error().message;
  std::vector<std::int64_t> counts;
  for (const Bytes size : sizes.value_or(std::vector<Bytes>{})) counts.push_back(size.count);
  return counts;
}

TEST(SizeFlags, TheLargestSizeIsAlwaysOneOfThem) {
  constexpr std::int64_t mega = 1 << 20, giga = 1 << 30;
  EXPECT_EQ(sizes_of({.begin = "1M", .end = "1G", .factor = "64"}), (std::vector<std::int64_t>{mega, 64 * mega, giga}));
  EXPECT_EQ(sizes_of({.begin = "1M", .end = "4M"}), (std::vector<std::int64_t>{mega, 2 * mega, 4 * mega}));
  EXPECT_EQ(sizes_of({.begin = "0", .end = "10", .step = "4"}), (std::vector<std::int64_t>{0, 4, 8}));
  EXPECT_EQ(sizes_of({.begin = "0", .end = "12", .step = "8"}), (std::vector<std::int64_t>{0, 8, 12}));
  EXPECT_EQ(sizes_of({.begin = "1M", .end = "1M"}), (std::vector<std::int64_t>{mega}));
}

TEST(SizeFlags, SeveralMayBeNamed) {
  constexpr std::int64_t mega = 1 << 20;
  EXPECT_EQ(sizes_of({.single = "64M,1M,64M"}), (std::vector<std::int64_t>{mega, 64 * mega}));
  EXPECT_EQ(sizes_of({.single = "1023"}), (std::vector<std::int64_t>{1020}));
  EXPECT_FALSE(parse_sizes({.single = "1M,,2M"}, ElementType::float32));
  EXPECT_EQ(parse_one_size({.single = "1M"}, ElementType::float32)->count, mega);
  const auto one = parse_one_size({.single = "1M,2M"}, ElementType::float32);
  ASSERT_FALSE(one);
  EXPECT_EQ(one.error().message, "-s: 1M,2M are several sizes");
}

TEST(PackingFlags, BecomeLimits) {
  EXPECT_FALSE(PackingFlags{}.resolve()->any());
  const auto limits = PackingFlags{.max_trees = 3, .max_height = 2, .gap = "5%"}.resolve();
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->max_trees, 3U);
  EXPECT_EQ(limits->max_height, 2U);
  EXPECT_EQ(limits->equal_trees, 0U);
  EXPECT_EQ(limits->gap, make_rational(1, 20));
  EXPECT_EQ(PackingFlags{.equal_trees = 4}.resolve()->equal_trees, 4U);
}

TEST(PackingFlags, AFixedNumberOfTreesCannotFall) {
  EXPECT_TRUE((PackingFlags{.max_height = 2, .equal_trees = 4}.resolve()));
  EXPECT_TRUE((PackingFlags{.equal_trees = 4, .gap = "0%"}.resolve()));
  EXPECT_FALSE((PackingFlags{.max_trees = 2, .equal_trees = 4}.resolve()));
  EXPECT_FALSE((PackingFlags{.equal_trees = 4, .gap = "1%"}.resolve()));
  EXPECT_FALSE((PackingFlags{.gap = "much"}.resolve()));
}

}  // namespace
}  // namespace espalier::cli
