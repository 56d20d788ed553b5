#include "planners/classic/classic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>

#include "planners/planner.h"
#include "schedule/dependencies.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/real_machines.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::dgx1v_nvlinks;
using test::ring_of;
using test::star_of;

using ClassicPlan = Result<Schedule> (*)(const PlanningProblem&, const Collective&);

Schedule plan_checked(ClassicPlan plan, const Topology& topology, CollectiveKind kind) {
  const Result<Schedule> schedule = plan(topology, *make_collective(kind, topology.rank_count(), std::nullopt));
  EXPECT_TRUE(schedule.has_value()) << (schedule ? "" : schedule.error().message);
  const VerifyReport report = verify(*schedule, topology);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  return *schedule;
}

/// The longest chain of transfers that wait for each other: the steps of the algorithm.
std::size_t step_count(const Schedule& schedule) {
  const Dependencies dependencies(schedule);
  std::vector<std::size_t> step(schedule.transfers.size(), 1);
  std::size_t most = 0;
  for (std::size_t i = 0; i < step.size(); ++i) {
    for (const Dependency& dependency : dependencies.of(TransferId(i))) {
      if (dependency.wait() == Wait::arrival) step[i] = std::max(step[i], step[dependency.transfer().index()] + 1);
    }
    most = std::max(most, step[i]);
  }
  return most;
}

std::size_t log2_up(std::size_t n) { return static_cast<std::size_t>(std::bit_width(n - 1)); }

TEST(Oneshot, TakesOneStepOfAllInputs) {
  for (const std::size_t ranks : {2U, 3U, 8U}) {
    const Topology star = star_of(ranks);
    const Schedule schedule = plan_checked(plan_oneshot, star, CollectiveKind::all_reduce);
    EXPECT_EQ(step_count(schedule), 1U);
    EXPECT_EQ(schedule.transfers.size(), ranks * (ranks - 1));
    // The whole message leaves every rank N-1 times.
    const Link& link = star.link(LinkId(0));
    EXPECT_EQ(compute_loads(schedule, star).time_per_byte,
              make_rational(static_cast<std::int64_t>(ranks) - 1, link.bandwidth().bytes_per_second));
  }
}

TEST(Oneshot, MakesNothingElse) {
  const auto schedule = plan_oneshot(star_of(4), *make_collective(CollectiveKind::all_gather, 4, std::nullopt));
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().code, ErrorCode::unsupported);
  EXPECT_NE(schedule.error().help.find("flat"), std::string::npos);
}

TEST(Flat, TakesOneStepThroughASwitch) {
  const Topology star = star_of(6);
  EXPECT_EQ(step_count(plan_checked(plan_flat, star, CollectiveKind::broadcast)), 1U);
  EXPECT_EQ(step_count(plan_checked(plan_flat, star, CollectiveKind::all_gather)), 1U);
  EXPECT_EQ(step_count(plan_checked(plan_flat, star, CollectiveKind::all_reduce)), 2U);
}

// Nobody of a DGX-1V is more than two NVLinks away.
TEST(Flat, RelaysWhereThereIsNoRoute) {
  EXPECT_EQ(step_count(plan_checked(plan_flat, dgx1v_nvlinks(true), CollectiveKind::all_gather)), 2U);
  EXPECT_EQ(step_count(plan_checked(plan_flat, ring_of(8), CollectiveKind::broadcast)), 4U);
}

// One-way circle: N-1 hops, and every rank is reached along the only way there is.
TEST(Flat, FollowsLinksInOneDirection) {
  const Topology ring = *generate_ring({.ranks = 5, .one_way = true});
  for (const CollectiveKind kind : {CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter}) {
    EXPECT_EQ(step_count(plan_checked(plan_flat, ring, kind)), 4U);
  }
}

TEST(Star, TakesTheFewestMessagesInTwoSteps) {
  for (const std::size_t ranks : {2U, 3U, 6U, 8U}) {
    const Schedule schedule = plan_checked(plan_star, star_of(ranks), CollectiveKind::all_reduce);
    EXPECT_EQ(step_count(schedule), 2U);
    EXPECT_EQ(schedule.transfers.size(), 2 * (ranks - 1));
  }
}

// A row of seven ranks: from the middle one nobody is farther than three hops.
TEST(Star, StandsInTheMiddle) {
  const Topology row = *generate_mesh({{7}, {}});
  const Schedule schedule = plan_checked(plan_star, row, CollectiveKind::all_reduce);
  EXPECT_EQ(step_count(schedule), 6U);
  EXPECT_EQ(schedule.transfers.size(), 12U);
}

TEST(Star, RefusesOtherCollectives) {
  const auto schedule = plan_star(star_of(4), *make_collective(CollectiveKind::all_gather, 4, std::nullopt));
  ASSERT_FALSE(schedule.has_value());
  EXPECT_EQ(schedule.error().code, ErrorCode::unsupported);
}

TEST(Binomial, TakesLogarithmicSteps) {
  for (const std::size_t ranks : {2U, 3U, 5U, 8U, 13U, 16U}) {
    const Topology star = star_of(ranks);
    for (const CollectiveKind kind :
         {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::gather, CollectiveKind::scatter}) {
      const Schedule schedule = plan_checked(plan_binomial, star, kind);
      EXPECT_LE(step_count(schedule), log2_up(ranks));
    }
  }
}

TEST(Recursive, TakesLogarithmicSteps) {
  for (const std::size_t ranks : {2U, 3U, 5U, 6U, 7U, 8U, 12U, 16U}) {
    const Topology star = star_of(ranks);
    const std::size_t fold = std::has_single_bit(ranks) ? 0 : 1;
    const std::size_t core = static_cast<std::size_t>(std::bit_width(ranks)) - 1;
    EXPECT_LE(step_count(plan_checked(plan_recursive, star, CollectiveKind::all_reduce)), 2 * core + 2 * fold);
    EXPECT_LE(step_count(plan_checked(plan_recursive, star, CollectiveKind::all_gather)), core + 2 * fold);
    EXPECT_LE(step_count(plan_checked(plan_recursive, star, CollectiveKind::reduce_scatter)), core + 2 * fold);
  }
}

// With 2^k ranks no rank sends more than (N-1)/N of the buffer in each half: the least there is.
TEST(Recursive, MovesNoMoreThanItMust) {
  const Topology star = star_of(8);
  const Schedule schedule = plan_checked(plan_recursive, star, CollectiveKind::all_reduce);
  const Rational busbw = schedule.collective.busbw_factor() / compute_loads(schedule, star).time_per_byte;
  EXPECT_EQ(busbw, make_rational(25'000'000'000));
}

// The NVLinks of a DGX-1V contain a cube, so partners are neighbours; without gpu0-gpu1 one pair is not.
TEST(Recursive, RunsOnACubeAndRefusesWithoutIt) {
  plan_checked(plan_recursive, dgx1v_nvlinks(false), CollectiveKind::all_reduce);
  const auto refused =
      plan_recursive(dgx1v_nvlinks(true), *make_collective(CollectiveKind::all_reduce, 8, std::nullopt));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, ErrorCode::unsupported);
  EXPECT_EQ(refused.error().message,
            "recursive needs a route from gpu0 to gpu1, which reach each other only through other ranks");
}

TEST(Bruck, TakesLogarithmicStepsForAnyNumberOfRanks) {
  for (const std::size_t ranks : {2U, 3U, 5U, 6U, 7U, 8U, 13U}) {
    const Topology star = star_of(ranks);
    EXPECT_LE(step_count(plan_checked(plan_bruck, star, CollectiveKind::all_gather)), log2_up(ranks));
    EXPECT_LE(step_count(plan_checked(plan_bruck, star, CollectiveKind::reduce_scatter)), log2_up(ranks));
    EXPECT_LE(step_count(plan_checked(plan_bruck, star, CollectiveKind::all_reduce)), 2 * log2_up(ranks));
  }
}

// Through one switch every rank sends its N-1 blocks and no more.
TEST(Pairwise, SendsEveryBlockOnce) {
  const Schedule schedule = plan_checked(plan_pairwise, star_of(6), CollectiveKind::all_to_all);
  EXPECT_EQ(schedule.transfers.size(), 30U);
  EXPECT_EQ(step_count(schedule), 1U);
}

// A circle of 8: blocks of S/8 go 1+2+3+4+3+2+1 = 16 links from each rank, 128 over 16 links: S over each if evenly
// spread. A block goes in a few pieces, so an eighth more may be needed where two ways are equally long.
TEST(Pairwise, SpreadsRelayedBlocksOverTheLinks) {
  const Topology ring = ring_of(8);
  const Loads loads = compute_loads(plan_checked(plan_pairwise, ring, CollectiveKind::all_to_all), ring);
  EXPECT_LE(loads.time_per_byte, make_rational(9, 8 * test::fabric_rate.bytes_per_second));
}

TEST(Pairwise, UsesParallelLinks) {
  const Topology dgx = dgx1v_nvlinks(false);
  const Loads loads = compute_loads(plan_checked(plan_pairwise, dgx, CollectiveKind::all_to_all), dgx);
  for (const auto units : loads.link_units) EXPECT_TRUE(units > 0);
}

TEST(Classic, RefusalsSayWhatWouldWork) {
  const Topology ring = ring_of(5);
  const std::map<std::string, ClassicPlan> planners = {{"flat", plan_flat},
                                                       {"binomial", plan_binomial},
                                                       {"recursive", plan_recursive},
                                                       {"bruck", plan_bruck},
                                                       {"pairwise", plan_pairwise}};
  for (const auto& [name, plan] : planners) {
    for (const CollectiveKind kind : all_collective_kinds) {
      const auto schedule = plan(ring, *make_collective(kind, 5, std::nullopt));
      if (schedule) continue;
      EXPECT_EQ(schedule.error().code, ErrorCode::unsupported);
      EXPECT_EQ(schedule.error().message.rfind(name, 0), 0U) << schedule.error().message;
      EXPECT_EQ(schedule.error().help.rfind("use ", 0), 0U) << schedule.error().help;
    }
  }
}

}  // namespace
}  // namespace espalier::planners
