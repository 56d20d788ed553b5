#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "planners/chooser.h"
#include "planners/tuning/regions.h"
#include "sim/simulate.h"
#include "tests/support/forecast/times_of.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/sanitized.h"

namespace espalier {
namespace {

using planners::Candidate;

/// Simulates, and gives up what is late or not.
test::TimesOf::Run simulate_on(const Topology& topology, bool keeps_deadlines) {
  return
      [&topology, keeps_deadlines](const Schedule& schedule, Bytes size, const Pacing& pacing, Picoseconds deadline) {
        sim::Options options;
        options.size = size;
        options.set(pacing);
        return sim::simulate_unverified_until(keeps_deadlines ? deadline : no_deadline, schedule, topology, options);
      };
}

planners::Candidates candidates_on(const Topology& topology, CollectiveKind kind) {
  planners::CandidateOptions options;
  options.for_choice = true;
  options.min_size = {1 << 10};
  const auto root = has_root(kind) ? std::optional(Rank(0)) : std::nullopt;
  auto made = planners::make_candidates(topology, *make_collective(kind, topology.rank_count(), root),
                                        planners::all_planners(), options);
  EXPECT_TRUE(made);
  return std::move(*made);
}

/// A step less is worth more than bytes where there are few of them, and no longer where there are many.
TEST(ChoiceOfSteps, OneExchangeOfInputsIsTheFastestForTheSmallest) {
  test::PlainGraph star{8, 1, {}};
  for (std::size_t rank = 0; rank < star.ranks; ++rank) {
    star.edges.push_back({rank, star.ranks, 100});
    star.edges.push_back({star.ranks, rank, 100});
  }
  const Topology topology = test::make_topology(star);
  const auto candidates = candidates_on(topology, CollectiveKind::all_reduce);
  const auto fastest = [&](Bytes size) {
    const auto choice = test::choose(candidates, size, simulate_on(topology, true));
    EXPECT_TRUE(choice);
    return choice->candidate->planner;
  };
  EXPECT_EQ(fastest({1 << 10}), "oneshot");
  EXPECT_NE(fastest({1 << 26}), "oneshot");
}

class Choice : public ::testing::TestWithParam<CollectiveKind> {};

/// Who is given up early would not have been chosen.
TEST_P(Choice, DoesNotDependOnWhatIsGivenUp) {
  Random random(31);
  for (int round = 0; round < test::random_cases(8); ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 12, true}));
    const auto candidates = candidates_on(topology, GetParam());
    for (const Bytes size : {Bytes{1 << 14}, Bytes{1 << 20}, Bytes{1 << 26}}) {
      const auto quick = test::choose(candidates, size, simulate_on(topology, true));
      const auto slow = test::choose(candidates, size, simulate_on(topology, false));
      ASSERT_TRUE(quick && slow);
      EXPECT_EQ(quick->candidate, slow->candidate) << "round " << round;
      EXPECT_EQ(quick->run.elapsed, slow->run.elapsed) << "round " << round;
      EXPECT_EQ(quick->run.chunk, slow->run.chunk) << "round " << round;
      for (const planners::Trial& trial : quick->trials) {
        if (!trial.run) continue;
        EXPECT_GE(trial.run->elapsed, quick->run.elapsed) << trial.candidate->planner;
      }
    }
  }
}

/// What is said of a candidate that was not run is so: who cannot win takes longer alone, and who has half a percent to
/// gain at most gains no more. At sizes of a few elements shares are rounded most.
TEST_P(Choice, ReasonsForNoRunHold) {
  Random random(33);
  const std::int64_t sizes[] = {4, 64, 1000, 1 << 14, 1 << 20, 12'345'676, 1 << 28};
  int unrun = 0;
  for (int round = 0; round < test::random_cases(10); ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 12, true}));
    const auto candidates = candidates_on(topology, GetParam());
    const test::TimesOf::Run simulate = simulate_on(topology, true);
    for (const std::int64_t bytes : sizes) {
      const Bytes size{bytes};
      const auto choice = test::choose(candidates, size, simulate);
      ASSERT_TRUE(choice) << choice.error().message;
      for (const planners::Trial& trial : choice->trials) {
        if (trial.run) continue;
        const Candidate& candidate = *trial.candidate;
        SCOPED_TRACE(testing::Message() << "round " << round << ", " << bytes << " B, " << candidate.planner << ", "
                                        << to_string(trial.run.error()));
        const auto alone =
            planners::find_best_pacing(candidate.chunks, size, planners::fixed_pacing(candidate.schedule, size, {}),
                                       [&](const Pacing& pacing, Picoseconds deadline) {
                                         return simulate(candidate.schedule, size, pacing, deadline);
                                       });
        ASSERT_TRUE(alone) << alone.error().message;
        const double best = choice->run.elapsed.seconds(), own = alone->elapsed.seconds();
        ++unrun;
        switch (trial.run.error()) {
          case planners::NoRun::cannot_win: EXPECT_GE(own, best); break;
          case planners::NoRun::is_near_bound: EXPECT_GE(own * planners::good_enough, best * (1 - 1e-9)); break;
          case planners::NoRun::gains_little: EXPECT_GE(own * 1.01, best); break;
          case planners::NoRun::given_up: EXPECT_GE(trial.min_time, 2 * best); break;
          case planners::NoRun::unsupported: ADD_FAILURE(); break;
        }
      }
    }
  }
  EXPECT_GT(unrun, test::random_cases(50));
}

double seconds_of(const planners::TunedSize& point, const Candidate* candidate) {
  const auto trial = std::ranges::find(point.choice.trials, candidate, &planners::Trial::candidate);
  return trial->run ? trial->run->elapsed.seconds() : trial->min_time;
}

/// In no region is there one that beats the winner at all sizes; at no size is the winner worse than the tolerance.
TEST_P(Choice, TakesNobodyWhoIsBeatenInAllOfARegion) {
  Random random(32);
  std::vector<Bytes> sizes;
  for (std::int64_t size = 1 << 12; size <= 1 << 26; size *= 4) sizes.push_back({size});
  for (int round = 0; round < test::random_cases(6); ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 12, true}));
    const auto candidates = candidates_on(topology, GetParam());
    for (const double tolerance : {0.0, 0.01, 0.1}) {
      const planners::RegionOptions options{.tolerance = tolerance};
      test::TimesOf times(candidates, simulate_on(topology, true));
      const auto regions = planners::find_regions(candidates, sizes, options, times);
      ASSERT_TRUE(regions);
      for (const planners::Region& region : *regions) {
        for (const planners::TunedSize& point : region.sizes) {
          ASSERT_EQ(point.taken, region.taken);
          EXPECT_LE(point.run().elapsed.seconds(), (1 + tolerance) * point.choice.run.elapsed.seconds() * (1 + 1e-12));
          EXPECT_GE(planners::margin_of(point).factor, 1);
        }
        for (const Candidate& other : candidates.made) {
          const bool beats = &other != region.taken && std::ranges::all_of(region.sizes, [&](const auto& point) {
            return seconds_of(point, &other) < point.run().elapsed.seconds();
          });
          const bool ran = std::ranges::all_of(region.sizes, [&](const planners::TunedSize& point) {
            return std::ranges::find(point.choice.trials, &other, &planners::Trial::candidate)->run.has_value();
          });
          EXPECT_FALSE(beats && ran) << other.planner << " beats " << region.taken->planner << " in round " << round;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, Choice,
                         ::testing::Values(CollectiveKind::all_gather, CollectiveKind::all_reduce,
                                           CollectiveKind::broadcast, CollectiveKind::all_to_all),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace espalier
