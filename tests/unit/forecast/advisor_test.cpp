#include "forecast/advisor.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace espalier::forecast
