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
  EXPECT_DOUBLE_EQ(report.of_bound(make_rational(1, 200'000'000'000), collective), 0.5);  // The bound takes 5 us.
}

TEST(RunReport, AnEmptyRunHasNoRate) {
  RunReport report;
  report.size = Bytes{4};
  const Collective collective{CollectiveKind::all_reduce, 4, Rank()};
  EXPECT_EQ(report.algbw(), 0.0);
  EXPECT_EQ(report.of_bound(make_rational(0), collective), 1.0);
  EXPECT_EQ(report.of_bound(make_rational(1), collective), 0.0);
}

TEST(RunReport, AGatherOfUnevenShardsReachesNoMoreThanItsBound) {
  // The root of 6 ranks receives 208 of 250 elements, 832 bytes, at 1 byte per ns: the others' shards are 41 or 42
  // elements, its own 42. The bound counts 5/6 of 1000 bytes, 833.3; of the 984 that are sure 820.
  RunReport report;
  report.size = Bytes{1000};
  report.elapsed = Picoseconds{832'000};
  const Rational bound = make_rational(5, 6'000'000'000);
  EXPECT_DOUBLE_EQ(report.of_bound(bound, {CollectiveKind::gather, 6, Rank(0U)}), 820.0 / 832);
}

TEST(RunReport, OfOneElementTheBoundMayCountNothing) {
  // It is the root's own shard: nothing has to move.
  RunReport report;
  report.size = Bytes{4};
  EXPECT_EQ(report.of_bound(make_rational(1), {CollectiveKind::gather, 6, Rank(0U)}), 1.0);
}

}  // namespace
}  // namespace espalier
