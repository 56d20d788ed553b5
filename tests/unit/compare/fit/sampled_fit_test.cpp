#include "compare/fit/sampled_fit.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace espalier::compare {
namespace {

TEST(Tangents, TheLargestCountsAndIsExactAtKnownPoints) {
  // max(c, 2 c - 4): the two cross at 4.
  Tangents tangents(1);
  EXPECT_FALSE(tangents.is_known(0));
  tangents.add(0, {1}, 1, {1});
  tangents.add(0, {6}, 8, {2});
  EXPECT_DOUBLE_EQ(tangents.estimate(0, std::vector{3.0}), 3);
  EXPECT_DOUBLE_EQ(tangents.estimate(0, std::vector{5.0}), 6);
  EXPECT_TRUE(tangents.depends_on(0, 0));
}

TEST(Tangents, OneThatClaimsTooMuchIsLeftOut) {
  Tangents tangents(1);
  tangents.add(0, {1}, 1, {1});
  tangents.add(0, {5}, 3, {0});  // the first says 5 there
  EXPECT_DOUBLE_EQ(tangents.estimate(0, std::vector{5.0}), 3);
  tangents.correct(0, std::vector{2.0}, 2);  // both do; the latest remains
  EXPECT_DOUBLE_EQ(tangents.estimate(0, std::vector{2.0}), 3);
}

const std::vector<double> bytes = {1e2, 1e3, 1e4, 1e5, 1e6, 1e7};

/// A call takes the later of two paths: costs[0] + bytes costs[1], and 4 costs[0] + bytes costs[1] / 3.
class CountedTimes {
 public:
  [[nodiscard]] TimesAt function() {
    return [this](std::span<const double> costs, std::span<const std::size_t> which) -> Result<std::vector<double>> {
      calls += which.size();
      if (costs[0] > most) return fail(ErrorCode::too_large, "past the limit", "");
      std::vector<double> times;
      for (const std::size_t i : which) times.push_back(of(costs, i));
      return times;
    };
  }
  static double of(std::span<const double> costs, std::size_t run) {
    return std::max(costs[0] + bytes[run] * costs[1], 4 * costs[0] + bytes[run] * costs[1] / 3);
  }
  std::size_t calls = 0;  ///< Runs that were simulated.
  double most = 1;
};

class SampledFit : public ::testing::Test {
 protected:
  SampledFit() : all_(bytes.size()) { std::iota(all_.begin(), all_.end(), std::size_t{0}); }

  /// Costs from 1 us and 1 ns per byte on.
  static std::vector<double> costs_at(std::span<const double> point) {
    return {1e-6 * std::exp(point[0]), 1e-9 * std::exp(point[1])};
  }
  Result<Fit> fit(SampledTimes& sampled, std::span<const std::size_t> runs, std::vector<double> truth) const {
    const auto residuals = [&](std::span<const double>, std::span<const double> times) {
      std::vector<double> logarithms;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        logarithms.push_back(std::log(times[i] / CountedTimes::of(truth, runs[i])));
      }
      return logarithms;
    };
    return sampled.fit({runs, costs_at, residuals, {0, 1}}, {0, 0}, {});
  }

  std::vector<std::size_t> all_;
};

TEST_F(SampledFit, FindsTheCostsWithFewSimulations) {
  CountedTimes times;
  SampledTimes sampled(bytes.size(), times.function(), 5e-3);
  const auto found = fit(sampled, all_, {5e-6, 2e-10});
  ASSERT_TRUE(found);
  EXPECT_TRUE(found->converged);
  EXPECT_NEAR(found->point[0], std::log(5), 0.01);
  EXPECT_NEAR(found->point[1], std::log(0.2), 0.01);
  // Three simulations of all runs for the first tangents; a Levenberg-Marquardt step alone would take as many again.
  EXPECT_LE(times.calls, 10 * bytes.size());
  const std::size_t before = times.calls;
  const std::vector<std::size_t> some = {0, 2, 3, 5};
  ASSERT_TRUE(fit(sampled, some, {5e-6, 2e-10}));
  EXPECT_EQ(times.calls, before + some.size());  // what is known already is only held against its point
}

TEST_F(SampledFit, AnErrorOnTheWayIsNotTaken) {
  CountedTimes times;
  times.most = 3e-6;
  SampledTimes sampled(bytes.size(), times.function(), 5e-3);
  const auto found = fit(sampled, all_, {5e-6, 2e-10});
  ASSERT_TRUE(found);
  EXPECT_LE(costs_at(found->point)[0], 3e-6);
  times.most = 0;
  SampledTimes none(bytes.size(), times.function(), 5e-3);
  EXPECT_FALSE(fit(none, all_, {5e-6, 2e-10}));
}

}  // namespace
}  // namespace espalier::compare
