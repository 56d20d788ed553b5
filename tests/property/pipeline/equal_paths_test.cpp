#include <gtest/gtest.h>

#include <array>
#include <string>

#include "base/check.h"
#include "planners/planner.h"
#include "schedule/ecmp.h"
#include "sim/simulate.h"
#include "topology/generate/generate.h"

// Planners place every flow on one of several equal paths, switches by a hash: the planned time is not above the mean
// over draws.

namespace espalier {
namespace {

template <class Options>
Topology generated(Result<Topology> (*generate)(const Options&), const Options& options) {
  auto made = generate(options);
  ESPALIER_CHECK(made.has_value(), "the options are in range");
  return std::move(*made);
}

double seconds_of(const Schedule& schedule, const Topology& topology) {
  sim::Options options;
  options.size = {std::int64_t{16} << 20};
  options.chunk = {std::int64_t{64} << 10};
  const auto report = sim::simulate(schedule, topology, options);
  EXPECT_TRUE(report) << report.error().message;
  return report ? report->elapsed.seconds() : 0;
}

class EqualPaths : public ::testing::TestWithParam<std::string> {};

TEST_P(EqualPaths, ArePlannedAtLeastAsWellAsTheHashDoesInTheMean) {
  LeafSpineOptions wide;
  wide.leaves = 8;
  wide.ranks_per_leaf = 4;
  wide.spines = 4;
  LeafSpineOptions narrow = wide;
  narrow.spines = 2;

  RailBoxesOptions boxes;
  boxes.boxes = 4;
  boxes.spines = 2;
  constexpr std::array kinds = {CollectiveKind::all_reduce, CollectiveKind::all_gather, CollectiveKind::all_to_all,
                                CollectiveKind::broadcast, CollectiveKind::scatter};
  constexpr std::uint64_t draws = 8;
  constexpr double about_equal = 1.03;  // Where links are equally full, latencies and turns decide.
  std::size_t compared = 0;
  for (const Topology& topology :
       {generated(generate_leaf_spine, wide), generated(generate_leaf_spine, narrow),
        generated(generate_fat_tree, FatTreeOptions{}), generated(generate_rail_boxes, boxes)}) {
    for (const CollectiveKind kind : kinds) {
      SCOPED_TRACE(topology.name() + ", " + std::string(to_string(kind)));
      const auto root = has_root(kind) ? std::optional(Rank(0)) : std::nullopt;
      const auto collective = make_collective(kind, topology.rank_count(), root);
      ASSERT_TRUE(collective);
      const auto schedule = planners::plan(topology, *collective, *planners::find_planner(GetParam()));
      if (!schedule || !has_equal_paths(*schedule, topology)) continue;
      double mean = 0;
      for (std::uint64_t seed = 0; seed < draws; ++seed) {
        mean += seconds_of(hash_flows(*schedule, topology, seed), topology) / draws;
      }
      EXPECT_LE(seconds_of(*schedule, topology), mean * about_equal);
      ++compared;
    }
  }
  EXPECT_GT(compared, 0U);
}

INSTANTIATE_TEST_SUITE_P(Planners, EqualPaths,
                         ::testing::Values("ring", "tree", "flat", "binomial", "recursive", "pairwise"),
                         [](const auto& planner) { return planner.param; });

}  // namespace
}  // namespace espalier
