#include "planners/packing/find/finders.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planners/packing/select.h"
#include "tests/support/root_trees.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::gigabytes;
using test::shape_at_bound;
using test::switch_planes;

Result<Trees> proposed_by(std::string_view name, const PackingProblem& problem) {
  return std::ranges::find(finders(), name, &Finder::name)->propose(problem, {});
}

ScheduleShape shape_of(const Topology& topology, Direction direction, Rank root) {
  const PlanContext context;
  const PlanningProblem planning(topology);
  const PackingProblem problem = make_problem(planning, direction, root, {}, context);
  std::optional<std::vector<Arborescence>> best;
  for (const char* finder : {"grown", "grown planes"}) {
    if (auto trees = proposed_by(finder, problem)) select_better(topology, best, *std::move(trees));
  }
  EXPECT_TRUE(best);
  return best ? shape_at_bound(topology, direction, root, *best) : ScheduleShape();
}

/// The root sends everything once, to one relay per tree. A relay of k equal trees sends its part to 14 others, of 1/k
/// each, so 14 trees of two hops are enough, and fewer cannot do it.
TEST(GrownTrees, OneSwitch) {
  const Topology topology = switch_planes(16);
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const ScheduleShape shape = shape_of(topology, direction, Rank(3));
    EXPECT_EQ(shape.height, 2U);
    EXPECT_EQ(shape.trees_per_root, 14U);
  }
}

/// Two hops would take 70 trees; sixteen reach 1 + 16 + 256 ranks in three.
TEST(GrownTrees, WideSwitch) {
  const Topology topology = switch_planes(72);
  const ScheduleShape shape = shape_of(topology, Direction::forward, Rank(0));
  EXPECT_EQ(shape.height, 3U);
  EXPECT_LE(shape.trees_per_root, 16U);
}

/// A path is no wider than its links, and every rank is behind 18 of them: 18 routed trees, of fewer trees.
TEST(GrownTrees, EqualPlanesAreParallel) {
  const Topology topology = switch_planes(12, 18);
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const ScheduleShape shape = shape_of(topology, direction, Rank(0));
    EXPECT_LE(shape.height, 3U);
    EXPECT_LE(shape.trees_per_root, 16U);
    EXPECT_EQ(shape.routed_trees_per_root, 18U);
  }
}

/// With four planes no more than 16 routed trees are needed.
TEST(GrownTrees, FewRoutedTreesOverFewPlanes) {
  for (std::size_t ranks = 2; ranks <= 12; ++ranks) {
    const Topology topology = switch_planes(ranks, 4);
    EXPECT_LE(shape_of(topology, Direction::forward, Rank(1)).routed_trees_per_root, 16U) << ranks;
  }
}

/// Four directions, four trees; the farthest rank is four hops away.
TEST(GrownTrees, Torus) {
  const Topology topology = *generate_torus({{4, 4}, {}});
  const ScheduleShape shape = shape_of(topology, Direction::forward, Rank(5));
  EXPECT_EQ(shape.trees_per_root, 4U);
  EXPECT_LE(shape.height, 6U);
}

/// Exchanges attach ranks below ones that came later; wide trees are dealt out from the root on all the same.
TEST(GrownTrees, WideTreesAreInOrderAfterExchanges) {
  const Topology topology =
      *generate_leaf_spine({.leaves = 8, .ranks_per_leaf = 8, .spines = 4, .oversubscription = 4});
  const ScheduleShape shape = shape_of(topology, Direction::forward, Rank(0));
  EXPECT_LE(shape.routed_trees_per_root, 16U);
}

TEST(GrownTrees, NothingWhereANodeLimits) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  Node hub{.id = "s", .kind = NodeKind::switch_node, .is_rank = false};
  hub.bandwidth = {1'000'000'000};
  const NodeId s = builder.node(std::move(hub));
  builder.cable(a, s, gigabytes(2));
  builder.cable(b, s, gigabytes(2));
  const Topology limited = *std::move(builder).build("limited");
  const PlanContext context;
  EXPECT_FALSE(proposed_by("grown", make_problem(limited, Direction::forward, Rank(0), {}, context)));
}

TEST(GrownTrees, NoneAreWideWithoutParallelSwitches) {
  const Topology topology = switch_planes(4);
  const PlanContext context;
  EXPECT_FALSE(proposed_by("grown planes", make_problem(topology, Direction::forward, Rank(0), {}, context)));
}

/// Boxes of eight on rails: each tree enters a box once and is handed to its ranks at once. From 16 boxes on few trees
/// need three boxes one after the other: in, and two hops for each.
TEST(MachineTrees, BoxesOnRails) {
  const Topology topology = *generate_rail_boxes({.boxes = 16, .spines = 4});
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const PlanContext context;
    const PlanningProblem planning(topology);
    PackingProblem problem = make_problem(planning, direction, Rank(9), {}, context);
    const auto trees = proposed_by("machines", problem);
    ASSERT_TRUE(trees);
    const ScheduleShape shape = shape_at_bound(topology, direction, Rank(9), *trees);
    EXPECT_LE(shape.trees_per_root, 16U);
    EXPECT_LE(shape.height, 7U);
    problem.cut.capacity *= 2;
    EXPECT_FALSE(proposed_by("machines", problem));
  }
}

/// Where no node says which machine it sits in, the rates tell.
TEST(MachineTrees, BoxesWithoutNames) {
  const Topology named = *generate_rail_boxes({.boxes = 16, .spines = 4});
  std::vector<Node> nodes(named.nodes().begin(), named.nodes().end());
  for (Node& node : nodes) node.host.clear();
  std::vector<Link> links;
  for (std::size_t i = 0; i < named.link_count(); ++i) links.push_back(named.link(LinkId(i)));
  const Topology topology = *Topology::make("boxes", std::move(nodes), std::move(links));
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const PlanContext context;
    const PlanningProblem planning(topology);
    const auto trees = proposed_by("machines", make_problem(planning, direction, Rank(9), {}, context));
    ASSERT_TRUE(trees);
    EXPECT_LE(shape_at_bound(topology, direction, Rank(9), *trees).height, 7U);
  }
}

TEST(MachineTrees, NothingWithoutMachines) {
  const Topology topology = switch_planes(4);
  const PlanContext context;
  EXPECT_FALSE(proposed_by("machines", make_problem(topology, Direction::forward, Rank(0), {}, context)));
}

}  // namespace
}  // namespace espalier::planners
