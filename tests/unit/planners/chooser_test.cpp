#include "planners/chooser.h"

#include <gtest/gtest.h>

#include "schedule/schedule_shape.h"
#include "schedule/verify/verify.h"
#include "tests/support/forecast/times_of.h"
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

TEST(Chooser, PlansLowerPackingsUnderTheirShapes) {
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

TEST(Chooser, PlansOnePackingWhereVariantsAreNotAskedFor) {
  const Candidates candidates = packings_of(*generate_torus({{4, 4}, {}}), false);
  ASSERT_EQ(candidates.made.size(), 1U);
  EXPECT_EQ(candidates.made.front().planner, "packing");
  EXPECT_EQ(candidates.find("packing/h1t1"), nullptr);
}

TEST(Chooser, PlansTheSamePackingsOnAnyNumberOfThreads) {
  const Topology torus = *generate_torus({{3, 4}, {}});
  const Collective collective = *make_collective(CollectiveKind::all_reduce, 12, std::nullopt);
  const std::vector<Planner> planners = {*find_planner("packing")};
  const auto alone = make_candidates(torus, collective, planners, {.for_choice = true, .threads = 1});
  const auto shared = make_candidates(torus, collective, planners, {.for_choice = true, .threads = 3});
  ASSERT_TRUE(alone && shared);
  ASSERT_GT(alone->made.size(), 1U);
  ASSERT_EQ(alone->made.size(), shared->made.size());
  for (std::size_t i = 0; i < alone->made.size(); ++i) {
    SCOPED_TRACE(alone->made[i].planner);
    EXPECT_EQ(alone->made[i].planner, shared->made[i].planner);
    const Schedule& first = alone->made[i].schedule;
    const Schedule& second = shared->made[i].schedule;
    ASSERT_EQ(first.transfers.size(), second.transfers.size());
    for (std::size_t t = 0; t < first.transfers.size(); ++t) {
      EXPECT_EQ(first.src(first.transfers[t]), second.src(second.transfers[t]));
      EXPECT_EQ(first.dst(first.transfers[t]), second.dst(second.transfers[t]));
      EXPECT_EQ(first.transfers[t].first_slice, second.transfers[t].first_slice);
    }
  }
}

/// Pairwise fills every cable of a star (ranks - 1 blocks into each rank and out of it): lp could only be as good, and
/// takes long on many ranks.
TEST(Chooser, LeavesLpOutWherePairwiseIsAtTheBoundOnManyRanks) {
  const std::vector<Planner> planners = {*find_planner("lp"), *find_planner("pairwise")};
  for (const std::int64_t ranks : {16, 520}) {
    SCOPED_TRACE(ranks);
    const Topology star = *generate_leaf_spine({.leaves = 1, .ranks_per_leaf = ranks, .spines = 1});
    const Collective collective = *make_collective(CollectiveKind::all_to_all, star.rank_count(), std::nullopt);
    const auto candidates = make_candidates(star, collective, planners, {.for_choice = true});
    ASSERT_TRUE(candidates);
    const Candidate* pairwise = candidates->find("pairwise");
    ASSERT_NE(pairwise, nullptr);
    // Every block crosses two cables of 1 us and waits for no other, however many ranks there are.
    EXPECT_NEAR(pairwise->chunks.latency(), 2e-6, 1e-12);
    EXPECT_EQ(pairwise->chunks.rounds_ahead(Bytes{std::int64_t{1} << 30}, ChunkModel::smallest_chunk), 0U);
    EXPECT_EQ(candidates->find("lp") != nullptr, ranks == 16);
  }
}

/// Inputs wait for nothing that came to their rank: one way over the switch, where flat goes there and back.
TEST(Chooser, CountsOneStepForAnExchangeOfInputs) {
  const Topology star = *generate_leaf_spine({.leaves = 1, .ranks_per_leaf = 4, .spines = 1});
  const Collective collective = *make_collective(CollectiveKind::all_reduce, 4, std::nullopt);
  const std::vector<Planner> planners = {*find_planner("oneshot"), *find_planner("flat")};
  const auto candidates = make_candidates(star, collective, planners);
  ASSERT_TRUE(candidates);
  ASSERT_EQ(candidates->made.size(), 2U);
  EXPECT_FLOAT_EQ(static_cast<float>(2 * candidates->made[0].chunks.latency()),
                  static_cast<float>(candidates->made[1].chunks.latency()));
}

/// Both take as long here, ring comes first, and flat waits less often.
TEST(Chooser, TakesTheLeastLatencyOfEquals) {
  const Topology star = *generate_leaf_spine({.leaves = 1, .ranks_per_leaf = 4, .spines = 1});
  const Collective collective = *make_collective(CollectiveKind::all_gather, 4, std::nullopt);
  const std::vector<Planner> planners = {*find_planner("ring"), *find_planner("flat")};
  const auto candidates = make_candidates(star, collective, planners);
  ASSERT_TRUE(candidates);
  const auto choose_by = [&](std::int64_t ring, std::int64_t flat) {
    const auto choice =
        test::choose(*candidates, Bytes{std::int64_t{1} << 30},
                     [&](const Schedule& schedule, Bytes size, const Pacing&, Picoseconds) -> Result<RunReport> {
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

/// More ranks than a stored plan may have are refused before anything is planned, by whatever name they are asked for.
TEST(Chooser, RefusesMoreRanksThanAPlanMayHave) {
  const Topology star =
      *generate_leaf_spine({.leaves = 1, .ranks_per_leaf = static_cast<std::int64_t>(max_ranks) + 1, .spines = 1});
  for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::broadcast}) {
    const std::optional<Rank> root = has_root(kind) ? std::optional(Rank(0)) : std::nullopt;
    const Collective collective = *make_collective(kind, star.rank_count(), root);
    const auto candidates = make_candidates(star, collective, all_planners());
    ASSERT_FALSE(candidates);
    EXPECT_EQ(candidates.error().code, ErrorCode::too_large);
    EXPECT_EQ(candidates.error().message, "65537 ranks are more than a plan may have (65536)");
    const auto alone = plan_unbounded(star, collective, *find_planner("ring"));
    ASSERT_FALSE(alone);
    EXPECT_EQ(alone.error().code, ErrorCode::too_large);
  }
}

}  // namespace
}  // namespace espalier::planners
