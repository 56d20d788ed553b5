#include "planners/graph/rank_groups.h"

#include <gtest/gtest.h>

#include <string>

#include "tests/support/networks/fabrics.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"

namespace espalier::planners {
namespace {

using test::star_of;

TEST(RankGroups, PutsNearMachinesNextToEachOther) {
  const RankGroups boxes = group_ranks(*generate_rail_boxes({.boxes = 3}));
  ASSERT_EQ(boxes.groups.size(), 3U);
  EXPECT_TRUE(boxes.two_levels());
  EXPECT_EQ(boxes.groups[1].front(), Rank(8));
  EXPECT_EQ(order_ranks(boxes).size(), 24U);
  EXPECT_FALSE(group_ranks(star_of(4)).two_levels());
}

/// The same network whose nodes say nothing of machines.
Topology without_hosts(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (Node& node : nodes) node.host.clear();
  return *Topology::make(topology.name(), nodes, {topology.links().begin(), topology.links().end()});
}

// Inside the boxes 450 GB/s, between them 50: the rates tell the boxes apart.
TEST(RankGroups, TellsMachinesApartByRates) {
  const Topology labelled = *generate_rail_boxes({.boxes = 4});
  EXPECT_EQ(group_ranks(without_hosts(labelled)).groups, group_ranks(labelled).groups);
}

// A rack whose trays one NVLink switch joins is one domain; boxes that only a network joins are their own.
TEST(RankGroups, HostsThatNvlinkJoinsAreOneDomain) {
  const auto machine = [](const std::string& name) {
    return *read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + name + ".yaml").topology;
  };
  const Topology rack = machine("gb200-nvl72");
  EXPECT_EQ(group_ranks(rack).groups.size(), 18U);
  const RankGroups joined = group_domains(rack);
  ASSERT_EQ(joined.groups.size(), 1U);
  ASSERT_EQ(joined.groups.front().size(), 72U);
  EXPECT_EQ(joined.groups.front()[5], Rank(5));
  for (const char* name : {"dgx-a100-x2", "dgx-h100-x4", "leaf-spine-64", "dgx1v"}) {
    EXPECT_EQ(group_domains(machine(name)).groups, group_ranks(machine(name)).groups) << name;
  }
}

TEST(RankGroups, MakesNothingOfUnclearRates) {
  EXPECT_EQ(group_ranks(*generate_torus({.dims = {4, 4}})).groups.size(), 1U);
  test::FabricMaker maker;  // three ranks close together and two others: no machines of one size
  std::vector<NodeId> ranks;
  for (int i = 0; i < 5; ++i) ranks.push_back(maker.add_rank());
  maker.add_cable(ranks[0], ranks[1], {100'000'000'000});
  maker.add_cable(ranks[1], ranks[2], {100'000'000'000});
  maker.add_cable(ranks[3], ranks[4], {100'000'000'000});
  maker.add_cable(ranks[2], ranks[3], {1'000'000'000});
  EXPECT_EQ(group_ranks(maker.build("uneven")).groups.size(), 1U);
}

}  // namespace
}  // namespace espalier::planners
