#include "forecast/sources/count_plans.h"

#include <gtest/gtest.h>

#include "schedule/verify/verify.h"
#include "topology/yaml/read_topology.h"

namespace espalier::forecast {
namespace {

Topology machine_named(const std::string& name) {
  return *read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + name + ".yaml").topology;
}

/// Blocks of one, and of this to the last rank.
Collective skewed(std::size_t ranks, std::int64_t hot) {
  std::vector<std::int64_t> matrix(ranks * ranks, 1);
  for (std::size_t from = 0; from < ranks; ++from) matrix[from * ranks + ranks - 1] = hot;
  return *make_collective(CollectiveKind::all_to_all, ranks, std::nullopt, matrix);
}

TEST(CountPlans, ASkewedMatrixIsBalanced) {
  const Topology machine = machine_named("dgx-h100-x4");
  const ScheduleSource plans = plans_for_counts(machine);
  const Collective collective = skewed(32, 20);
  const auto planned = plans(collective, Bytes{1 << 28});
  ASSERT_TRUE(planned);
  ASSERT_NE(planned->schedule, nullptr);
  EXPECT_EQ(planned->schedule->algorithm, "balance");
  EXPECT_TRUE(verify(*planned->schedule, machine, 1).ok());
  EXPECT_EQ(plans(collective, Bytes{1 << 28})->schedule, planned->schedule);  // Kept.
}

TEST(CountPlans, WhatGainsNothingIsSentDirectly) {
  const ScheduleSource plans = plans_for_counts(machine_named("dgx-h100-x4"));
  EXPECT_EQ(plans(skewed(32, 20), Bytes{1 << 16})->schedule, nullptr);  // Small.
  EXPECT_EQ(plans(skewed(32, 1), Bytes{1 << 28})->schedule, nullptr);   // Even.
  const ScheduleSource of_box = plans_for_counts(machine_named("dgx-h100"));
  EXPECT_EQ(of_box(skewed(8, 20), Bytes{1 << 28})->schedule, nullptr);  // One box.
}

}  // namespace
}  // namespace espalier::forecast
