#include "planners/chooser.h"

#include <gtest/gtest.h>

#include "schedule/schedule_shape.h"
#include "schedule/verify/verify.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

Candidates packings_of(const Topology& topology, bool variants) {
  const Collective collective = *make_collective(CollectiveKind::all_gather, topology.rank_count(), std::nullopt);
  const std::vector<Planner> planners = {*find_planner("packing")};
  auto candidates = make_candidates(topology, collective, planners, {.for_choice = variants});
  EXPECT_TRUE(candidates && candidates->refused.empty());
  return std::move(*candidates);
}

TEST(Chooser, OffersLowerPackingsUnderTheirShapes) {
  const Topology torus = *generate_torus({{4, 4}, {}});
  const Candidates candidates = packings_of(torus, true);
  ASSERT_GT(candidates.made.size(), 1U);
  const Candidate* const best = candidates.find("packing");
  ASSERT_NE(best, nullptr);
  const ScheduleShape highest = measure_shape(best->schedule);
  for (const Candidate& candidate : candidates.made) {
    SCOPED_TRACE(candidate.planner);
    EXPECT_TRUE(verify(candidate.schedule, torus).ok());
    EXPECT_EQ(candidate.schedule.bound->time_per_byte, best->schedule.bound->time_per_byte);
    if (&candidate == best) continue;
    const ScheduleShape shape = measure_shape(candidate.schedule);
    EXPECT_EQ(candidate.planner,
              "packing/h" + std::to_string(shape.height) + "t" + std::to_string(shape.trees_per_root));
    EXPECT_TRUE(shape.height < highest.height || shape.trees_per_root < highest.trees_per_root);
  }
}

TEST(Chooser, OffersOnePackingWhereVariantsAreNotAskedFor) {
  const Candidates candidates = packings_of(*generate_torus({{4, 4}, {}}), false);
  ASSERT_EQ(candidates.made.size(), 1U);
  EXPECT_EQ(candidates.made.front().planner, "packing");
  EXPECT_EQ(candidates.find("packing/h1t1"), nullptr);
}

/// Both take as long here, ring comes first, and flat waits less often.
TEST(Chooser, TakesTheLeastLatencyOfEquals) {
  const Topology star = *generate_leaf_spine({.leaves = 1, .ranks_per_leaf = 4, .spines = 1});
  const Collective collective = *make_collective(CollectiveKind::all_gather, 4, std::nullopt);
  const std::vector<Planner> planners = {*find_planner("ring"), *find_planner("flat")};
  const auto candidates = make_candidates(star, collective, planners);
  ASSERT_TRUE(candidates);
  const auto choose_by = [&](std::int64_t ring, std::int64_t flat) {
    const auto choice = choose(*candidates, Bytes{std::int64_t{1} << 30},
                               [&](const Schedule& schedule, Bytes size, const Cut&) -> Result<RunReport> {
                                 RunReport report;
                                 report.size = size;
                                 report.elapsed = Picoseconds{schedule.algorithm == "ring" ? ring : flat};
                                 return report;
                               });
    EXPECT_TRUE(choice);
    return choice->candidate->planner;
  };
  constexpr std::int64_t second = 1'000'000'000'000;
  EXPECT_EQ(choose_by(second, second), "flat");
  EXPECT_EQ(choose_by(second - 1, second), "ring");
}

}  // namespace
}  // namespace espalier::planners
