#include <gtest/gtest.h>

#include "base/check.h"
#include "tests/support/files/shipped_machine.h"
#include "tests/support/pipeline.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

class ShippedMachine : public ::testing::TestWithParam<std::string> {};

/// Every collective has a schedule from at least one planner; each is verified and respects the bound.
TEST_P(ShippedMachine, EveryCollectiveByEveryPlanner) {
  const Topology topology = test::shipped_machine(GetParam());
  constexpr std::size_t largest =
      64;  // Larger machines are for the bench targets; this test also runs under sanitizers.
  if (topology.rank_count() > largest) GTEST_SKIP() << "more than " << largest << " ranks";
  for (const CollectiveKind kind : all_collective_kinds) {
    const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
    ASSERT_TRUE(collective);
    const auto bound = planners::compute_bound(topology, *collective);
    ASSERT_TRUE(bound) << bound.error().message;
    int planned = 0;
    for (const planners::Planner& planner : planners::all_planners()) {
      SCOPED_TRACE(std::string(to_string(kind)) + " by " + std::string(planner.name));
      const auto schedule = planners::plan(topology, *collective, planner);
      if (!schedule) continue;
      ++planned;
      test::expect_schedule_right(*schedule, topology, bound->time_per_byte);
    }
    EXPECT_GT(planned, 0) << to_string(kind);
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, ShippedMachine, ::testing::ValuesIn(test::shipped_names()), [](const auto& machine) {
  std::string name = machine.param;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

/// The figures that the field knows of these machines, derived by hand.
Rational all_gather_bound(const std::string& name) {
  const Topology topology = test::shipped_machine(name);
  const auto bound =
      planners::compute_bound(topology, *make_collective(CollectiveKind::all_gather, topology.rank_count(), {}));
  ESPALIER_CHECK(bound.has_value(), "a shipped machine has a bound");
  return bound->time_per_byte;
}

TEST(KnownBounds, Dgx1vAllGatherIs132) {
  // Each GPU receives 7/8 of S over six NVLinks of 22 GB/s: busbw = 6 x 22 = 132 GB/s.
  EXPECT_EQ(all_gather_bound("dgx1v-nvlink"), Rational(7, 8) / 132'000'000'000);
}

TEST(KnownBounds, Dgx1vWithoutOneNvlinkIs110) {
  // gpu0 and gpu1 are left with five links: busbw = 5 x 22 = 110 GB/s.
  EXPECT_EQ(all_gather_bound("dgx1v-degraded"), Rational(7, 8) / 110'000'000'000);
}

TEST(KnownBounds, TwoDgxA100) {
  // lambda = 3/65 per GB/s; S takes lambda / 16 seconds per byte on 16 ranks.
  EXPECT_EQ(all_gather_bound("dgx-a100-x2"), Rational(3, 65) / 16 / 1'000'000'000);
}

}  // namespace
}  // namespace espalier
