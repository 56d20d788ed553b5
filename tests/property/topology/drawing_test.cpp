#include <gtest/gtest.h>

#include <cmath>

#include "base/random.h"
#include "topology/draw/layout.h"
#include "topology/draw/topology_svg.h"
#include "topology/generate/generate.h"

namespace espalier {
namespace {

/// Of 2 to 16,384 ranks.
std::vector<Topology> regular_networks() {
  std::vector<Topology> networks;
  const auto add = [&](Result<Topology> made) {
    ASSERT_TRUE(made) << made.error().message;
    networks.push_back(*std::move(made));
  };
  for (const std::int64_t ranks : {2, 3, 8, 64, 1000}) add(generate_ring({.ranks = ranks}));
  add(generate_torus({.dims = {4, 4, 4}}));
  add(generate_torus({.dims = {16, 32, 32}}));
  add(generate_hypercube({.dimensions = 9}));
  for (const std::int64_t ranks : {8, 64, 100}) add(generate_fully_connected({.ranks = ranks}));
  for (const std::int64_t k : {4, 8, 16}) add(generate_fat_tree({.k = k}));
  add(generate_leaf_spine({}));
  add(generate_leaf_spine({.leaves = 40, .ranks_per_leaf = 40, .spines = 20}));
  add(generate_dragonfly({}));
  add(generate_dragonfly({.routers = 8, .ranks = 4, .global_links = 4}));
  for (const std::int64_t boxes : {1, 2, 3, 64, 2048}) add(generate_rail_boxes({.boxes = boxes, .spines = 4}));
  add(generate_rail_boxes({.boxes = 9, .gpus_per_box = 72, .rails = 36}));
  add(generate_cluster({.boxes = 4}));
  add(generate_cluster(
      {.boxes = 512, .levels = 3, .boxes_per_leaf = 16, .boxes_per_pod = 128, .spines = 16, .cores = 32}));
  return networks;
}

std::vector<Topology> random_networks() {
  std::vector<Topology> networks;
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    const auto ranks = static_cast<std::int64_t>(seed * seed * 4);
    auto made = generate_random({.ranks = ranks, .switches = ranks / 8, .extra = 2 * ranks, .seed = seed});
    EXPECT_TRUE(made);
    if (made) networks.push_back(*std::move(made));
  }
  return networks;
}

bool is_in(const DrawnFrame& frame, const DrawnNode& node) {
  return node.x > frame.left && node.x < frame.left + frame.width && node.y > frame.top &&
         node.y < frame.top + frame.height;
}

/// How many nodes a drawn one stands for, by what the picture says: its own count, times those of the frames round it.
std::size_t said_count(const TopologyLayout& layout, const DrawnNode& node) {
  std::size_t count = node.nodes.size();
  for (const DrawnFrame& frame : layout.frames) {
    if (is_in(frame, node)) count *= 1 + frame.like.size();
  }
  return count;
}

void expect_readable(const Topology& topology, const DrawnUse& use = {}) {
  SCOPED_TRACE(topology.name());
  const TopologyLayout layout = lay_out(topology, use);
  EXPECT_LE(layout.width, max_drawing_width);
  std::vector<std::size_t> drawn(layout.nodes.size(), 0);
  ASSERT_EQ(layout.drawn_as.size(), topology.node_count());
  for (const std::size_t as : layout.drawn_as) {
    ASSERT_LT(as, layout.nodes.size());
    ++drawn[as];
  }
  for (std::size_t i = 0; i < layout.nodes.size(); ++i) {
    EXPECT_EQ(drawn[i], said_count(layout, layout.nodes[i])) << layout.nodes[i].label;
    for (std::size_t j = 0; j < i; ++j) {
      const DrawnNode &a = layout.nodes[i], &b = layout.nodes[j];
      EXPECT_TRUE(std::abs(a.x - b.x) >= (a.width + b.width) / 2 || std::abs(a.y - b.y) >= drawn_node_height)
          << a.label << " covers " << b.label;
    }
  }
  EXPECT_LT(topology_svg(topology, use).size(), 2'000'000U);
}

void expect_drawn_itself(const TopologyLayout& layout, NodeId id) {
  const DrawnNode& node = layout.nodes[layout.drawn_as[id.index()]];
  EXPECT_FALSE(node.is_others);
  EXPECT_EQ(node.nodes, std::vector<std::size_t>{id.index()});
  for (const DrawnFrame& frame : layout.frames) {
    if (is_in(frame, node)) {
      EXPECT_TRUE(frame.like.empty()) << frame.caption;
    }
  }
}

TEST(Drawing, EveryNodeIsDrawnOrCountedOnceInA1200PixelsWidePictureOfLessThan2MB) {
  for (const Topology& topology : regular_networks()) expect_readable(topology);
  for (const Topology& topology : random_networks()) expect_readable(topology);
}

TEST(Drawing, TheSameHoldsWithLoadsOfAnyKind) {
  Random random(5);
  for (const auto& networks : {regular_networks(), random_networks()}) {
    for (const Topology& topology : networks) {
      std::vector<double> loads(topology.link_count());
      for (double& load : loads) load = static_cast<double>(random.below(101)) / 100;
      const std::vector<NodeId> side = {NodeId(random.below(topology.node_count()))};
      expect_readable(topology, {loads, side});
    }
  }
}

TEST(Drawing, WhatIsSlowIsDrawnItselfAndSoIsWhatIsBusy) {
  Random random(7);
  for (const Topology& topology : regular_networks()) {
    for (int turn = 0; turn < 3; ++turn) {
      const std::size_t cable = random.below(topology.link_count());
      std::vector<Link> links(topology.links().begin(), topology.links().end());
      links[cable].nominal = {links[cable].nominal.bytes_per_second / 3};
      const auto slowed = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, links);
      ASSERT_TRUE(slowed);
      SCOPED_TRACE(topology.name() + " " + topology.link_name(LinkId(cable)));
      expect_readable(*slowed);
      const TopologyLayout layout = lay_out(*slowed);
      std::vector<double> loads(topology.link_count(), 0.1);
      loads[cable] = 1;
      const TopologyLayout loaded = lay_out(topology, {loads, {}});
      for (const NodeId end : {links[cable].tail, links[cable].head}) {
        expect_drawn_itself(layout, end);
        expect_drawn_itself(loaded, end);
      }
    }
  }
}

TEST(Drawing, WhatACableIsMissingFromIsDrawnItself) {
  Random random(9);
  for (const Topology& topology : regular_networks()) {
    if (topology.rank_count() < 8) continue;
    const Link cable = topology.link(LinkId(random.below(topology.link_count())));
    std::vector<Link> links;
    for (const Link& link : topology.links()) {
      const bool is_of_it =
          (link.tail == cable.tail && link.head == cable.head) || (link.tail == cable.head && link.head == cable.tail);
      if (!is_of_it) links.push_back(link);
    }
    const auto damaged = Topology::make(topology.name(), {topology.nodes().begin(), topology.nodes().end()}, links);
    ASSERT_TRUE(damaged);
    SCOPED_TRACE(topology.name() + " without " + topology.node(cable.tail).id + "-" + topology.node(cable.head).id);
    expect_readable(*damaged);
    const TopologyLayout layout = lay_out(*damaged);
    for (const NodeId end : {cable.tail, cable.head}) expect_drawn_itself(layout, end);
  }
}

}  // namespace
}  // namespace espalier
