#include <gtest/gtest.h>

#include <algorithm>

#include "compare/compare_timelines.h"
#include "schedule/timeline/thin_timeline.h"
#include "tests/support/networks/random_machine.h"
#include "tests/support/random/random_timeline.h"

namespace espalier::compare {
namespace {

constexpr int rounds = 150;

void expect_no_error(const TimelineComparison& result) {
  EXPECT_EQ(result.total.a, result.total.b);
  for (const PhaseComparison& phase : result.phases) {
    EXPECT_EQ(phase.total.a, phase.total.b);
    EXPECT_EQ(phase.durations.worst, 0);
    EXPECT_EQ(phase.begin_lag.count, 0);
    EXPECT_EQ(phase.only_a + phase.only_b, 0U);
  }
  for (const LinkComparison& link : result.links) EXPECT_EQ(link.busy.a, link.busy.b);
  for (const RankComparison& rank : result.ranks) {
    EXPECT_EQ(rank.start.a, rank.start.b);
    EXPECT_EQ(rank.finish.a, rank.finish.b);
    EXPECT_EQ(rank.busy.a, rank.busy.b);
    EXPECT_EQ(rank.waiting.a, rank.waiting.b);
  }
  EXPECT_EQ(result.transfers.errors.worst, 0);
  EXPECT_EQ(result.path.common, result.path.a.size());
  EXPECT_EQ(result.path.a.size(), result.path.b.size());
  EXPECT_EQ(result.path.shared, 1);
}

Timeline simulated(test::RandomMachine& machines) {
  const test::Machine machine = machines.make();
  return *machine.simulate(machines.random().between(1, 200), machines.random().between(1, 40)).timeline;
}

TEST(CompareTimelinesProperty, ATimelineHasNoErrorAgainstItself) {
  Random random(1);
  for (int i = 0; i < rounds; ++i) {
    const Timeline timeline = test::random_timeline(random);
    expect_no_error(compare_timelines(timeline, timeline));
  }
  test::RandomMachine machines(2);
  for (int i = 0; i < rounds; ++i) {
    const Timeline timeline = simulated(machines);
    expect_no_error(compare_timelines(timeline, timeline));
  }
}

TEST(CompareTimelinesProperty, ClocksThatStartElsewhereMakeNoDifference) {
  test::RandomMachine machines(3);
  for (int i = 0; i < rounds; ++i) {
    const Timeline timeline = simulated(machines);
    Timeline shifted = timeline;
    const std::int64_t shift = machines.random().between(-1'000'000, 1'000'000);
    for (Span& span : shifted.spans) {
      span.begin.count += shift;
      span.end.count += shift;
    }
    expect_no_error(compare_timelines(timeline, shifted));
  }
}

/// Everything k times as slow: every error is 1/k - 1, and the paths are the same.
TEST(CompareTimelinesProperty, AScaledTimelineIsOffByTheScale) {
  test::RandomMachine machines(4);
  for (int i = 0; i < rounds; ++i) {
    const Timeline timeline = simulated(machines);
    const std::int64_t scale = machines.random().between(2, 9);
    Timeline slow = timeline;
    for (Span& span : slow.spans) {
      span.begin.count *= scale;
      span.end.count *= scale;
    }
    const TimelineComparison result = compare_timelines(timeline, slow);
    EXPECT_EQ(result.total.b.count, scale * result.total.a.count);
    for (const LinkComparison& link : result.links) EXPECT_EQ(link.busy.b.count, scale * link.busy.a.count);
    for (const RankComparison& rank : result.ranks) {
      EXPECT_EQ(rank.finish.b.count, scale * rank.finish.a.count);
      EXPECT_EQ(rank.waiting.b.count, scale * rank.waiting.a.count);
    }
    const double error = 1.0 / static_cast<double>(scale) - 1;
    for (const PhaseComparison& phase : result.phases) {
      EXPECT_NEAR(phase.durations.worst, phase.total.a.count > 0 ? -error : 0, 1e-12);
    }
    EXPECT_EQ(result.path.common, result.path.a.size());
  }
}

/// A run without wire spans: links by the ways of chunks, so that only what differs shows.
TEST(CompareTimelinesProperty, MissingWiresAreNoError) {
  test::RandomMachine machines(5);
  for (int i = 0; i < rounds; ++i) {
    const Timeline timeline = simulated(machines);
    Timeline real = timeline;
    std::erase_if(real.spans, [](const Span& span) { return span.phase == Phase::wire; });
    if (real.spans.size() == timeline.spans.size()) continue;
    real.link_names.clear();
    const TimelineComparison result = compare_timelines(timeline, real);
    EXPECT_TRUE(result.links_by_way);
    EXPECT_FALSE(result.links.empty());
    for (const LinkComparison& link : result.links) EXPECT_EQ(link.busy.a, link.busy.b);
    EXPECT_EQ(result.transfers.errors.worst, 0);
  }
}

/// What is left of two timelines that are thinned alike pairs as it did whole, and a whole one is thinned first.
TEST(CompareTimelinesProperty, ThinnedTimelinesPair) {
  test::RandomMachine machines(8);
  for (int i = 0; i < rounds; ++i) {
    const Timeline whole = simulated(machines);
    Timeline half = whole, third = whole;
    thin_timeline(half, 2);
    thin_timeline(third, 3);
    EXPECT_EQ(thinning_of(whole), 1U);
    EXPECT_EQ(thinning_of(half), 2U);
    for (const Span& span : half.spans) EXPECT_EQ((span.transfer.index() + span.chunk) % 2, 0U);
    EXPECT_EQ(half.spans.size(), static_cast<std::size_t>(std::ranges::count_if(whole.spans, [](const Span& span) {
                return (span.transfer.index() + span.chunk) % 2 == 0;
              })));
    expect_no_error(compare_timelines(half, half));
    expect_no_error(compare_timelines(half, whole));
    expect_no_error(compare_timelines(whole, half));
    expect_no_error(compare_timelines(half, third));
  }
}

/// The chain goes forward in time, without gaps that it does not count, and ends with the last span.
TEST(CriticalChainProperty, StepsFollowEachOther) {
  test::RandomMachine machines(6);
  Random random(7);
  for (int i = 0; i < 2 * rounds; ++i) {
    const Timeline timeline = i % 2 == 0 ? simulated(machines) : test::random_timeline(random);
    const std::vector<ChainStep> chain = find_critical_chain(timeline);
    if (timeline.spans.empty()) {
      EXPECT_TRUE(chain.empty());
      continue;
    }
    EXPECT_EQ(chain.back().until, extent_of(timeline).end);
    for (std::size_t k = 0; k < chain.size(); ++k) {
      EXPECT_LE(chain[k].begin, chain[k].until);
      EXPECT_GE(chain[k].waited.count, 0);
      if (k + 1 < chain.size()) {
        EXPECT_EQ(chain[k].until + chain[k].waited, chain[k + 1].begin);
      }
    }
  }
}

}  // namespace
}  // namespace espalier::compare
