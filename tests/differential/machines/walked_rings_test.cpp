#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/check.h"
#include "planners/planner.h"
#include "planners/ring/ring_walks.h"
#include "sim/contention_free/walk_ring.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

/// Shipped machines up to 72 ranks, and rings of ranks on both sides of where the command begins to walk.
std::vector<Topology> make_machines() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(ESPALIER_SOURCE_DIR "/configs")) {
    if (entry.path().extension() == ".yaml") files.push_back(entry.path());
  }
  std::ranges::sort(files);
  std::vector<Topology> machines;
  constexpr std::size_t largest = 72;
  for (const auto& file : files) {
    TopologyReading reading = read_topology_file(file);
    ESPALIER_CHECK(reading.topology.has_value(), "a shipped machine reads");
    if (reading.topology->rank_count() <= largest) machines.push_back(*std::move(reading.topology));
  }
  for (const std::int64_t ranks : {5, 64, 127, 128, 130}) {
    for (const bool one_way : {false, true}) {
      RingOptions options;
      options.ranks = ranks;
      options.one_way = one_way;
      machines.push_back(*generate_ring(options));
    }
  }
  return machines;
}

struct Counts {
  int walked = 0;
  int refused = 0;  ///< Not walkable, or not what the stored schedule gives.
};

void compare(const Topology& topology, const planners::WalkedRings& rings, const Schedule& schedule, Counts& counts) {
  const planners::ChunkModel chunks(schedule, topology);
  const auto simulator = sim::Simulator::make(schedule, topology);
  ASSERT_TRUE(simulator);
  for (const std::int64_t size : {std::int64_t{4096}, std::int64_t{1'000'000}, std::int64_t{1} << 26U}) {
    EXPECT_EQ(rings.chunks.choose({size}), chunks.choose({size}));
    EXPECT_DOUBLE_EQ(rings.chunks.min_time({size}), chunks.min_time({size}));
    for (const bool is_whole : {true, false}) {
      for (const std::int32_t jitter_ppm : {0, 20'000}) {
        sim::Options options;
        options.size = {size};
        options.chunk = is_whole ? Bytes{size} : chunks.choose({size});
        options.conditions = {.jitter_ppm = jitter_ppm, .seed = 7};
        options.launch = {1000};
        const auto walked = sim::simulate_rings(rings.walks, topology, options);
        if (!walked || !walked->is_stored_form) {
          EXPECT_TRUE(walked || walked.error().code == ErrorCode::unsupported);
          ++counts.refused;
          continue;
        }
        ++counts.walked;
        const auto stored = simulator->run(options);
        ASSERT_TRUE(stored);
        EXPECT_EQ(walked->report.elapsed, stored->elapsed);
        EXPECT_EQ(walked->report.events, stored->events);
        EXPECT_EQ(walked->report.links, stored->links);
      }
    }
  }
}

TEST(WalkedRings, AreWhatThePlannerStores) {
  Counts counts;
  for (const Topology& topology : make_machines()) {
    for (const CollectiveKind kind :
         {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      SCOPED_TRACE(topology.name() + " " + std::string(to_string(kind)));
      const auto collective = make_collective(kind, topology.rank_count(), std::nullopt);
      ASSERT_TRUE(collective);
      const auto schedule = planners::plan_unbounded(topology, *collective, *planners::find_planner("ring"));
      const auto rings = planners::plan_ring_walks(topology, *collective);
      ASSERT_EQ(schedule.has_value(), rings.has_value());
      if (schedule) compare(topology, *rings, *schedule, counts);
    }
  }
  EXPECT_GT(counts.walked, 200);
  EXPECT_GT(counts.refused, 200);
}

}  // namespace
}  // namespace espalier
