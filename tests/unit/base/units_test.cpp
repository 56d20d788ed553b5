#include "base/units.h"

#include <gtest/gtest.h>

#include "base/format_units.h"
#include "base/parse_units.h"
#include "base/random.h"

namespace espalier {
namespace {

TEST(Units, TransferTimeRoundsUp) {
  // 1 byte at 3 B/s is 333,333,333,333.33 ps.
  EXPECT_EQ(transfer_time(Bytes{1}, Bandwidth{3}).count, 333'333'333'334);
  EXPECT_EQ(transfer_time(Bytes{25'000'000'000}, Bandwidth{25'000'000'000}).count, picoseconds_per_second);
  EXPECT_EQ(transfer_time(Bytes{0}, Bandwidth{1}).count, 0);
}

TEST(ParseUnits, ReadsBandwidthsExactly) {
  EXPECT_EQ(parse_bandwidth("25 GB/s")->bytes_per_second, 25'000'000'000);
  EXPECT_EQ(parse_bandwidth("200 Gbit/s")->bytes_per_second, 25'000'000'000);
  EXPECT_EQ(parse_bandwidth("200Gbps")->bytes_per_second, 25'000'000'000);
  EXPECT_EQ(parse_bandwidth("12.5 GB/s")->bytes_per_second, 12'500'000'000);
  EXPECT_EQ(parse_bandwidth("1 GiB/s")->bytes_per_second, 1'073'741'824);
  EXPECT_EQ(parse_bandwidth("1 B/s")->bytes_per_second, 1);
}

TEST(ParseUnits, RefusesWhatIsNotABandwidth) {
  for (const char* text :
       {"", "25", "25 GB", "0 GB/s", "-1 GB/s", "nan GB/s", "inf GB/s", "1e9 B/s", "0.5 B/s", "1 bit/s", "1..5 GB/s",
        ". GB/s", "5. GB/s", "99999999999999999999999999 GB/s", "1 Gb", "GB/s", "0x10 B/s"}) {
    EXPECT_FALSE(parse_bandwidth(text)) << text;
  }
}

TEST(ParseUnits, ReadsLatenciesExactly) {
  EXPECT_EQ(parse_latency("1.5 us")->count, 1'500'000);
  EXPECT_EQ(parse_latency("0 ns")->count, 0);
  EXPECT_EQ(parse_latency("20 ps")->count, 20);
  EXPECT_FALSE(parse_latency("0.5 ps"));
  EXPECT_FALSE(parse_latency("5"));
  EXPECT_FALSE(parse_latency("200 days"));
  // An hour is 3,600 s of 10^12 ps; 26 days are 24 * 26 = 624 of them.
  EXPECT_EQ(parse_latency("3600 s")->count, 3'600'000'000'000'000);
  EXPECT_EQ(parse_duration("2246400 s")->count, 624 * std::int64_t{3'600'000'000'000'000});
  for (const char* const past : {"3600.000000000001 s", "9223372036854775807 ps", "9223372036854775808 ps"}) {
    ASSERT_FALSE(parse_latency(past)) << past;
    EXPECT_EQ(parse_latency(past).error().code, ErrorCode::too_large);
  }
  EXPECT_FALSE(parse_duration("2246400.000000000001 s"));
  EXPECT_FALSE(parse_duration("9223372036854775807 ps"));
}

TEST(ParseUnits, ReadsSizesAsNcclTestsDoes) {
  EXPECT_EQ(parse_size("1K")->count, 1024);
  EXPECT_EQ(parse_size("32M")->count, 32 << 20);
  EXPECT_EQ(parse_size("8")->count, 8);
  EXPECT_EQ(parse_size("1MB")->count, 1'000'000);
  for (const char* const mebibyte : {"1M", "1m", "1Mi", "1MiB", "1 MiB", "1024Ki", "1048576"}) {
    EXPECT_EQ(parse_size(mebibyte)->count, 1 << 20) << mebibyte;
  }
  EXPECT_EQ(parse_size("1.5K")->count, 1536);
  EXPECT_FALSE(parse_size("2000T"));
  EXPECT_FALSE(parse_size("-1"));
}

TEST(FormatUnits, ReadsBackExactly) {
  Random random(7);
  for (int i = 0; i < 20'000; ++i) {
    const auto value = static_cast<std::int64_t>(random.next() >> (1 + random.below(62)));
    if (value == 0) continue;
    EXPECT_EQ(parse_bandwidth(format_bandwidth({value}))->bytes_per_second, value);
    const std::int64_t time = value % (max_duration.count + 1);
    EXPECT_EQ(parse_duration(format_latency({time}))->count, time);
    const std::int64_t size = value % (max_message_size.count + 1);
    EXPECT_EQ(parse_size(format_size({size}))->count, size);
  }
  EXPECT_EQ(format_bandwidth({25'000'000'000}), "25 GB/s");
  EXPECT_EQ(format_latency({1'500'000}), "1.5 us");
  EXPECT_EQ(format_size({1 << 20}), "1 MiB");
}

TEST(ParsePart, TakesPercentagesAndFractions) {
  EXPECT_EQ(*parse_part("2%"), 20'000);
  EXPECT_EQ(*parse_part("0.02"), 20'000);
  EXPECT_EQ(*parse_part("0.000001"), 1);
  EXPECT_EQ(*parse_part("0.0001 %"), 1);
  EXPECT_EQ(*parse_part("0"), 0);
  EXPECT_EQ(*parse_part("1"), 1'000'000);
  EXPECT_EQ(*parse_part("100%"), 1'000'000);
  for (const char* const text : {"", "%", "1.1", "100.0001%", "0.0000001", "0.00001%", "-1%", "2 us", "1e-3", "nan"}) {
    EXPECT_FALSE(parse_part(text)) << text;
  }
}

}  // namespace
}  // namespace espalier
