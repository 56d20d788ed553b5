#include "planners/pacing_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <vector>

#include "base/random.h"
#include "planners/chunking.h"
#include "planners/planner.h"
#include "planners/ring/ring_walks.h"
#include "sim/simulate.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/planner_cases.h"
#include "tests/support/sanitized.h"
#include "topology/generate/generate.h"

// The cut that is chosen loses next to nothing to the best of many, and with it plans run at their bound.

namespace espalier {
namespace {

class Runs {
 public:
  Runs(const Topology& topology, const Schedule& schedule, Bytes size)
      : simulator_(*sim::Simulator::make(schedule, topology)), size_(size) {}

  Result<std::optional<RunReport>> operator()(const Pacing& pacing, Picoseconds deadline) const {
    return simulator_.run_until(options(pacing), deadline);
  }

  [[nodiscard]] Result<sim::Report> whole(const Pacing& pacing) const { return simulator_.run(options(pacing)); }

 private:
  [[nodiscard]] sim::Options options(const Pacing& pacing) const {
    sim::Options options;
    options.size = size_;
    options.set(pacing);
    return options;
  }

  sim::Simulator simulator_;
  Bytes size_;
};

class PacingSearch : public ::testing::TestWithParam<CollectiveKind> {};

TEST_P(PacingSearch, FindsWhatIsAsFastAsTheBestOfMany) {
  const char* planner = GetParam() == CollectiveKind::all_to_all ? "lp" : "packing";
  constexpr Bytes size{std::int64_t{128} << 20U};
  Random random(20'261'123);
  for (int round = 0; round < test::random_cases(15); ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {8, 3, 12, true}));
    Collective collective{GetParam(), static_cast<std::uint32_t>(topology.rank_count()), {}};
    if (has_root(GetParam())) collective.root = Rank(0);
    const auto schedule = planners::plan(topology, collective, *planners::find_planner(planner));
    ASSERT_TRUE(schedule) << schedule.error().message;
    const planners::ChunkModel chunks(*schedule, topology);
    const Runs run(topology, *schedule, size);
    const auto chosen = planners::find_best_pacing(chunks, size, {}, std::cref(run));
    ASSERT_TRUE(chosen) << chosen.error().message;
    planners::FixedPacing side_by_side;
    side_by_side.threads = 4;
    const auto same = planners::find_best_pacing(chunks, size, side_by_side, std::cref(run));
    ASSERT_TRUE(same);
    EXPECT_EQ((Pacing{same->chunk, same->ahead}), (Pacing{chosen->chunk, chosen->ahead}));
    EXPECT_EQ(same->elapsed, chosen->elapsed);
    for (std::int64_t chunk = 8 << 10U; chunk <= 32 << 20U; chunk *= 4) {
      for (const std::uint32_t ahead : {0U, 8U}) {
        const auto fixed = run.whole({{chunk}, ahead});
        ASSERT_TRUE(fixed);
        EXPECT_LE(chosen->elapsed.seconds(), 1.02 * fixed->elapsed.seconds())
            << "round " << round << ": chunks of " << chosen->chunk.count << ", " << chosen->ahead
            << " rounds ahead, against " << chunk << ", " << ahead;
      }
    }
    EXPECT_GT(chunks.pipelined_time(size) / chosen->elapsed.seconds(),
              GetParam() == CollectiveKind::all_to_all ? 0.98 : 0.985)
        << "round " << round;
  }
}

/// Where runs take seconds, those that the model says lose are left out.
TEST(DearCuts, WholeTransfersAreRunOnlyWhereTheyAreFineEnough) {
  constexpr std::uint32_t ranks = 2048;
  const Topology topology = *generate_ring({.ranks = ranks});
  const auto rings = planners::plan_ring_walks(topology, {CollectiveKind::all_reduce, ranks, {}});
  ASSERT_TRUE(rings) << rings.error().message;
  const planners::ChunkModel& chunks = rings->chunks;
  std::vector<Bytes> run;
  const auto search = [&](Bytes size) {
    run.clear();
    const auto best = planners::find_best_pacing(chunks, size, {}, [&](const Pacing& pacing, Picoseconds) {
      run.push_back(pacing.chunk);
      RunReport report;
      report.size = size;
      report.chunk = pacing.chunk;
      const double seconds = chunks.filled_time(size, pacing.chunk);
      report.elapsed = {static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second))};
      return Result<std::optional<RunReport>>(report);
    });
    return best->chunk;
  };
  // 256 KiB is a shard on each of the two rings; a quarter of it is as fine as a dear search begins.
  const Bytes large{1 << 30};
  ASSERT_TRUE(planners::exceeds_hop_budget(chunks, large));
  EXPECT_LE(search(large), Bytes{64 << 10});
  EXPECT_EQ(run.front(), Bytes{64 << 10});
  EXPECT_LE(*std::ranges::max_element(run), Bytes{64 << 10});
  // Shards of 256 bytes have no smaller chunks.
  EXPECT_EQ(search(Bytes{1 << 20}), planners::ChunkModel::smallest_chunk);
  EXPECT_EQ(run.size(), 1U);
}

/// Of more than 64 ranks people wait some seconds for the last hundredth of the bound.
TEST(LargeCuts, TheLastHundredthIsWorthMoreRuns) {
  for (const std::uint32_t ranks : {48U, 96U}) {
    SCOPED_TRACE(ranks);
    const auto rings =
        planners::plan_ring_walks(*generate_ring({.ranks = ranks}), {CollectiveKind::all_gather, ranks, {}});
    ASSERT_TRUE(rings) << rings.error().message;
    const planners::ChunkModel& chunks = rings->chunks;
    const Bytes size{std::int64_t{1} << 40};
    double hops = 0;
    // The smaller the chunk the better: a hundredth is lost with 20 million chunks times links.
    const auto run = [&](const Pacing& pacing, Picoseconds) {
      const double run_hops = chunks.chunk_hops(size, pacing.chunk);
      hops += run_hops;
      RunReport report;
      report.size = size;
      report.chunk = pacing.chunk;
      report.ahead = pacing.ahead;
      const double seconds = chunks.min_time(size) * (1 + 0.01 * 20e6 / run_hops);
      report.elapsed = {static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second))};
      return Result<std::optional<RunReport>>(report);
    };
    const auto best = planners::find_best_pacing(chunks, size, {}, run);
    const double reached = chunks.min_time(size) / best->elapsed.seconds();
    EXPECT_EQ(reached >= 1 / 1.01, ranks == 96U) << reached;
    EXPECT_LE(hops, ranks == 96U ? 72e6 : 16e6);
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, PacingSearch,
                         ::testing::Values(CollectiveKind::all_reduce, CollectiveKind::all_gather,
                                           CollectiveKind::broadcast, CollectiveKind::all_to_all),
                         [](const auto& param) { return std::string(to_string(param.param)); });

}  // namespace
}  // namespace espalier
