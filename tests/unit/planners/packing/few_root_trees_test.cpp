#include "planners/packing/few_root_trees.h"

#include <gtest/gtest.h>

#include <tuple>

#include "planners/bounds/cut_bound.h"
#include "planners/packing/tree_packing.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "tests/support/root_trees.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

using testing::shape_at_bound;
using testing::switch_planes;

/// 15 trees of two hops become nine or fewer of three.
TEST(FewRootTrees, OneSwitch) {
  const Topology topology = switch_planes(16);
  std::vector<Arborescence> stars;
  for (std::size_t relay = 1; relay < 16; ++relay) {
    Arborescence& tree = stars.emplace_back();
    tree.root = Rank(0);
    tree.edges.push_back({Rank(0), Rank(relay), {LinkId(0), LinkId(2 * relay + 1)}});
    for (std::size_t r = 1; r < 16; ++r) {
      if (r != relay) tree.edges.push_back({Rank(relay), Rank(r), {LinkId(2 * relay), LinkId(2 * r + 1)}});
    }
  }
  const auto trees = few_root_trees(topology, Direction::forward, Rank(0), stars);
  ASSERT_TRUE(trees);
  EXPECT_LT(trees->size(), 12U);
  shape_at_bound(topology, Direction::forward, Rank(0), *trees);
}

TEST(FewRootTrees, AtTheBoundOnRandomNetworks) {
  Random random(51);
  int found = 0;
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = *generate_random({.ranks = random.between(3, 12),
                                                .switches = random.between(0, 4),
                                                .extra = random.between(0, 20),
                                                .one_way = false,
                                                .seed = random.next()});
    const Direction direction = round % 2 == 0 ? Direction::forward : Direction::reversed;
    const auto given = pack_one_root(topology, direction, Rank(1), 0);
    ASSERT_TRUE(given);
    const auto trees = few_root_trees(topology, direction, Rank(1), *given);
    if (!trees) continue;
    ++found;
    EXPECT_LT(trees->size(), given->size());
    shape_at_bound(topology, direction, Rank(1), *trees);
  }
  EXPECT_GT(found, 0);
}

/// Eight trees in which every rank passes on to eight others do what 71 of two hops do.
TEST(FewRootTrees, AtMostSixteenWithinAThousandth) {
  const Topology topology = switch_planes(72);
  for (const Direction direction : {Direction::forward, Direction::reversed}) {
    const bool inward = direction == Direction::reversed;
    const auto trees = pack_one_root(topology, direction, Rank(0), make_rational(1, 1000));
    ASSERT_TRUE(trees);
    EXPECT_LE(trees->size(), 16U);
    Forest forest;
    (inward ? forest.in_trees : forest.out_trees) = *trees;
    const auto kind = inward ? CollectiveKind::reduce : CollectiveKind::broadcast;
    const Collective collective = *make_collective(kind, topology.rank_count(), Rank(0));
    const auto schedule = schedule_from_trees(collective, topology, "packing", forest);
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, topology, 1).ok());
    EXPECT_LE(compute_loads(*schedule, topology).time_per_byte,
              cut_bound(topology, collective)->time_per_byte * make_rational(1001, 1000));
  }
}

TEST(FewRootTrees, NothingWhereSwitchesAreUnbalanced) {
  std::vector<Node> nodes = {{.id = "a", .kind = NodeKind::gpu, .is_rank = true},
                             {.id = "b", .kind = NodeKind::gpu, .is_rank = true},
                             {.id = "s", .kind = NodeKind::switch_node, .is_rank = false}};
  std::vector<Link> links;
  for (const auto& [tail, head, rate] : {std::tuple(0U, 2U, 3), {2U, 1U, 2}, {1U, 2U, 1}, {2U, 0U, 1}}) {
    Link link;
    link.tail = NodeId(tail);
    link.head = NodeId(head);
    link.nominal = Bandwidth{rate * 1'000'000'000LL};
    links.push_back(link);
  }
  const Topology topology = *Topology::make("unbalanced", nodes, links);
  const auto given = pack_one_root(topology, Direction::forward, Rank(0), 0);
  ASSERT_TRUE(given);
  EXPECT_FALSE(few_root_trees(topology, Direction::forward, Rank(0), *given));
}

}  // namespace
}  // namespace espalier
