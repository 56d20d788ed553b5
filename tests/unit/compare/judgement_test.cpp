#include "compare/judgement.h"

#include <gtest/gtest.h>

namespace espalier::compare {
namespace {

constexpr std::int64_t kib = 1024, mib = kib * kib;

/// Sizes of three bands, each so many times as long as predicted.
std::vector<PredictedTime> times_with(double small, double middle, double large) {
  std::vector<PredictedTime> times;
  for (const auto& [size, factor] : {std::pair(4 * kib, small),
                                     {16 * kib, small},
                                     {64 * kib, small},
                                     {mib, middle},
                                     {4 * mib, middle},
                                     {64 * mib, middle},
                                     {128 * mib, large},
                                     {1024 * mib, large}}) {
    times.push_back({{size}, 1e-3, factor * 1e-3});
  }
  return times;
}

TEST(Judgement, WhatIsWithinTheAccuracyOfPredictionsIsAsPredicted) {
  const Judgement judgement = judge(times_with(1.2, 0.8, 1.1));
  EXPECT_EQ(judgement.kind, Judgement::Kind::as_predicted);
  // The mean of the three bands' |log|: (0.182 + 0.223 + 0.095) / 3.
  EXPECT_NEAR(judgement.distance, 0.1669, 1e-3);
}

TEST(Judgement, TheBandThatPartsMostByItsAccuracyDecides) {
  // 1.24 of 1.3 is within; 1.2 of 1.15 is not.
  const Judgement slower = judge(times_with(1, 1.24, 1.2));
  EXPECT_EQ(slower.kind, Judgement::Kind::slower);
  EXPECT_EQ(slower.band->name, "above 64 MiB");
  EXPECT_NEAR(slower.factor, 1.2, 1e-12);
  const Judgement faster = judge(times_with(0.5, 1.24, 1));
  EXPECT_EQ(faster.kind, Judgement::Kind::faster);
  EXPECT_EQ(faster.band->name, "up to 64 KiB");
}

TEST(Judgement, OneDisturbedSizeIsToldAndMakesNoMachineSlow) {
  std::vector<PredictedTime> times = times_with(1, 1, 1);
  times[4].measured *= 3;
  const Judgement judgement = judge(times);
  EXPECT_EQ(judgement.kind, Judgement::Kind::as_predicted);
  ASSERT_TRUE(judgement.odd);
  EXPECT_EQ(judgement.odd->size.count, 4 * mib);
}

TEST(Judgement, BandsWithoutSizesDoNotCount) {
  const Judgement judgement = judge(std::vector<PredictedTime>{{{mib}, 1e-3, 2e-3}});
  EXPECT_EQ(judgement.kind, Judgement::Kind::slower);
  EXPECT_NEAR(judgement.typical(), 2, 1e-12);
}

}  // namespace
}  // namespace espalier::compare
