#include "topology/draw/topology_svg.h"

#include <gtest/gtest.h>

#include <cmath>

#include "topology/draw/layout.h"
#include "topology/generate/generate.h"
#include "topology/topology_builder.h"

namespace espalier {
namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(TopologySvg, HasALineForTheLinksOfAClassBetweenTwoNodes) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a"), b = builder.rank("b");
  const NodeId hub = builder.forwarder(NodeKind::switch_node, "hub");
  const Wire wire{{25'000'000'000}, {0}, "nvlink"};
  builder.cable(a, b, wire);
  builder.cable(a, b, wire);
  builder.link(a, hub, {{50'000'000'000}, {0}, "net & more"});
  const auto svg = topology_svg(*std::move(builder).build("small"));
  ASSERT_TRUE(svg);
  EXPECT_EQ(count(*svg, "<path"), 4U);  // two lines, and two classes in the legend
  EXPECT_EQ(count(*svg, "<g>"), 3U);
  EXPECT_EQ(count(*svg, "<title>a - b: nvlink, 2 links, 50 GB/s each way</title>"), 1U);
  EXPECT_EQ(count(*svg, "<title>a &gt; hub: net &amp; more, 1 link, 50 GB/s</title>"), 1U);
  EXPECT_EQ(count(*svg, "stroke-dasharray="), 1U);
  EXPECT_EQ(count(*svg, "aria-label=\"small: 2 ranks, 3 nodes, 5 links\""), 1U);
}

TEST(TopologySvg, ColoursLinksByLoadAndOutlinesASideOfACut) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a"), b = builder.rank("b");
  builder.cable(a, b, {{25'000'000'000}, {0}, "nvlink"});
  const std::vector<double> loads = {0.2, 0.96};
  const std::vector<NodeId> side = {b};
  const auto svg = topology_svg(*std::move(builder).build("pair"), {loads, side});
  ASSERT_TRUE(svg);
  EXPECT_EQ(count(*svg, "class=\"load5\" data-links=\"0 1\""), 1U);  // the busier of the two
  EXPECT_EQ(count(*svg, "25 GB/s each way; busy 96 %</title>"), 1U);
  EXPECT_EQ(count(*svg, "class=\"node rank side\""), 1U);
  EXPECT_EQ(count(*svg, "up to 75 %</text>"), 1U);
}

TEST(TopologySvg, StepsOfLoadsEndWhereTheirNamesSay) {
  EXPECT_EQ(load_step(0), 0U);
  EXPECT_EQ(load_step(0.25), 1U);
  EXPECT_EQ(load_step(0.26), 2U);
  EXPECT_EQ(load_step(0.95), 4U);
  EXPECT_EQ(load_step(1), 5U);
  EXPECT_EQ(load_step_name(4), "up to 95 %");
}

TEST(TopologySvg, TooLargeOnesAreRefused) {
  const auto torus = generate_torus({.dims = {50, 50}});
  ASSERT_TRUE(torus);
  const auto svg = topology_svg(*torus);
  ASSERT_FALSE(svg);
  EXPECT_EQ(svg.error().code, ErrorCode::too_large);
}

/// Nodes are boxes of 72 x 24.
void expect_no_overlap(const Topology& topology) {
  SCOPED_TRACE(topology.name());
  const TopologyLayout layout = lay_out(topology);
  ASSERT_EQ(layout.nodes.size(), topology.node_count());
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    const DrawnNode& node = layout.nodes[i];
    EXPECT_TRUE(node.x >= 36 && node.x <= layout.width - 36 && node.y >= 12 && node.y <= layout.height - 12);
    for (std::size_t j = 0; j < i; ++j) {
      const DrawnNode& other = layout.nodes[j];
      EXPECT_TRUE(std::abs(node.x - other.x) >= 72 || std::abs(node.y - other.y) >= 24)
          << topology.node(NodeId(i)).id << " covers " << topology.node(NodeId(j)).id;
    }
  }
}

TEST(TopologyLayout, ManySwitchesOverFewMachines) {
  TopologyBuilder builder;
  const NodeId rank = builder.rank("a", "host"), other = builder.rank("b", "host");
  for (int i = 0; i < 20; ++i) {
    const NodeId hub = builder.forwarder(NodeKind::switch_node, "s" + std::to_string(i));
    builder.cable(rank, hub, {});
    builder.cable(other, hub, {});
  }
  expect_no_overlap(*std::move(builder).build("switches"));
}

TEST(TopologyLayout, NodesDoNotCoverEachOther) {
  const std::vector<Result<Topology>> machines = {generate_ring({.ranks = 2}),
                                                  generate_ring({.ranks = 3}),
                                                  generate_torus({.dims = {4, 4, 4}}),
                                                  generate_fully_connected({.ranks = 8}),
                                                  generate_fat_tree({}),
                                                  generate_leaf_spine({}),
                                                  generate_dragonfly({}),
                                                  generate_rail_boxes({}),
                                                  generate_random({.ranks = 12, .switches = 5})};
  for (const auto& machine : machines) {
    ASSERT_TRUE(machine);
    expect_no_overlap(*machine);
  }
}

}  // namespace
}  // namespace espalier
