#include "schedule/trees/tree_schedule.h"

#include <gtest/gtest.h>

#include "schedule/verify/verify.h"
#include "tests/support/breaches.h"
#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

using test::direct_routes;
using test::line_of;
using test::mesh_of;
using test::random_forest;
using test::RouteTable;
using test::star_of;

Collective collective_of(CollectiveKind kind, const Topology& topology, std::size_t root = 0) {
  return *make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(Rank(root)) : std::nullopt);
}

TreeEdge edge(const RouteTable& routes, std::size_t parent, std::size_t child) {
  return {Rank(parent), Rank(child), routes.between(Rank(parent), Rank(child))};
}

/// "slices source>destination", such as "0 0>1" or "1-2 1>0+" with + for reduce.
std::vector<std::string> lines_of(const Schedule& schedule) {
  std::vector<std::string> lines;
  for (const Transfer& transfer : schedule.transfers) {
    const std::uint32_t first = transfer.first_slice.value();
    std::string line = std::to_string(first);
    if (transfer.slice_count > 1) line += "-" + std::to_string(first + transfer.slice_count - 1);
    line += " " + std::to_string(schedule.src(transfer).value()) + ">" + std::to_string(schedule.dst(transfer).value());
    lines.push_back(line + (transfer.action() == Action::reduce ? "+" : ""));
  }
  return lines;
}

using test::breaches_of;

TEST(TreeSchedule, RingOfThreeAllReduceIsReduceScatterThenAllGather) {
  const Topology ring = test::ring_of(3);
  const Schedule schedule = test::ring_schedule(ring, CollectiveKind::all_reduce);
  EXPECT_EQ(schedule.units, 3);
  EXPECT_EQ(schedule.channel_count(), 6U);
  // Slice r is reduced along the path that ends at rank r and copied along the one that starts there, one step each.
  EXPECT_EQ(lines_of(schedule), (std::vector<std::string>{"0 1>2+", "1 2>0+", "2 0>1+", "0 2>0+", "1 0>1+", "2 1>2+",
                                                          "0 0>1", "1 1>2", "2 2>0", "0 1>2", "1 2>0", "2 0>1"}));
  EXPECT_EQ(breaches_of(schedule, ring), "");
}

TEST(TreeSchedule, FindsTheSmallestUnits) {
  const Topology mesh = mesh_of(2);
  const RouteTable routes(mesh);
  Forest forest;
  forest.out_trees.push_back({Rank(0), 600, {edge(routes, 0, 1)}});
  forest.out_trees.push_back({Rank(0), 900, {edge(routes, 0, 1)}});
  const Schedule schedule = *schedule_from_trees(collective_of(CollectiveKind::broadcast, mesh), mesh, "test", forest);
  EXPECT_EQ(schedule.units, 5);
  EXPECT_EQ(schedule.slices, (std::vector<Slice>{{0, 2, Rank(), Rank()}, {2, 3, Rank(), Rank()}}));
}

TEST(TreeSchedule, CutsInTreesAgainstOutTreesOfOneRoot) {
  const Topology mesh = mesh_of(2);
  const RouteTable routes(mesh);
  Forest forest;
  // In-trees 1 : 2, out-trees 2 : 4 : 3 of root 0. Scaled to a common 9 units: 3 | 6 against 2 | 4 | 3.
  for (const std::int64_t weight : {1, 2}) {
    forest.in_trees.push_back({Rank(0), weight, {{Rank(0), Rank(1), routes.between(Rank(1), Rank(0))}}});
  }
  for (const std::int64_t weight : {2, 4, 3}) forest.out_trees.push_back({Rank(0), weight, {edge(routes, 0, 1)}});
  const Schedule schedule = *schedule_from_trees(collective_of(CollectiveKind::all_reduce, mesh), mesh, "test", forest);
  EXPECT_EQ(schedule.units, 9);
  std::vector<std::int64_t> lengths;
  for (const Slice& slice : schedule.slices) lengths.push_back(slice.length);
  EXPECT_EQ(lengths, (std::vector<std::int64_t>{2, 1, 3, 3}));
  EXPECT_EQ(lines_of(schedule), (std::vector<std::string>{"0-1 1>0+", "2-3 1>0+", "0 0>1", "1-2 0>1", "3 0>1"}));
  EXPECT_EQ(breaches_of(schedule, mesh), "");
}

TEST(TreeSchedule, ScatterAlongALineSendsEachSubtreeInOneTransfer) {
  const Topology line = line_of(4);
  const RouteTable routes(line);
  Forest forest;
  forest.out_trees.push_back({Rank(0), 1, {edge(routes, 0, 1), edge(routes, 1, 2), edge(routes, 2, 3)}});
  const Schedule schedule = *schedule_from_trees(collective_of(CollectiveKind::scatter, line), line, "test", forest);
  EXPECT_EQ(lines_of(schedule), (std::vector<std::string>{"1-3 0>1", "2-3 1>2", "3 2>3"}));
  EXPECT_EQ(breaches_of(schedule, line), "");
}

TEST(TreeSchedule, GatherToTheMiddleOfALine) {
  const Topology line = line_of(5);
  const RouteTable routes(line);
  Forest forest;
  const auto in_edge = [&](std::size_t parent, std::size_t child) {
    return TreeEdge{Rank(parent), Rank(child), routes.between(Rank(child), Rank(parent))};
  };
  forest.in_trees.push_back({Rank(2), 1, {in_edge(2, 1), in_edge(1, 0), in_edge(2, 3), in_edge(3, 4)}});
  const Schedule schedule = *schedule_from_trees(collective_of(CollectiveKind::gather, line, 2), line, "test", forest);
  EXPECT_EQ(lines_of(schedule), (std::vector<std::string>{"4 4>3", "0 0>1", "3-4 3>2", "0-1 1>2"}));
  EXPECT_EQ(breaches_of(schedule, line), "");
}

TEST(TreeSchedule, FlatTreesOfAllRootsDoNotMeetAtOneRank) {
  const Topology star = star_of(4);
  const RouteTable routes(star);
  Forest forest;
  for (std::size_t root = 0; root < 4; ++root) {
    Arborescence tree{Rank(root), 1, {}};
    for (std::size_t child = 0; child < 4; ++child) {
      if (child != root) tree.edges.push_back(edge(routes, root, child));
    }
    forest.out_trees.push_back(tree);
  }
  const Schedule schedule = *schedule_from_trees(collective_of(CollectiveKind::all_gather, star), star, "test", forest);
  EXPECT_EQ(lines_of(schedule), (std::vector<std::string>{"0 0>1", "1 1>2", "2 2>3", "3 3>0", "0 0>2", "1 1>3", "2 2>0",
                                                          "3 3>1", "0 0>3", "1 1>0", "2 2>1", "3 3>2"}));
}

TEST(TreeSchedule, HighestSubtreeGoesFirst) {
  const Topology mesh = mesh_of(4);
  const RouteTable routes(mesh);
  Forest forest;
  forest.out_trees.push_back({Rank(0), 1, {edge(routes, 0, 1), edge(routes, 0, 2), edge(routes, 2, 3)}});
  const Schedule schedule = *schedule_from_trees(collective_of(CollectiveKind::broadcast, mesh), mesh, "test", forest);
  EXPECT_EQ(lines_of(schedule), (std::vector<std::string>{"0 0>2", "0 0>1", "0 2>3"}));
}

TEST(TreeSchedule, OneRankNeedsNoTransfers) {
  const Topology alone = line_of(1);
  for (const CollectiveKind kind : all_collective_kinds) {
    Forest forest;
    forest.in_trees.push_back({Rank(0), 7, {}});
    forest.out_trees.push_back({Rank(0), 7, {}});
    for (const Forest& trees : {forest, Forest()}) {
      const Schedule schedule = *schedule_from_trees(collective_of(kind, alone), alone, "test", trees);
      EXPECT_TRUE(schedule.transfers.empty());
      EXPECT_EQ(breaches_of(schedule, alone), "") << to_string(kind);
    }
  }
}

TEST(TreeSchedule, RandomTreesVerifyForEveryCollective) {
  Random random(11);
  for (int round = 0; round < 60; ++round) {
    const std::size_t ranks = 1 + random.below(9);
    const Topology fabric = test::random_fabric(ranks, random.below(4), random.below(12), random);
    if (fabric.rank_count() != ranks) continue;
    for (const CollectiveKind kind : all_collective_kinds) {
      const Schedule schedule = test::random_schedule(fabric, kind, random);
      EXPECT_EQ(breaches_of(schedule, fabric), "") << to_string(kind) << " in round " << round;
    }
  }
}

struct BadForest {
  const char* what;
  CollectiveKind kind;
  Forest forest;
  const char* message;
};

TEST(TreeSchedule, RefusesWhatIsNotAForestOfTheCollective) {
  const Topology mesh = mesh_of(3);
  const RouteTable routes(mesh);
  const Arborescence whole{Rank(0), 1, {edge(routes, 0, 1), edge(routes, 0, 2)}};
  const auto with_root = [&](std::size_t root, std::int64_t weight) {
    Arborescence tree{Rank(root), weight, {}};
    for (std::size_t child = 0; child < 3; ++child) {
      if (child != root) tree.edges.push_back(edge(routes, root, child));
    }
    return tree;
  };
  const std::int64_t huge = std::int64_t{1} << 61;
  const std::vector<BadForest> cases = {
      {"no trees", CollectiveKind::broadcast, {}, "broadcast needs trees of rank 0, and there are none"},
      {"a root without trees",
       CollectiveKind::all_gather,
       {{}, {with_root(0, 1), with_root(1, 1)}},
       "all_gather needs trees of rank 2, and there are none"},
      {"unequal roots",
       CollectiveKind::all_gather,
       {{}, {with_root(0, 1), with_root(1, 3), with_root(2, 1)}},
       "the trees of rank 0 weigh 1 and those of rank 1 weigh 3; all_gather needs equal sums"},
      {"a foreign root",
       CollectiveKind::broadcast,
       {{}, {whole, with_root(1, 1)}},
       "a tree is rooted at rank 1, but the root of the broadcast is rank 0"},
      {"a root out of range",
       CollectiveKind::broadcast,
       {{}, {{Rank(9), 1, {}}}},
       "the root of tree 0 is not one of the 3 ranks"},
      {"no weight", CollectiveKind::broadcast, {{}, {{Rank(0), 0, whole.edges}}}, "tree 0 has the weight 0"},
      {"not spanning",
       CollectiveKind::broadcast,
       {{}, {{Rank(0), 1, {edge(routes, 0, 1)}}}},
       "tree 0 of root 0 reaches 2 of 3 ranks"},
      {"a rank out of range",
       CollectiveKind::broadcast,
       {{}, {{Rank(0), 1, {{Rank(0), Rank(5), {}}}}}},
       "edge 0 of out-tree 0 ends outside the 3 ranks"},
      {"entered twice",
       CollectiveKind::broadcast,
       {{}, {{Rank(0), 1, {edge(routes, 0, 1), edge(routes, 0, 1)}}}},
       "out-tree 0 enters rank 1 twice"},
      {"out of order",
       CollectiveKind::broadcast,
       {{}, {{Rank(0), 1, {edge(routes, 1, 2), edge(routes, 0, 1)}}}},
       "edge 0 of out-tree 0 starts at rank 1, which no edge before it enters"},
      {"a rank that scatter misses",
       CollectiveKind::scatter,
       {{}, {{Rank(0), 1, {edge(routes, 0, 1)}}}},
       "a tree of root 0 does not reach rank 2"},
      {"half an all_reduce", CollectiveKind::all_reduce, {{whole}, {}}, "all_reduce needs in-trees and out-trees"},
      {"different roots",
       CollectiveKind::all_reduce,
       {{whole}, {with_root(1, 1)}},
       "rank 0 is the root of 1 of the buffer's 1 units in in-trees and of 0 in out-trees"},
      {"too many units",
       CollectiveKind::broadcast,
       {{}, {with_root(0, huge - 1), with_root(0, huge), with_root(0, 7)}},
       "the weights of the trees need more than 2^62 units"},
      {"too many units in both",
       CollectiveKind::all_reduce,
       {{with_root(0, huge - 1), with_root(0, 2)}, {with_root(0, huge), with_root(0, 7)}},
       "the weights of the trees need more than 2^62 units"},
  };
  for (const BadForest& bad : cases) {
    const Result<Schedule> schedule = schedule_from_trees(collective_of(bad.kind, mesh), mesh, "test", bad.forest);
    ASSERT_FALSE(schedule) << bad.what;
    EXPECT_EQ(schedule.error().message, bad.message) << bad.what;
  }
}

}  // namespace
}  // namespace espalier
