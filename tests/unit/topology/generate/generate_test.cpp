#include "topology/generate/generate.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "topology/reachable.h"

namespace espalier {
namespace {

std::size_t count_kind(const Topology& topology, NodeKind kind) {
  return static_cast<std::size_t>(std::count_if(topology.nodes().begin(), topology.nodes().end(),
                                                [&](const Node& node) { return node.kind == kind; }));
}

/// Out-degree of the node with this id.
std::size_t degree(const Topology& topology, const char* id) {
  return topology.out_links(topology.find_node(id)).size();
}

__int128 net_flow(const Topology& topology, NodeId node) {
  __int128 net = 0;
  for (const LinkId id : topology.out_links(node)) net += topology.link(id).bandwidth().bytes_per_second;
  for (const LinkId id : topology.in_links(node)) net -= topology.link(id).bandwidth().bytes_per_second;
  return net;
}

TEST(Generate, RingsHaveOneCablePerRank) {
  const auto ring = generate_ring({.ranks = 5});
  EXPECT_EQ(ring->name(), "ring-5");
  EXPECT_EQ(ring->link_count(), 10U);
  EXPECT_EQ(ring->links_between(NodeId(4), NodeId(0)).size(), 1U);
  EXPECT_EQ(generate_ring({.ranks = 2})->link_count(), 2U);
  const auto one_way = generate_ring({.ranks = 5, .one_way = true});
  EXPECT_EQ(one_way->link_count(), 5U);
  EXPECT_TRUE(one_way->links_between(NodeId(0), NodeId(4)).empty());
}

TEST(Generate, TorusAndMeshCounts) {
  // A torus has one cable per rank and dimension of size > 2; of size 2, half a cable per rank.
  EXPECT_EQ(generate_torus({.dims = {4, 4, 4}})->link_count(), 2U * 64 * 3);
  EXPECT_EQ(generate_torus({.dims = {2, 3}})->link_count(), 2U * (6 / 2 + 6));
  // A mesh of a x b has (a-1) b + a (b-1) cables.
  const auto mesh = generate_mesh({.dims = {3, 4}});
  EXPECT_EQ(mesh->link_count(), 2U * (2 * 4 + 3 * 3));
  EXPECT_EQ(mesh->node(NodeId(5)).id, "gpu1.1");
  EXPECT_EQ(degree(*mesh, "gpu0.0"), 2U);
  EXPECT_EQ(degree(*mesh, "gpu1.1"), 4U);
}

TEST(Generate, HypercubeAndFullMesh) {
  const auto cube = generate_hypercube({.dimensions = 4});
  EXPECT_EQ(cube->rank_count(), 16U);
  EXPECT_EQ(cube->link_count(), 16U * 4);
  EXPECT_EQ(generate_fully_connected({.ranks = 9})->link_count(), 9U * 8);
}

TEST(Generate, FatTreesHaveTheirClosedForms) {
  for (const std::int64_t k : {2, 4, 6, 8}) {
    const auto tree = generate_fat_tree({.k = k});
    const auto n = static_cast<std::size_t>(k);
    EXPECT_EQ(tree->rank_count(), n * n * n / 4);
    EXPECT_EQ(tree->node_count(), n * n * n / 4 + n * n + n * n / 4);
    EXPECT_EQ(tree->link_count(), 2 * 3 * (n * n * n / 4));
    for (const Node& node : tree->nodes()) {
      EXPECT_EQ(degree(*tree, node.id.c_str()), node.is_rank ? 1 : n) << node.id;
    }
  }
  const auto oversubscribed = generate_fat_tree({.k = 4, .oversubscription = 3});
  EXPECT_EQ(oversubscribed->rank_count(), 48U);
  EXPECT_EQ(degree(*oversubscribed, "pod0.edge0"), 6U + 2);
}

TEST(Generate, LeafSpineUplinksFollowTheOversubscription) {
  const auto fabric = generate_leaf_spine(
      {.leaves = 8, .ranks_per_leaf = 8, .spines = 2, .oversubscription = 4, .wire = {.bandwidth = {25'000'000'000}}});
  EXPECT_EQ(fabric->rank_count(), 64U);
  EXPECT_EQ(fabric->link_count(), 2U * (64 + 16));
  // 8 x 25 GB/s into a leaf, a quarter of it up, over two cables.
  const LinkId up = fabric->find_link("leaf3>spine1");
  EXPECT_EQ(fabric->link(up).bandwidth().bytes_per_second, 25'000'000'000);
  EXPECT_FALSE(generate_leaf_spine({.leaves = 2, .ranks_per_leaf = 1, .spines = 7}));
}

TEST(Generate, DragonfliesJoinEveryTwoGroupsOnce) {
  const auto dragonfly = generate_dragonfly({.routers = 4, .ranks = 2, .global_links = 2});
  // 4 x 2 + 1 groups of 4 routers with 2 ranks each.
  EXPECT_EQ(dragonfly->rank_count(), 72U);
  EXPECT_EQ(count_kind(*dragonfly, NodeKind::switch_node), 36U);
  std::map<std::string, int> per_class;
  std::set<std::pair<std::string, std::string>> joined;
  for (const Link& link : dragonfly->links()) {
    ++per_class[link.link_class];
    if (link.link_class != "global") continue;
    const auto group = [&](NodeId node) {
      return dragonfly->node(node).id.substr(0, dragonfly->node(node).id.find('.'));
    };
    EXPECT_TRUE(joined.emplace(group(link.tail), group(link.head)).second);
    EXPECT_NE(group(link.tail), group(link.head));
  }
  EXPECT_EQ(joined.size(), 9U * 8);
  EXPECT_EQ(per_class["terminal"], 2 * 72);
  EXPECT_EQ(per_class["local"], 9 * 4 * 3);
  for (const Node& node : dragonfly->nodes()) {
    EXPECT_EQ(degree(*dragonfly, node.id.c_str()), node.is_rank ? 1U : 2U + 3 + 2);
  }
}

TEST(Generate, RailBoxes) {
  const auto cluster = generate_rail_boxes({.boxes = 4, .gpus_per_box = 8, .rails = 4, .spines = 2});
  EXPECT_EQ(cluster->rank_count(), 32U);
  EXPECT_EQ(count_kind(*cluster, NodeKind::nic), 32U);
  EXPECT_EQ(count_kind(*cluster, NodeKind::switch_node), 4U + 4 + 2);
  EXPECT_EQ(cluster->link_count(), 2U * (3 * 32 + 4 * 2));
  EXPECT_EQ(cluster->node(cluster->find_node("box2.gpu5")).host, "box2");
  EXPECT_EQ(cluster->node(cluster->find_node("box2.gpu5")).rail, 1);
  // 8 NICs of 50 GB/s per rail over two spines.
  EXPECT_EQ(cluster->link(cluster->find_link("rail0>spine1")).bandwidth().bytes_per_second, 200'000'000'000);
  EXPECT_FALSE(generate_rail_boxes({.gpus_per_box = 8, .rails = 3}));
}

TEST(Generate, Cluster) {
  // 4 boxes of 8 GPUs and 4 NICs, two boxes under a leaf of each rail: 2 x 4 leaves. A leaf has 2 x 50 GB/s below it,
  // over 2:1 half of that above, on 4 spines: 12.5 GB/s each.
  const auto cluster =
      generate_cluster({.boxes = 4, .gpus = 8, .nics = 4, .boxes_per_leaf = 2, .oversubscription = {2, 1}});
  ASSERT_TRUE(cluster) << cluster.error().message;
  EXPECT_EQ(cluster->rank_count(), 32U);
  // 8 GPUs, 4 NICs, 4 PCIe switches, an NVSwitch and a CPU in a box.
  EXPECT_EQ(cluster->node_count(), 4U * 18 + 8 + 4);
  std::size_t uplinks = 0;
  for (const Link& link : cluster->links()) {
    if (link.link_class != "uplink") continue;
    ++uplinks;
    EXPECT_EQ(link.bandwidth().bytes_per_second, 12'500'000'000);
  }
  EXPECT_EQ(uplinks, 2U * 8 * 4);
  // A GPU shares its PCIe switch with one other and one NIC.
  const Node& nic = cluster->node(cluster->find_node("box3.nic2"));
  EXPECT_EQ(nic.rail, 2);
}

TEST(Generate, ClusterOfThreeLevels) {
  // Two pods of two boxes, all NICs of a box on one leaf: 4 x 25 GB/s below it, the same above on 2 spines, 50 each. A
  // spine has two leaves, 100 GB/s below it, a quarter of that above on one core.
  const auto cluster = generate_cluster({.boxes = 4,
                                         .gpus = 4,
                                         .nics = 4,
                                         .levels = 3,
                                         .boxes_per_leaf = 1,
                                         .boxes_per_pod = 2,
                                         .spines = 2,
                                         .cores = 1,
                                         .core_oversubscription = {4, 1},
                                         .by_box = true,
                                         .nic = {.bandwidth = {25'000'000'000}}});
  ASSERT_TRUE(cluster) << cluster.error().message;
  std::map<std::string, std::pair<std::size_t, std::int64_t>> classes;
  for (const Link& link : cluster->links()) {
    ++classes[link.link_class].first;
    classes[link.link_class].second = link.bandwidth().bytes_per_second;
  }
  EXPECT_EQ(classes["uplink"], std::pair(std::size_t{2 * 4 * 2}, std::int64_t{50'000'000'000}));
  EXPECT_EQ(classes["core"], std::pair(std::size_t{2 * 4}, std::int64_t{25'000'000'000}));
}

TEST(Generate, ClusterRefusals) {
  const auto refusal = [](const ClusterOptions& options) {
    const auto made = generate_cluster(options);
    return made ? "" : made.error().message;
  };
  EXPECT_EQ(refusal({.gpus = 8, .nics = 3}), "8 GPUs and 3 NICs do not spread evenly over 3 PCIe switches");
  EXPECT_EQ(refusal({.levels = 4}), "4 levels of switches");
  EXPECT_EQ(refusal({.boxes = 4, .boxes_per_leaf = 3}), "4 boxes do not make whole leaves of 3 and pods of 4");
  EXPECT_EQ(refusal({.boxes = 4, .levels = 1, .boxes_per_leaf = 2}),
            "one level of switches does not join several leaves");
  EXPECT_EQ(refusal({.boxes = 4, .boxes_per_pod = 2}), "pods are joined by a third level of switches");
  EXPECT_EQ(refusal({.boxes = 2, .spines = 7}),
            "7 cables of class uplink do not get a whole number of bytes per second each");
  EXPECT_EQ(generate_cluster({.boxes = 100'000}).error().code, ErrorCode::too_large);
  EXPECT_EQ(refusal({.oversubscription = {0, 1}}).substr(0, 16), "oversubscription");
}

TEST(Generate, RandomGraphsAreConnectedAndBalanced) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const bool one_way = seed % 2 == 0;
    const auto graph = generate_random({.ranks = 2 + static_cast<std::int64_t>(seed % 9),
                                        .switches = static_cast<std::int64_t>(seed % 4),
                                        .extra = 12,
                                        .one_way = one_way,
                                        .seed = seed});
    ASSERT_TRUE(graph);
    EXPECT_FALSE(find_unreachable(*graph)) << graph->name();
    for (std::size_t i = 0; i < graph->node_count(); ++i) {
      EXPECT_TRUE(graph->node(NodeId(i)).is_rank || net_flow(*graph, NodeId(i)) == 0) << graph->name();
    }
  }
  const auto first = generate_random({.switches = 3, .seed = 42});
  const auto second = generate_random({.switches = 3, .seed = 42});
  ASSERT_EQ(first->link_count(), second->link_count());
  for (std::size_t i = 0; i < first->link_count(); ++i) {
    EXPECT_EQ(first->link(LinkId(i)).head, second->link(LinkId(i)).head);
    EXPECT_EQ(first->link(LinkId(i)).nominal, second->link(LinkId(i)).nominal);
  }
  const auto unbalanced = generate_random({.switches = 5, .balanced = false, .seed = 3});
  EXPECT_FALSE(find_unreachable(*unbalanced));
  const auto unequal = [&](std::size_t i) { return net_flow(*unbalanced, NodeId(i)) != 0; };
  EXPECT_TRUE(unequal(8) || unequal(9) || unequal(10) || unequal(11) || unequal(12));
}

TEST(Generate, RefusesWhatMakesNoSense) {
  EXPECT_EQ(generate_ring({.ranks = 1}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_ring({.ranks = -4}).error().message, "ranks is -4");
  EXPECT_EQ(generate_torus({.dims = {}}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_torus({.dims = {4, 0}}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_torus({.dims = {1, 1}}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_torus({.dims = {100'000, 100'000, 100'000, 100'000}}).error().code, ErrorCode::too_large);
  EXPECT_EQ(generate_mesh({.wire = {.bandwidth = {0}}}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_hypercube({.dimensions = 60}).error().code, ErrorCode::too_large);
  EXPECT_EQ(generate_fully_connected({.ranks = 100'000}).error().code, ErrorCode::too_large);
  EXPECT_EQ(generate_fat_tree({.k = 5}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_fat_tree({.k = 128, .oversubscription = 8}).error().code, ErrorCode::too_large);
  EXPECT_EQ(generate_leaf_spine({.leaves = 0}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_dragonfly({.routers = 200'000, .global_links = 200'000}).error().code, ErrorCode::too_large);
  EXPECT_EQ(generate_rail_boxes({.boxes = 100'000}).error().code, ErrorCode::too_large);
  EXPECT_EQ(generate_random({.rates = {}}).error().code, ErrorCode::invalid_input);
  EXPECT_EQ(generate_random({.ranks = 0}).error().code, ErrorCode::invalid_input);
}

}  // namespace
}  // namespace espalier
