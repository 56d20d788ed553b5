#include "forecast/sources/advisor.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>

#include "planners/chunking.h"
#include "topology/generate/generate.h"

namespace espalier::forecast {
namespace {

constexpr Bytes large{25 << 20};

SourcedSchedule advise_on(const Topology& topology, CollectiveKind kind, bool shares_memory) {
  AdvisorOptions options;
  options.shares_memory = shares_memory;
  Advisor advisor(topology, options);
  Collective collective;
  collective.kind = kind;
  collective.rank_count = static_cast<std::uint32_t>(topology.rank_count());
  return advisor.advise(collective, large).value();
}

TEST(Advisor, WhereLinksTieSharedMemoryDecidesForFewWaits) {
  for (const std::int64_t ranks : {3, 4, 8}) {
    const Topology topology = generate_fully_connected({.ranks = ranks, .wire = {}}).value();
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter}) {
      const SourcedSchedule advised = advise_on(topology, kind, true);
      const double steps = kind == CollectiveKind::all_reduce ? 2 : 1;  // A ring takes ranks - 1 times as many.
      const double hop = generate_fully_connected({.ranks = 2, .wire = {}})->links().front().latency.seconds();
      EXPECT_LE(planners::ChunkModel(*advised.schedule, topology).latency(), steps * hop + 1e-12)
          << to_string(kind) << " on " << ranks << " ranks: " << advised.schedule->algorithm;
    }
  }
}

TEST(Advisor, SharedMemoryCostsLinksNoMoreThanATie) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto topology = generate_random({.ranks = 6, .seed = seed}).value();
    for (const CollectiveKind kind : {CollectiveKind::all_reduce, CollectiveKind::all_gather}) {
      const SourcedSchedule fastest = advise_on(topology, kind, false);
      const SourcedSchedule shared = advise_on(topology, kind, true);
      const planners::ChunkModel of_fastest(*fastest.schedule, topology);
      const planners::ChunkModel of_shared(*shared.schedule, topology);
      EXPECT_LE(of_shared.pipelined_time(large), 1.02 * of_fastest.pipelined_time(large)) << "seed " << seed;
      EXPECT_LE(of_shared.latency(), of_fastest.latency()) << "seed " << seed;
    }
  }
}

/// What runs there costs decides, whatever links say: each candidate in turn is made the quickest, by much.
TEST(Advisor, TakesWhatIsQuickestWhereItRuns) {
  const Topology topology = generate_fully_connected({.ranks = 4, .wire = {}}).value();
  Collective collective;
  collective.rank_count = 4;
  for (const std::string wanted : {"ring", "tree", "recursive", "packing"}) {
    AdvisorOptions options;
    options.seconds_there = [&](const planners::Candidate& candidate, Bytes) -> Result<double> {
      if (candidate.planner == "flat") return fail(ErrorCode::unsupported, "does not run there");
      return candidate.planner == wanted ? 1e-6 : 1.2e-6;
    };
    Advisor advisor(topology, options);
    EXPECT_EQ(advisor.advise(collective, large)->schedule->algorithm, wanted);
  }
}

/// Predictions that are less than a tenth apart leave it to the loads: of ring and one tree, ring's are least.
TEST(Advisor, WhereRunsTakeAboutAsLongLoadsDecide) {
  const Topology topology = generate_ring({.ranks = 5}).value();
  Collective collective;
  collective.rank_count = 5;
  for (const auto& [tree, wanted] : {std::pair(0.95e-6, "ring"), std::pair(0.85e-6, "tree")}) {
    AdvisorOptions options;
    options.seconds_there = [tree = tree](const planners::Candidate& candidate, Bytes) -> Result<double> {
      if (candidate.planner == "ring") return 1e-6;
      return candidate.planner == "tree" ? tree : 2e-6;
    };
    Advisor advisor(topology, options);
    EXPECT_EQ(advisor.advise(collective, large)->schedule->algorithm, wanted);
  }
}

}  // namespace
}  // namespace espalier::forecast
