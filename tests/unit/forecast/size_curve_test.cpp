#include "forecast/size_curve.h"

#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace espalier::forecast {
namespace {

/// Microseconds of a made-up schedule: its bytes, the chunk that fills its pipeline, and what every chunk costs.
std::int64_t time_of(std::int64_t size, std::int64_t chunk) {
  const std::int64_t chunks = (size + chunk - 1) / chunk;
  return 1000 + size + 8 * chunk + 300 * chunks;
}

sim::Report report_of(Bytes size, const Pacing& pacing) {
  sim::Report report;
  report.size = size;
  report.chunk = pacing.chunk;
  report.ahead = pacing.ahead;
  report.elapsed = {time_of(size.count, pacing.chunk.count)};
  report.links = {{size.count, {size.count / 2}}};
  return report;
}

/// Of up to 64 chunks the number that is the fastest.
Pacing fastest(std::int64_t size) {
  Pacing best{{size}, 3};
  for (std::int64_t number = 1; number <= 64; number *= 2) {
    const std::int64_t chunk = (size + number - 1) / number;
    if (time_of(size, chunk) < time_of(size, best.chunk.count)) best.chunk.count = chunk;
  }
  return best;
}

/// Counts what it is asked.
class Asked {
 public:
  SizeCurve curve() {
    return {[this](Bytes size) -> Result<SizedRun> {
              searched.push_back(size.count);
              if (size.count % 4 != 0) return fail(ErrorCode::invalid_input, "no whole elements", "");
              if (size.count >= max) return fail(ErrorCode::too_large, "too large", "");
              return SizedRun{report_of(size, fastest(size.count)), nullptr, {}};
            },
            [this](const SizedRun&, Bytes size, const Pacing& pacing) -> Result<sim::Report> {
              ++repeated;
              return report_of(size, pacing);
            }};
  }

  std::vector<std::int64_t> searched;
  int repeated = 0;
  std::int64_t max = std::int64_t{1} << 40;
};

TEST(SizeCurve, APowerOfTwoIsWhatTheSearchFinds) {
  Asked asked;
  SizeCurve curve = asked.curve();
  const auto run = curve.at({1 << 20});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->report.elapsed.count, time_of(1 << 20, 1 << 14));
  EXPECT_EQ(run->report.chunk.count, 1 << 14);
  ASSERT_TRUE(curve.at({1 << 20}));
  EXPECT_EQ(asked.searched, (std::vector<std::int64_t>{1 << 20}));
}

TEST(SizeCurve, BetweenTwoItIsTheBetterOfBothWays) {
  Asked asked;
  SizeCurve curve = asked.curve();
  ASSERT_EQ(fastest(4096).chunk.count, 4096 / 8);
  ASSERT_EQ(fastest(8192).chunk.count, 8192 / 16);
  EXPECT_EQ(curve.at({4608})->report.elapsed.count, time_of(4608, 4608 / 8));
  const auto run = curve.at({6144});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->report.elapsed.count, time_of(6144, 6144 / 16));
  EXPECT_EQ(run->report.size.count, 6144);
  EXPECT_EQ(run->report.chunk.count, 6144 / 16);
  EXPECT_EQ(run->report.ahead, 3U);
  ASSERT_EQ(run->report.links.size(), 1U);
  EXPECT_EQ(run->report.links[0].bytes, 6144);
  EXPECT_EQ(run->report.links[0].busy.count, 3072);
  for (std::int64_t size = 4100; size < 8192; size += 4) ASSERT_TRUE(curve.at({size}));
  EXPECT_EQ(asked.searched, (std::vector<std::int64_t>{4096, 8192}));
  EXPECT_EQ(asked.repeated, 2);
}

/// What a search finds is not lower than what a smaller size takes, nor higher than the next power of two.
TEST(SizeCurve, BetweenTwoItIsBetweenTheirTimes) {
  Asked asked;
  SizeCurve curve(
      [&](Bytes size) {
        return Result<SizedRun>(
            SizedRun{report_of(size, {{size.count / (size.count < 4096 ? 2 : 4)}, 0}), nullptr, {}});
      },
      [](const SizedRun&, Bytes size, const Pacing& pacing) { return Result<sim::Report>(report_of(size, pacing)); });
  for (std::int64_t size = 2052; size < 4096; size += 4) {
    const std::int64_t time = curve.at({size})->report.elapsed.count;
    ASSERT_GE(time, time_of(2048, 1024));
    ASSERT_LE(time, time_of(4096, 1024));
  }
}

TEST(SizeCurve, NeverFallsAndDoesNotDependOnWhatWasAskedBefore) {
  Asked asked, backwards;
  SizeCurve curve = asked.curve(), other = backwards.curve();
  std::vector<std::int64_t> times;
  for (std::int64_t size = 1024; size <= 1 << 15; size += 4) times.push_back(curve.at({size})->report.elapsed.count);
  for (std::size_t i = 1; i < times.size(); ++i) ASSERT_LE(times[i - 1], times[i]) << 1024 + 4 * i;
  for (std::size_t i = times.size(); i-- > 0;) {
    ASSERT_EQ(other.at({1024 + 4 * static_cast<std::int64_t>(i)})->report.elapsed.count, times[i]);
  }
}

TEST(SizeCurve, WithoutAPowerAboveItASizeIsSearchedItself) {
  Asked asked;
  asked.max = 1 << 20;
  SizeCurve curve = asked.curve();
  const std::int64_t size = (1 << 20) - 4;
  const auto run = curve.at({size});
  ASSERT_TRUE(run);
  EXPECT_EQ(run->report.elapsed.count, time_of(size, fastest(size).chunk.count));
}

TEST(SizeCurve, ErrorsAreThoseOfTheSize) {
  Asked asked;
  SizeCurve curve = asked.curve();
  for (const std::int64_t size :
       {std::int64_t{0} - 1, std::int64_t{6}, std::int64_t{1} << 40, (std::int64_t{1} << 40) + 4}) {
    EXPECT_EQ(curve.at({size}).has_value(), false) << size;
  }
}

}  // namespace
}  // namespace espalier::forecast
