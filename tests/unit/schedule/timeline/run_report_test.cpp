#include "schedule/timeline/run_report.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(RunReport, RatesAreThoseOfNcclTests) {
  RunReport report;
  report.size = Bytes{1'000'000};
  report.elapsed = Picoseconds{10'000'000};  // 10 us: 1e6 B / 1e-5 s = 1e11 B/s.
  const Collective collective{CollectiveKind::all_reduce, 4, Rank()};
  EXPECT_DOUBLE_EQ(report.algbw(), 1e11);
  EXPECT_DOUBLE_EQ(report.busbw(collective), 1.5e11);
  EXPECT_DOUBLE_EQ(report.of_bound(make_rational(1, 200'000'000'000)), 0.5);  // The bound takes 5 us.
}

TEST(RunReport, AnEmptyRunHasNoRate) {
  RunReport report;
  EXPECT_EQ(report.algbw(), 0.0);
  EXPECT_EQ(report.of_bound(make_rational(0)), 1.0);
  EXPECT_EQ(report.of_bound(make_rational(1)), 0.0);
}

}  // namespace
}  // namespace espalier
