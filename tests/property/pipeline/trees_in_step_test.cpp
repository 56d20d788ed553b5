#include <gtest/gtest.h>

#include <string>

#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "sim/simulate.h"
#include "tests/support/planner_cases.h"

// Plans whose loads are at the bound run at the bound: chunks are parts of slices, so no transfer waits for the tail of
// another, and parts that part ways later have channels of their own (docs/decisions/0011).

namespace espalier {
namespace {

/// Six ranks and two switches, no two links alike: every tree of an all_reduce carries slices of its own mix.
Topology irregular() {
  test::PlainGraph graph;
  graph.ranks = 6;
  graph.switches = 2;
  graph.edges = {{0, 1, 7}, {0, 3, 6}, {1, 4, 14}, {1, 5, 2}, {1, 7, 6},  {2, 1, 6}, {2, 3, 2}, {2, 5, 1},
                 {2, 6, 6}, {3, 0, 5}, {3, 1, 2},  {3, 5, 1}, {3, 6, 15}, {4, 2, 1}, {4, 3, 5}, {4, 5, 12},
                 {4, 7, 2}, {5, 0, 6}, {5, 1, 1},  {5, 2, 8}, {5, 3, 1},  {5, 7, 9}, {6, 0, 2}, {6, 1, 6},
                 {6, 3, 2}, {6, 4, 6}, {6, 5, 7},  {7, 2, 6}, {7, 3, 7},  {7, 5, 2}, {7, 6, 2}};
  return test::make_topology(graph);
}

/// The part of the bound that a plan of 256 MiB reaches.
double part_of_bound(const Topology& topology, CollectiveKind kind, const std::string& planner) {
  Collective collective{kind, static_cast<std::uint32_t>(topology.rank_count()), {}};
  if (has_root(kind)) collective.root = Rank(0);
  const auto schedule = planners::plan(topology, collective, *planners::find_planner(planner));
  EXPECT_TRUE(schedule) << schedule.error().message;
  sim::Options options;
  options.size = {std::int64_t{256} << 20};
  options.chunk = {std::int64_t{256} << 10};
  const auto report = sim::simulate(*schedule, topology, options);
  EXPECT_TRUE(report) << report.error().message;
  const double least = schedule->bound->time_per_byte.convert_to<double>() * static_cast<double>(options.size.count);
  return least / report->elapsed.seconds();
}

TEST(TreesInStep, RunAtTheBoundOnAnIrregularNetwork) {
  const Topology topology = irregular();
  EXPECT_GT(part_of_bound(topology, CollectiveKind::all_reduce, "packing"), 0.97);  // 0.61 cut by bytes.
  EXPECT_GT(part_of_bound(topology, CollectiveKind::all_gather, "packing"), 0.98);
  EXPECT_GT(part_of_bound(topology, CollectiveKind::all_to_all, "lp"), 0.98);  // 0.89 on one channel.
  EXPECT_GT(part_of_bound(topology, CollectiveKind::gather, "packing"), 0.98);
  EXPECT_GT(part_of_bound(topology, CollectiveKind::scatter, "packing"), 0.98);
}

}  // namespace
}  // namespace espalier
