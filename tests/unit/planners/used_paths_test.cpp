#include "planners/used_paths.h"

#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/chooser.h"
#include "planners/nccl/nccl.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "tests/support/read_good.h"
#include "topology/link_kind.h"
#include "topology/names/group.h"
#include "topology/routes.h"
#include "topology/yaml/read_topology.h"

namespace espalier::planners {
namespace {

/// Boxes of four GPUs on NVLink, two and a NIC on each PCIe switch, joined by a leaf.
Topology boxes(int count, const std::string& efficiency = "1") {
  return test::read_good(R"(
espalier: 1
name: boxes
parameters: {boxes: )" + std::to_string(count) +
                         R"(}
classes:
  nvlink: {bandwidth: 100 GB/s, latency: 300 ns}
  bus: {bandwidth: 20 GB/s, latency: 200 ns}
  cable: {bandwidth: 10 GB/s, latency: 600 ns, efficiency: )" +
                         efficiency + R"(}
nodes: [{id: leaf, kind: switch}]
groups:
  - id: box
    count: $boxes
    host: true
    nodes:
      - {id: "gpu[0-3]", kind: gpu}
      - {id: nvswitch, kind: switch}
      - {id: "bus[0-1]", kind: pcie}
      - {id: "nic[0-1]", kind: nic}
    links:
      - {all: ["gpu[0-3]", nvswitch], class: nvlink}
      - {zip: ["gpu[0-3]", "bus[0,0,1,1]"], class: bus}
      - {zip: ["nic[0-1]", "bus[0-1]"], class: bus}
      - {all: ["nic[0-1]", leaf], class: cable}
)");
}

/// Routes between ranks of one host that pass another link than fabric.
std::size_t strays(const Topology& topology, const Schedule& schedule) {
  std::size_t found = 0;
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    if (route.src.index() >= topology.rank_count() || route.dst.index() >= topology.rank_count()) continue;
    const auto host = [&](Rank rank) { return topology.node(topology.node_of(rank)).host; };
    const auto is_fabric = [&](LinkId link) { return kind_of(topology, link) == LinkKind::fabric; };
    if (host(route.src) == host(route.dst) && !std::ranges::all_of(route.links, is_fabric)) ++found;
  }
  return found;
}

Schedule planned(const Topology& topology, CollectiveKind kind, const char* planner, Paths paths) {
  const Collective collective{kind, static_cast<std::uint32_t>(topology.rank_count()),
                              has_root(kind) ? Rank(0) : Rank()};
  const BundledNetwork network(topology, paths);
  auto schedule = plan_unbounded(network, collective, *find_planner(planner));
  EXPECT_TRUE(schedule) << planner << ": " << schedule.error().message;
  return *std::move(schedule);
}

TEST(UsedPaths, ABoxUsesItsFabricAlone) {
  const Topology topology = boxes(1);
  const UsedPaths paths(topology);
  ASSERT_TRUE(paths.topology());
  // What is left is the fabric: without other boxes NICs have no use.
  const Topology& used = *paths.topology();
  EXPECT_TRUE(used.find_node("bus0 in").is_none());
  for (std::size_t i = 0; i < used.link_count(); ++i) EXPECT_NE(kind_of(used, LinkId(i)), LinkKind::network);
  // Every rank sends and gets 3/4 S: over its NVLink alone that is 3/400 ns a byte, with PCIe beside it less.
  const Rational nvlink_alone = Rational(3, 4) / 100'000'000'000;
  for (const char* planner : {"ring", "packing"}) {
    const Schedule any = planned(topology, CollectiveKind::all_gather, planner, Paths::any);
    const Schedule software = planned(topology, CollectiveKind::all_gather, planner, Paths::software);
    EXPECT_EQ(strays(topology, software), 0U) << planner;
    EXPECT_EQ(compute_loads(software, topology).time_per_byte, nvlink_alone) << planner;
    EXPECT_GT(strays(topology, any), 0U) << planner;
    EXPECT_LT(compute_loads(any, topology).time_per_byte, nvlink_alone) << planner;
  }
}

TEST(UsedPaths, NothingTurnsRoundAtANic) {
  const Topology topology = boxes(2);
  const UsedPaths paths(topology);
  ASSERT_TRUE(paths.topology());
  const Topology& used = *paths.topology();
  // Data enters box 0 by nodes of its own, from which no link leads to a NIC.
  const NodeId bus = used.find_node("box0.bus0 in");
  ASSERT_FALSE(bus.is_none());
  for (const LinkId link : used.out_links(bus)) EXPECT_TRUE(used.node(used.link(link).head).is_rank);
  for (const LinkId link : used.out_links(used.find_node("box0.bus0"))) {
    EXPECT_EQ(used.node(used.link(link).head).id, "box0.nic0");
  }
  // gpu0 and gpu1 share bus0, gpu2 and gpu3 bus1: from gpu0 to another box by nic0 alone.
  const auto route = find_route(used, Rank(0), Rank(4));
  ASSERT_TRUE(route);
  EXPECT_EQ(used.node(used.link(route->links[1]).head).id, "box0.nic0");
}

TEST(UsedPaths, NoPlannerLeavesABoxOnItsWayInside) {
  for (const char* name : {"aws-p4d-x2", "aws-p5-x2", "dgx-a100-x2", "dgx-h100-x4", "gb200-nvl72", "mi250"}) {
    TopologyReading reading = read_topology_file(std::string(ESPALIER_SOURCE_DIR "/configs/") + name + ".yaml");
    ASSERT_TRUE(reading.topology) << name;
    const Topology& topology = *reading.topology;
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::broadcast}) {
      const Collective collective{kind, static_cast<std::uint32_t>(topology.rank_count()),
                                  has_root(kind) ? Rank(0) : Rank()};
      const BundledNetwork network(topology, Paths::software);
      for (const char* planner : {"ring", "tree", "flat", "bruck", "binomial"}) {
        const auto schedule = plan_unbounded(network, collective, *find_planner(planner));
        EXPECT_EQ(schedule ? strays(topology, *schedule) : 0U, 0U) << name << " " << planner;
      }
    }
  }
}

class InsideOfBoxes : public testing::TestWithParam<const char*> {};  // The efficiency of cables.

TEST_P(InsideOfBoxes, ReplacesWaysOverTheNetwork) {
  const Topology topology = boxes(2, GetParam());
  const UsedPaths paths(topology);
  ASSERT_TRUE(paths.topology());
  const Topology& used = *paths.topology();
  // A way from gpu0 out to the leaf and back to gpu2, which lies in no planner's interest.
  std::vector<LinkId> links;
  for (const char* name : {"box0.gpu0>box0.bus0", "box0.bus0>box0.nic0", "box0.nic0>leaf", "leaf>box0.nic1 in",
                           "box0.nic1 in>box0.bus1 in", "box0.bus1 in>box0.gpu2"}) {
    links.push_back(used.find_link(name));
    ASSERT_FALSE(links.back().is_none()) << name;
  }
  Schedule schedule({CollectiveKind::broadcast, 8, Rank(0)}, "boxes", "by hand");
  schedule.units = 1;
  schedule.slices.push_back({.offset = 0, .length = 1, .rank = Rank(), .to = Rank()});
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(2), links), SliceId(0), 1, Action::copy, ChannelId(0));
  const Schedule restored = paths.restore(schedule);
  const Route route = restored.route(restored.transfers.front().route);
  ASSERT_EQ(route.links.size(), 2U);
  EXPECT_EQ(topology.link_name(route.links[0]), "box0.gpu0>box0.nvswitch");
  EXPECT_EQ(topology.link_name(route.links[1]), "box0.nvswitch>box0.gpu2");
}

INSTANTIATE_TEST_SUITE_P(UsedPaths, InsideOfBoxes, testing::Values("1", "0.86"));

TEST(UsedPaths, AllPathsCountWhereSomeWouldCutRanksOff) {
  // Two GPUs that only a NIC's PCIe joins: the NIC has to forward.
  const Topology topology = test::read_good(R"(
espalier: 1
name: odd
nodes: [{id: "gpu[0-1]", kind: gpu}, {id: nic, kind: nic}]
links: [{all: ["gpu[0-1]", nic], bandwidth: 10 GB/s}]
)");
  EXPECT_FALSE(UsedPaths(topology).topology());
}

TEST(UsedPaths, ANicThatAloneJoinsABoxStillDoes) {
  // As above, twice, behind a switch: the other box can be reached, so rules hold, but gpu0 and gpu1 have the NIC
  // alone.
  const Topology topology = test::read_good(R"(
espalier: 1
name: odd
nodes: [{id: leaf, kind: switch}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-1]", kind: gpu}, {id: nic, kind: nic}]
    links: [{all: ["gpu[0-1]", nic], bandwidth: 10 GB/s}, {between: [nic, leaf], bandwidth: 10 GB/s}]
)");
  ASSERT_TRUE(UsedPaths(topology).topology());
  const Schedule schedule = planned(topology, CollectiveKind::broadcast, "flat", Paths::software);
  for (std::size_t i = 0; i < schedule.route_count(); ++i) {
    const Route route = schedule.route(RouteId(i));
    const bool is_inside = route.src.index() / 2 == route.dst.index() / 2;
    EXPECT_EQ(route.links.size(), is_inside ? 2U : 4U);
  }
}

TEST(UsedPaths, AGpuThatTakesNoPartPassesNothing) {
  // Four GPUs in a circle of NVLinks, with a PCIe switch for all.
  const char* const text = R"(
espalier: 1
name: circle
classes: {nvlink: {bandwidth: 100 GB/s}, bus: {bandwidth: 20 GB/s}}
nodes: [{id: "gpu[0-3]", kind: gpu}, {id: bus, kind: pcie}]
links:
  - {zip: ["gpu[0-3]", "gpu[1,2,3,0]"], class: nvlink}
  - {all: ["gpu[0-3]", bus], class: bus}
)";
  const Topology circle = test::read_good(text);
  const auto passed = [&](const char* list) {
    const auto topology = with_ranks(circle, *find_rank_nodes(circle, list));
    const Schedule schedule = planned(*topology, CollectiveKind::all_gather, "ring", Paths::software);
    return compute_loads(schedule, *topology).time_per_byte;
  };
  // Neighbours have an NVLink: half of S over it. Of three in a row NVLink makes no ring, and of two that face each
  // other it joins none: over PCIe, beside what NVLink there is.
  EXPECT_EQ(passed("gpu[0,1]"), Rational(1, 2) / 100'000'000'000);
  EXPECT_EQ(passed("gpu[0,2]"), Rational(1, 2) / 20'000'000'000);
  EXPECT_GE(passed("gpu[0-2]"), Rational(2, 3) / 40'000'000'000);
  EXPECT_EQ(passed("gpu[0-3]"), Rational(3, 4) / 200'000'000'000);
}

TEST(UsedPaths, RanksThatOnlyAnIdleGpuJoinsGoThroughIt) {
  const Topology path = test::read_good(R"(
espalier: 1
name: path
nodes: [{id: "gpu[0,2]", kind: gpu}, {id: gpu1, kind: gpu, rank: false}]
links: [{all: ["gpu[0,2]", gpu1], bandwidth: 10 GB/s}]
)");
  const Collective collective{CollectiveKind::all_gather, 2, Rank()};
  EXPECT_TRUE(plan_unbounded(BundledNetwork(path, Paths::software), collective, *find_planner("flat")));
  EXPECT_TRUE(plan_unbounded(BundledNetwork(path, Paths::any), collective, *find_planner("flat")));
}

TEST(UsedPaths, BoundsCountEveryPath) {
  const Topology topology = boxes(1);
  const Collective collective{CollectiveKind::all_gather, 4, Rank()};
  const std::vector<Planner> ring{*find_planner("ring")};
  const auto any = make_candidates(topology, collective, ring);
  const auto software = make_candidates(topology, collective, ring, {.paths = Paths::software});
  ASSERT_TRUE(any && software);
  EXPECT_EQ(any->bound.time_per_byte, software->bound.time_per_byte);
  EXPECT_GT(software->made.front().chunks.load_time(Bytes{1 << 20}),
            any->made.front().chunks.load_time(Bytes{1 << 20}));
}

TEST(NcclPxn, CrossesOnTheRailOfItsDestination) {
  TopologyReading reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx-h100-x4.yaml");
  ASSERT_TRUE(reading.topology);
  const Topology& topology = *reading.topology;
  const auto pxn = std::ranges::find(nccl_planners(), "nccl/pxn", &Planner::name);
  const Collective collective{CollectiveKind::all_to_all, 32, Rank()};
  const auto schedule = plan_unbounded(topology, collective, *pxn);
  ASSERT_TRUE(schedule) << schedule.error().message;
  // Blocks of 24 x 32 pairs of boxes cross, each on its rail: GPU, NIC, leaf, NIC, GPU, no spine.
  for (std::size_t i = 0; i < schedule->route_count(); ++i) {
    const Route route = schedule->route(RouteId(i));
    const bool crosses = route.src.index() / 8 != route.dst.index() / 8;
    EXPECT_EQ(route.links.size(), crosses ? 4U : 2U);
    EXPECT_TRUE(!crosses || route.src.index() % 8 == route.dst.index() % 8);
  }
  // On one box, and where all NICs hang on one switch, there is nothing to gain.
  EXPECT_FALSE(plan_unbounded(boxes(1), {CollectiveKind::all_to_all, 4, Rank()}, *pxn));
  EXPECT_FALSE(plan_unbounded(boxes(2), {CollectiveKind::all_to_all, 8, Rank()}, *pxn));
  for (const CollectiveKind kind : {CollectiveKind::gather, CollectiveKind::scatter, CollectiveKind::send_recv}) {
    EXPECT_TRUE(plan_unbounded(topology, {kind, 32, has_root(kind) ? Rank(3) : Rank()}, *pxn));
  }
  EXPECT_FALSE(plan_unbounded(topology, {CollectiveKind::all_reduce, 32, Rank()}, *pxn));
}

}  // namespace
}  // namespace espalier::planners
