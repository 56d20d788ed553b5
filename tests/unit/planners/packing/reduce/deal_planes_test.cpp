#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "planners/packing/pack_roots.h"
#include "planners/packing/reduce/even_layers.h"
#include "planners/packing/reduce/parallel_switches.h"
#include "tests/support/root_trees.h"

namespace espalier::planners {
namespace {

using test::gigabytes;
using test::shape_at_bound;
using test::switch_planes;

/// Two boards of `half` ranks, each rank with a cable to each of `planes` switches of its board, and trunks between the
/// boards' switches that carry all of a board.
Topology two_boards(std::size_t half, std::size_t planes) {
  TopologyBuilder builder;
  std::vector<NodeId> members;
  for (std::size_t r = 0; r < 2 * half; ++r) members.push_back(builder.rank("g" + std::to_string(r)));
  for (std::size_t p = 0; p < planes; ++p) {
    std::vector<NodeId> ends;
    for (std::size_t board = 0; board < 2; ++board) {
      const std::string name = "s" + std::to_string(board) + "." + std::to_string(p);
      ends.push_back(builder.forwarder(NodeKind::switch_node, name));
      for (std::size_t r = 0; r < half; ++r) builder.cable(members[board * half + r], ends.back(), gigabytes(1));
    }
    builder.cable(ends[0], ends[1], gigabytes(static_cast<std::int64_t>(half)));
  }
  return *std::move(builder).build("boards");
}

/// Every rank's trees in a plan of all roots: verified, at the bound.
ScheduleShape shape_of_all_roots(const Topology& topology, Direction direction) {
  const bool inward = direction == Direction::reversed;
  const auto kind = inward ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather;
  const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt);
  auto trees = pack_roots(make_problem(topology, direction, Rank(), {}, PlanContext{}));
  EXPECT_TRUE(trees);
  if (!trees) return {};
  Forest forest;
  (inward ? forest.in_trees : forest.out_trees) = *std::move(trees);
  return shape_at_bound(topology, collective, forest);
}

TEST(EvenLayers, OneWhereTheLanesDivideTheThings) {
  const auto layers = even_layers(12, 4);
  ASSERT_EQ(layers.size(), 1U);
  EXPECT_EQ(layers.front().part, 1);
  EXPECT_EQ(layers.front().counts, (std::vector<std::int64_t>{3, 3, 3, 3}));
}

TEST(EvenLayers, TwoFor71ThingsIn18Planes) {
  const auto layers = even_layers(71, 18);
  ASSERT_EQ(layers.size(), 2U);
  EXPECT_EQ(layers.front().part, make_rational(71, 72));
  EXPECT_EQ(layers.back().counts.back(), 71);
}

TEST(EvenLayers, AllLanesGetEquallyMuch) {
  for (std::int64_t things = 1; things <= 40; ++things) {
    for (std::size_t planes = 1; planes <= 20; ++planes) {
      std::vector<Rational> load(planes, 0);
      Rational parts = 0;
      for (const PlaneLayer& layer : even_layers(things, planes)) {
        EXPECT_GT(layer.part, 0);
        EXPECT_EQ(std::accumulate(layer.counts.begin(), layer.counts.end(), std::int64_t{0}), things);
        for (std::size_t plane = 0; plane < planes; ++plane) load[plane] += layer.part * layer.counts[plane];
        parts += layer.part;
      }
      EXPECT_EQ(parts, 1);
      for (const Rational& each : load) EXPECT_EQ(each, make_rational(things, static_cast<std::int64_t>(planes)));
    }
  }
}

TEST(ParallelSwitches, PlanesAreParallel) {
  const Topology topology = switch_planes(4, 3);
  const ParallelSwitches parallel(topology);
  EXPECT_EQ(parallel.group_count(), 1U);
  for (std::size_t l = 0; l < topology.link_count(); ++l) {
    ASSERT_EQ(parallel.planes(LinkId(l)), 3U);
    std::set<std::uint32_t> planes;
    for (std::size_t plane = 0; plane < 3; ++plane) {
      const LinkId other = parallel.in_plane(LinkId(l), plane);
      planes.insert(other.value());
      const NodeId tail = topology.link(LinkId(l)).tail;
      EXPECT_TRUE(!topology.node(tail).is_rank || topology.link(other).tail == tail);
    }
    EXPECT_EQ(planes.size(), 3U);
  }
}

TEST(ParallelSwitches, UnlikeSwitchesAreNone) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  for (const std::int64_t rate : {1, 2}) {
    const NodeId plane = builder.forwarder(NodeKind::switch_node, "s" + std::to_string(rate));
    builder.cable(a, plane, gigabytes(rate));
    builder.cable(b, plane, gigabytes(rate));
  }
  EXPECT_TRUE(ParallelSwitches(*std::move(builder).build("unlike")).empty());
}

TEST(ParallelSwitches, PlanesOfSeveralSwitches) {
  const Topology topology = two_boards(3, 4);
  const ParallelSwitches parallel(topology);
  EXPECT_EQ(parallel.group_count(), 1U);
  for (std::size_t l = 0; l < topology.link_count(); ++l) EXPECT_EQ(parallel.planes(LinkId(l)), 4U);
}

/// One star a rank, dealt out: two ways where the planes do not divide the star's edges.
TEST(DealPlanes, StarsOverPlanes) {
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const ScheduleShape wide = shape_of_all_roots(switch_planes(72, 18), direction);
    EXPECT_EQ(wide.trees_per_root, 1U);
    EXPECT_EQ(wide.routed_trees_per_root, 2U);
    EXPECT_EQ(wide.height, 1U);
    EXPECT_EQ(shape_of_all_roots(switch_planes(13, 6), direction).routed_trees_per_root, 1U);
  }
}

TEST(DealPlanes, StarsOverPlanesOfTwoSwitches) {
  const ScheduleShape shape = shape_of_all_roots(two_boards(4, 3), Direction::forward);
  EXPECT_EQ(shape.height, 1U);
  EXPECT_EQ(shape.routed_trees_per_root, 2U);
}

TEST(DealPlanes, AtTheBoundForAllSizes) {
  Random random(9);
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const auto ranks = static_cast<std::size_t>(random.between(3, 14));
    const auto planes = static_cast<std::size_t>(random.between(1, 7));
    const Direction direction = round % 2 == 0 ? Direction::forward : Direction::reversed;
    const ScheduleShape shape = shape_of_all_roots(switch_planes(ranks, planes), direction);
    EXPECT_EQ(shape.height, 1U);
    EXPECT_LE(shape.routed_trees_per_root, 4U);
  }
}

/// A star of two edges fits on two planes, two such stars do not.
TEST(DealPlanes, NothingWhereTreesDoNotFit) {
  const Topology topology = switch_planes(3, 2);
  const ParallelSwitches parallel(topology);
  const std::vector<std::int64_t> capacities(topology.link_count(), 1);
  Arborescence star{Rank(0), 1, {}};
  for (std::size_t to : {1U, 2U}) {
    star.edges.push_back({Rank(0),
                          Rank(to),
                          {topology.links_between(NodeId(0), NodeId(3)).front(),
                           topology.links_between(NodeId(3), NodeId(to)).front()}});
  }
  EXPECT_TRUE(parallel.lift(capacities, std::vector{star}, 1));
  EXPECT_FALSE(parallel.lift(capacities, std::vector{star, star}, 1));
}

}  // namespace
}  // namespace espalier::planners
