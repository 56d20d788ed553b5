// Times are worked out by hand: on star and ring a byte takes 1,000 ps, and a link has 1 us of latency.

#include "scenario/workload/averaging.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "scenario/report/averaging_report.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::run_checked;
using test::us;

std::vector<Rank> ranks_of(std::size_t count) {
  std::vector<Rank> ranks;
  for (std::size_t i = 0; i < count; ++i) ranks.emplace_back(i);
  return ranks;
}

Mixing mix(const Topology& topology, MixingGraph graph) {
  auto mixing = make_mixing(topology, ranks_of(topology.rank_count()), graph);
  EXPECT_TRUE(mixing.has_value()) << mixing.error().message;
  return mixing ? *std::move(mixing) : Mixing();
}

/// A job that averages 1,000 floats of each rank, once.
struct Averaged {
  Job job;
  std::vector<AveragedUse> uses;
  Result<void> done;
};

Averaged average(const Topology& topology, const Averaging& averaging, std::size_t task_limit = max_tasks,
                 std::int64_t times = 1) {
  Averaged made;
  const GroupId group = made.job.add_group(ranks_of(topology.rank_count()));
  const Call call{.size = {4'000}, .group = group, .label = made.job.add_label("mix"), .planner = LabelId()};
  Averager averager(made.job, topology, averaging, task_limit);
  const auto added = averager.add(call, 1, std::vector<std::vector<TaskId>>(topology.rank_count()), {}, times);
  if (!added) made.done = tl::unexpected(added.error());
  made.uses = {{averaging, averager.added()}};
  return made;
}

TEST(Mixing, ARingHasTheGapOfACirculantMatrix) {
  // Weights of 1/3: eigenvalues (1 + 2 cos(2 pi k / 8)) / 3.
  const Mixing mixing = mix(test::ring(8), MixingGraph::network);
  EXPECT_EQ(mixing.pairs.size(), 8U);
  EXPECT_EQ(mixing.degree, 2U);
  const double second = (1 + 2 * std::cos(std::numbers::pi / 4)) / 3;
  EXPECT_NEAR(mixing.spectral_gap, 1 - second, 1e-12);
  EXPECT_EQ(mixing.rounds_to(1e-3), static_cast<std::int64_t>(std::ceil(std::log(1e-3) / std::log(second))));
}

TEST(Mixing, AllNeighboursOfASwitchAgreeInOneRound) {
  const Mixing mixing = mix(test::star(4), MixingGraph::network);
  EXPECT_EQ(mixing.pairs.size(), 6U);
  EXPECT_NEAR(mixing.spectral_gap, 1, 1e-12);
  EXPECT_EQ(mixing.rounds_to(1e-6), 1);
}

TEST(Mixing, GraphsOfTheirOwnLeaveTheNetworkAside) {
  EXPECT_EQ(mix(test::star(8), MixingGraph::ring).pairs.size(), 8U);
  // Steps of 1, 2 and 4, the last of which meets itself: 8 + 8 + 4.
  EXPECT_EQ(mix(test::star(8), MixingGraph::exponential).pairs.size(), 20U);
  EXPECT_EQ(mix(test::star(2), MixingGraph::ring).pairs.size(), 1U);
}

TEST(Mixing, PartsThatNeverHearOfEachOtherAreRefused) {
  const std::vector<Rank> opposite = {Rank(0), Rank(2)};
  const auto mixing = make_mixing(test::ring(4), opposite, MixingGraph::network);
  ASSERT_FALSE(mixing.has_value());
  EXPECT_EQ(mixing.error().code, ErrorCode::infeasible);
  EXPECT_TRUE(make_mixing(test::ring(4), opposite, MixingGraph::ring).has_value());
}

TEST(Averager, ARoundOfGossipTakesAMessage) {
  // On a ring each link carries one message a round: 1 us and 4,000 bytes.
  const Averaged made = average(test::ring(4), {.kind = AveragingKind::gossip, .rounds = 3});
  ASSERT_TRUE(made.done.has_value());
  const JobReport report = run_checked(made.job, test::ring(4), {}, {.chunk = {1 << 20}});
  EXPECT_EQ(report.elapsed.count, 3 * 5 * us);
  EXPECT_EQ(max_bytes_sent(report, test::ring(4)), 3 * 2 * 4'000);
  const auto summaries = summarize_averaging(made.job, report, made.uses);
  ASSERT_EQ(summaries.size(), 1U);
  EXPECT_EQ(summaries[0].label, "mix");
  EXPECT_EQ(summaries[0].rounds, 3);
  EXPECT_EQ(summaries[0].mean.count, 3 * 5 * us);
  // Eigenvalues (1 + 2 cos(pi k / 2)) / 3: 1, 1/3, -1/3, 1/3.
  EXPECT_NEAR(summaries[0].left, 1.0 / 27, 1e-12);
}

TEST(Averager, CompressedVectorsAreAsLargeAsTheyAreSaidToBe) {
  const Averaged bits = average(test::star(4), {.kind = AveragingKind::int8});
  ASSERT_TRUE(bits.done.has_value());
  ASSERT_EQ(bits.job.calls().size(), 2U);
  EXPECT_EQ(bits.job.calls()[0].kind, CollectiveKind::all_to_all);
  EXPECT_EQ(bits.job.calls()[1].kind, CollectiveKind::all_gather);
  EXPECT_EQ(bits.job.calls()[1].size.count, 4 * (250 + 4));  // a scale beside each of four parts

  const Averaged factors = average(test::star(4), {.kind = AveragingKind::low_rank, .low_rank = 3});
  ASSERT_TRUE(factors.done.has_value());
  ASSERT_EQ(factors.job.calls().size(), 2U);
  EXPECT_EQ(factors.job.calls()[0].size.count, 3 * 32 * 4);  // 1,000 as 32 x 32
  EXPECT_EQ(factors.job.calls()[1].size.count, 3 * 32 * 4);
  const JobReport report = run_checked(factors.job, test::star(4));
  EXPECT_GT(report.tasks[4].start, report.tasks[0].start);  // Q waits for P
}

TEST(Averager, WhatSavesNothingOrNeverEndsIsRefused) {
  const Averaged factors = average(test::star(4), {.kind = AveragingKind::low_rank, .low_rank = 16});
  ASSERT_FALSE(factors.done.has_value());
  EXPECT_EQ(factors.done.error().code, ErrorCode::invalid_input);
  const Averaged gossip = average(test::ring(4), {.kind = AveragingKind::gossip, .rounds = 100}, 1'999);
  ASSERT_FALSE(gossip.done.has_value());  // 100 rounds of 4 x 4 parts and 4 ends
  EXPECT_EQ(gossip.done.error().code, ErrorCode::too_large);
  EXPECT_TRUE(average(test::ring(4), {.kind = AveragingKind::gossip, .rounds = 100}, 2'000).done.has_value());
}

TEST(Averager, WhatRepeatsTooOftenIsRefusedBeforeItsFirstCall) {
  // 20 tasks a round, 100 rounds, 10 times.
  const Averaged refused = average(test::ring(4), {.kind = AveragingKind::gossip, .rounds = 100}, 19'999, 10);
  ASSERT_FALSE(refused.done.has_value());
  EXPECT_EQ(refused.done.error().code, ErrorCode::too_large);
  EXPECT_NE(refused.done.error().message.find("100 rounds, 10 times"), std::string::npos);
  EXPECT_TRUE(refused.job.tasks().empty());
  EXPECT_TRUE(average(test::ring(4), {.kind = AveragingKind::gossip, .rounds = 100}, 20'000, 10).done.has_value());
}

}  // namespace
}  // namespace espalier::scenario
