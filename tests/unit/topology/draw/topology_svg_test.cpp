#include "topology/draw/topology_svg.h"

#include <gtest/gtest.h>

#include <cmath>
#include <sstream>

#include "topology/draw/layout.h"
#include "topology/generate/generate.h"
#include "topology/slow.h"
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
  EXPECT_EQ(count(svg, "<path"), 4U);  // two lines, and two classes in the legend
  EXPECT_EQ(count(svg, "<g>"), 3U);
  EXPECT_EQ(count(svg, "<title>a - b: nvlink, 2 links, 50 GB/s each way</title>"), 1U);
  EXPECT_EQ(count(svg, "<title>a &gt; hub: net &amp; more, 1 link, 50 GB/s</title>"), 1U);
  EXPECT_EQ(count(svg, "stroke-dasharray="), 1U);
  EXPECT_EQ(count(svg, "aria-label=\"small: 2 ranks, 3 nodes, 5 links\""), 1U);
}

TEST(TopologySvg, ColoursLinksByLoadAndOutlinesASideOfACut) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a"), b = builder.rank("b");
  builder.cable(a, b, {{25'000'000'000}, {0}, "nvlink"});
  const std::vector<double> loads = {0.2, 0.96};
  const std::vector<NodeId> side = {b};
  const auto svg = topology_svg(*std::move(builder).build("pair"), {loads, side});
  EXPECT_EQ(count(svg, "class=\"load5\" data-links=\"0 1\""), 1U);  // the busier of the two
  EXPECT_EQ(count(svg, "25 GB/s each way; busy 96 %</title>"), 1U);
  EXPECT_EQ(count(svg, "class=\"node rank side\""), 1U);
  EXPECT_EQ(count(svg, "up to 75 %</text>"), 1U);
}

TEST(TopologySvg, StepsOfLoadsEndWhereTheirNamesSay) {
  EXPECT_EQ(load_step(0), 0U);
  EXPECT_EQ(load_step(0.25), 1U);
  EXPECT_EQ(load_step(0.26), 2U);
  EXPECT_EQ(load_step(0.95), 4U);
  EXPECT_EQ(load_step(1), 5U);
  EXPECT_EQ(load_step_name(4), "up to 95 %");
}

TEST(TopologySvg, OfLikeBoxesOneIsDrawnWithHowManyThereAre) {
  const auto boxes = generate_rail_boxes({.boxes = 64});
  ASSERT_TRUE(boxes);
  const std::string svg = topology_svg(*boxes);
  // One box of 8 GPUs, 8 NICs and a switch, and the 8 rails.
  EXPECT_EQ(count(svg, "<g>"), 25U);
  EXPECT_EQ(count(svg, ">box0, and 63 more like it: box[1-63]<"), 1U);
  EXPECT_EQ(count(svg, "<title>box0.nic7 - rail7: nic, 1 link, 50 GB/s each way; 63 more like it</title>"), 1U);
}

TEST(TopologySvg, ABoxWithASlowCableIsDrawnBesideTheOthersAndTheCableMarked) {
  const auto boxes = generate_rail_boxes({.boxes = 64});
  ASSERT_TRUE(boxes);
  const auto slowed = slow_down(*boxes, std::vector<std::string>{"box5.nic3-rail3=25%"});
  ASSERT_TRUE(slowed);
  const std::string svg = topology_svg(*slowed);
  EXPECT_EQ(count(svg, "<g>"), 42U);  // two boxes of 17
  EXPECT_EQ(count(svg, ">box0, and 62 more like it: box[1-4,6-63]<"), 1U);
  EXPECT_EQ(count(svg, ">box5<"), 1U);
  EXPECT_EQ(count(svg, "<title>box5.nic3 - rail3: nic, slower than most, 1 link, 12.5 GB/s each way</title>"), 1U);
  EXPECT_EQ(count(svg, "class=\"slow\""), 2U);  // the cable, and the legend
}

TEST(TopologySvg, LinksBetweenLikeGroupsAreLoopsAndNotWithinTheOneThatIsDrawn) {
  // 9 groups of 4 routers, each with 2 cables to other groups; in a group 6 cables.
  const auto dragonfly = generate_dragonfly({});
  ASSERT_TRUE(dragonfly);
  const std::string svg = topology_svg(*dragonfly);
  EXPECT_EQ(count(svg, ">group0, and 8 more like it: group[1-8]<"), 1U);
  EXPECT_EQ(count(svg, " - others like it: global, 2 links, "), 4U);
  EXPECT_EQ(count(svg, ": local, 1 link, "), 6U);
}

TEST(TopologySvg, ALineToSwitchesThatAreDrawnAsOneIsOfAllOfThem) {
  // Of 64 cores each of the 8 aggregation switches of a pod is joined with its own 8.
  const auto tree = generate_fat_tree({.k = 16});
  ASSERT_TRUE(tree);
  const std::string svg = topology_svg(*tree);
  EXPECT_EQ(count(svg, " - core[0-63]: link, 8 links, "), 8U);
}

TEST(TopologySvg, NamesEveryLinkOnceAndRegularOnesShortly) {
  const auto boxes = generate_rail_boxes({.boxes = 64});
  ASSERT_TRUE(boxes);
  const std::vector<double> loads(boxes->link_count(), 0.5);
  const std::string svg = topology_svg(*boxes, {loads, {}});
  std::vector<std::size_t> named(boxes->link_count(), 0);
  constexpr std::string_view mark = "data-links=\"";
  for (std::size_t at = svg.find(mark); at != std::string::npos; at = svg.find(mark, at + 1)) {
    const std::size_t begin = at + mark.size();
    std::istringstream words(svg.substr(begin, svg.find('"', begin) - begin));
    std::size_t first = 0, step = 0, times = 0, runs = 0;
    for (char plus = 0, x = 0; words >> first >> plus >> step >> x >> times; ++runs) {
      for (std::size_t i = 0; i < times; ++i) ++named.at(first + i * step);
    }
    EXPECT_EQ(runs, 2U);  // Of 64 cables each way.
  }
  EXPECT_EQ(named, std::vector<std::size_t>(boxes->link_count(), 1));
}

void expect_no_overlap(const Topology& topology) {
  SCOPED_TRACE(topology.name());
  const TopologyLayout layout = lay_out(topology);
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    const DrawnNode& node = layout.nodes[i];
    EXPECT_TRUE(node.x >= node.width / 2 && node.x <= layout.width - node.width / 2);
    EXPECT_TRUE(node.y >= drawn_node_height / 2 && node.y <= layout.height - drawn_node_height / 2);
    for (std::size_t j = 0; j < i; ++j) {
      const DrawnNode& other = layout.nodes[j];
      EXPECT_TRUE(std::abs(node.x - other.x) >= (node.width + other.width) / 2 ||
                  std::abs(node.y - other.y) >= drawn_node_height)
          << node.label << " covers " << other.label;
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
