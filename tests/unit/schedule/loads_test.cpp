#include "schedule/loads.h"

#include <gtest/gtest.h>

#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

TEST(Loads, RingAllGatherFillsEveryLinkOfItsDirection) {
  const Topology ring = test::ring_of(4, Bandwidth{10'000'000'000});
  const Schedule schedule = test::ring_schedule(ring, CollectiveKind::all_gather);
  const Loads loads = compute_loads(schedule, ring);
  // Each link g_i > g_(i+1) carries three of the four shards: 3/4 S at 10 GB/s.
  EXPECT_EQ(loads.time_per_byte, make_rational(3, 40'000'000'000));
  EXPECT_EQ(loads.bottleneck_links, (std::vector<LinkId>{LinkId(0), LinkId(2), LinkId(4), LinkId(6)}));
  EXPECT_TRUE(loads.bottleneck_nodes.empty());
  EXPECT_TRUE(loads.link_units[0] == 3);
  EXPECT_TRUE(loads.link_units[1] == 0);
  EXPECT_EQ(link_share(schedule, ring, loads, LinkId(0)), 1);
  EXPECT_EQ(link_share(schedule, ring, loads, LinkId(1)), 0);
}

TEST(Loads, AllToAllCountsWholeSendBuffers) {
  const Topology star = test::star_of(4, Bandwidth{1'000'000'000});
  const Collective collective = *make_collective(CollectiveKind::all_to_all, 4, std::nullopt);
  const test::RouteTable routes(star);
  Forest forest;
  for (std::size_t root = 0; root < 4; ++root) {
    Arborescence tree{Rank(root), 1, {}};
    for (std::size_t child = 0; child < 4; ++child) {
      if (child != root) tree.edges.push_back({Rank(root), Rank(child), routes.between(Rank(root), Rank(child))});
    }
    forest.out_trees.push_back(tree);
  }
  const Schedule schedule = *schedule_from_trees(collective, star, "direct", forest);
  // Three blocks of S/4 leave each rank at 1 GB/s.
  EXPECT_EQ(compute_loads(schedule, star).time_per_byte, make_rational(3, 4'000'000'000));
}

TEST(Loads, BackplanesCountWhatEntersLeavesAndPasses) {
  test::FabricMaker maker;
  const NodeId g0 = maker.add_rank();
  Node hub{.id = "hub", .kind = NodeKind::switch_node, .is_rank = false};
  hub.bandwidth = Bandwidth{5'000'000'000};
  const NodeId s0 = maker.add_node(hub);
  Node last{.id = "last", .kind = NodeKind::gpu};
  last.bandwidth = Bandwidth{5'000'000'000};
  const NodeId g1 = maker.add_node(last);
  maker.add_cable(g0, s0, Bandwidth{10'000'000'000});
  maker.add_cable(s0, g1, Bandwidth{10'000'000'000});
  const Topology fabric = maker.build("backplane");
  const Schedule schedule = test::ring_schedule(fabric, CollectiveKind::all_gather);
  const Loads loads = compute_loads(schedule, fabric);
  // Both shards pass the hub and touch the last rank, one in and one out: S at 5 GB/s, while each link takes S/2 at 10.
  EXPECT_EQ(loads.time_per_byte, make_rational(1, 5'000'000'000));
  EXPECT_TRUE(loads.bottleneck_links.empty());
  EXPECT_EQ(loads.bottleneck_nodes, (std::vector<NodeId>{s0, g1}));
  EXPECT_EQ(link_share(schedule, fabric, loads, LinkId(0)), make_rational(1, 4));
}

TEST(Loads, NothingToMoveTakesNoTime) {
  const Topology alone = test::line_of(1);
  const Schedule schedule = test::ring_schedule(alone, CollectiveKind::all_reduce);
  const Loads loads = compute_loads(schedule, alone);
  EXPECT_EQ(loads.time_per_byte, 0);
  EXPECT_TRUE(loads.bottleneck_links.empty());
}

TEST(Loads, SumsPastSixtyFourBitsAreExact) {
  const Topology line = test::line_of(2, Bandwidth{1});
  Schedule schedule(*make_collective(CollectiveKind::broadcast, 2, Rank(0)), "line-2", "test");
  schedule.units = max_units;
  schedule.slices = {{0, max_units, Rank(), Rank()}};
  const RouteId route = schedule.add_route(Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)});
  for (int i = 0; i < 10; ++i) schedule.add_transfer(route, SliceId(0), 1, Action::copy, ChannelId(0));
  EXPECT_EQ(compute_loads(schedule, line).time_per_byte, 10);
}

}  // namespace
}  // namespace espalier
