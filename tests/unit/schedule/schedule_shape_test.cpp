#include "schedule/schedule_shape.h"

#include <gtest/gtest.h>

#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

using test::mesh_of;
using test::ring_of;
using test::ring_schedule;
using test::RouteTable;

TEST(ScheduleShape, RingsHaveATreePerRankAndDirection) {
  const Topology ring = ring_of(4);
  // A path over the other three ranks from each root; all_reduce has one to it as well.
  const ScheduleShape gather = measure_shape(ring_schedule(ring, CollectiveKind::all_gather));
  EXPECT_EQ(gather.trees, 4U);
  EXPECT_EQ(gather.trees_per_root, 1U);
  EXPECT_EQ(gather.height, 3U);
  const ScheduleShape both = measure_shape(ring_schedule(ring, CollectiveKind::all_reduce));
  EXPECT_EQ(both.trees, 8U);
  EXPECT_EQ(both.trees_per_root, 1U);
  EXPECT_EQ(both.height, 3U);
}

TEST(ScheduleShape, CountsTheTreesOfTheRootThatHasMost) {
  const Topology mesh = mesh_of(3);
  const RouteTable routes(mesh);
  const auto edge = [&](std::size_t parent, std::size_t child) {
    return TreeEdge{Rank(parent), Rank(child), routes.between(Rank(parent), Rank(child))};
  };
  Forest forest;
  forest.out_trees.push_back({Rank(0), 1, {edge(0, 1), edge(0, 2)}});
  forest.out_trees.push_back({Rank(0), 1, {edge(0, 1), edge(1, 2)}});
  forest.out_trees.push_back({Rank(1), 2, {edge(1, 0), edge(1, 2)}});
  forest.out_trees.push_back({Rank(2), 2, {edge(2, 0), edge(2, 1)}});
  const auto collective = make_collective(CollectiveKind::all_gather, 3, std::nullopt);
  const ScheduleShape shape = measure_shape(*schedule_from_trees(*collective, mesh, "test", forest));
  EXPECT_EQ(shape.trees, 4U);
  EXPECT_EQ(shape.trees_per_root, 2U);
  EXPECT_EQ(shape.height, 2U);
}

/// The same tree over two links is one tree, and two ways.
TEST(ScheduleShape, CountsWaysOverLinks) {
  std::vector<Node> nodes = {{.id = "a", .kind = NodeKind::gpu, .is_rank = true},
                             {.id = "b", .kind = NodeKind::gpu, .is_rank = true}};
  std::vector<Link> links(2);
  for (Link& link : links) {
    link.tail = NodeId(0);
    link.head = NodeId(1);
    link.nominal = Bandwidth{1'000'000'000};
  }
  const Topology topology = *Topology::make("pair", std::move(nodes), std::move(links));
  Forest forest;
  for (std::size_t l = 0; l < 2; ++l) forest.out_trees.push_back({Rank(0), 1, {{Rank(0), Rank(1), {LinkId(l)}}}});
  const auto collective = make_collective(CollectiveKind::broadcast, 2, Rank(0));
  const ScheduleShape shape = measure_shape(*schedule_from_trees(*collective, topology, "test", forest));
  EXPECT_EQ(shape.trees_per_root, 1U);
  EXPECT_EQ(shape.routed_trees_per_root, 2U);
}

TEST(ScheduleShape, NothingHasNoTrees) {
  const ScheduleShape shape = measure_shape(Schedule());
  EXPECT_EQ(shape.trees, 0U);
  EXPECT_EQ(shape.trees_per_root, 0U);
  EXPECT_EQ(shape.height, 0U);
}

}  // namespace
}  // namespace espalier
