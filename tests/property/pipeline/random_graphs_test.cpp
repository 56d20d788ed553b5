#include <gtest/gtest.h>

#include "base/check.h"
#include "base/random.h"
#include "tests/support/pipeline.h"
#include "tests/support/sanitized.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

constexpr int graph_count = test::random_cases(1000);

/// A random machine: one to ten ranks, with and without switches, one-way and unbalanced ones among them.
Topology random_machine(std::uint64_t seed) {
  Random random(seed);
  RandomOptions options;
  options.ranks = random.between(2, 10);
  options.switches = random.below(2) == 0 ? 0 : random.between(1, 4);
  options.extra = random.between(0, 8);
  options.one_way = random.below(4) == 0;
  options.balanced = random.below(4) != 0;
  options.seed = random.next();
  auto topology = generate_random(options);
  ESPALIER_CHECK(topology.has_value(), "random options are in range");
  return std::move(*topology);
}

/// What the graph `seed` tries: one collective in turn, by every planner that makes it.
void try_graph(std::uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Topology topology = random_machine(seed);
  const CollectiveKind kind = all_collective_kinds[seed % all_collective_kinds.size()];
  Random random(seed ^ 0x5EEDU);
  const std::optional<Rank> root =
      has_root(kind) ? std::optional(Rank(random.below(topology.rank_count()))) : std::nullopt;
  const auto collective = make_collective(kind, topology.rank_count(), root);
  ASSERT_TRUE(collective);
  const auto bound = planners::compute_bound(topology, *collective);
  ASSERT_TRUE(bound) << bound.error().message;
  int planned = 0;
  for (const planners::Planner& planner : planners::all_planners()) {
    SCOPED_TRACE(std::string(to_string(kind)) + " by " + std::string(planner.name));
    const auto schedule = planners::plan(topology, *collective, planner);
    if (!schedule) {
      EXPECT_FALSE(schedule.error().help.empty()) << schedule.error().message;
      continue;
    }
    ++planned;
    test::expect_schedule_right(*schedule, topology, bound->time_per_byte);
  }
  EXPECT_GT(planned, 0) << "no planner makes " << to_string(kind);
}

class RandomGraphs : public ::testing::TestWithParam<int> {};

TEST_P(RandomGraphs, PlanVerifyInterpretSimulate) {
  constexpr int batches = 10;
  for (int i = GetParam(); i < graph_count; i += batches) {
    try_graph(static_cast<std::uint64_t>(i));
    if (HasFatalFailure()) return;
  }
}

INSTANTIATE_TEST_SUITE_P(Batches, RandomGraphs, ::testing::Range(0, 10));

}  // namespace
}  // namespace espalier
