#include "topology/analysis/symmetry.h"

#include <gtest/gtest.h>

#include <functional>

#include "topology/generate/generate.h"

namespace espalier {
namespace {

/// The same topology with every link passed through `change`, which returns false to leave it out.
Topology changed(const Topology& original, const std::function<bool(LinkId, Link&)>& change) {
  std::vector<Link> links;
  for (std::size_t i = 0; i < original.link_count(); ++i) {
    Link link = original.link(LinkId(i));
    if (change(LinkId(i), link)) links.push_back(link);
  }
  return *Topology::make(original.name(), {original.nodes().begin(), original.nodes().end()}, links);
}

/// The same without the cable between two nodes.
Topology without(const Topology& original, const char* a, const char* b) {
  const NodeId first = original.find_node(a);
  const NodeId second = original.find_node(b);
  return changed(original, [&](LinkId, const Link& link) {
    return !((link.tail == first && link.head == second) || (link.tail == second && link.head == first));
  });
}

std::vector<std::string> messages(const Topology& topology) {
  std::vector<std::string> texts;
  for (const Diagnostic& diagnostic : find_asymmetry(topology)) {
    EXPECT_EQ(diagnostic.severity, Severity::warning);
    texts.push_back(diagnostic.code + " " + diagnostic.message);
  }
  return texts;
}

using Texts = std::vector<std::string>;

TEST(Symmetry, RegularMachinesAreSilent) {
  EXPECT_EQ(messages(*generate_ring({})), Texts{});
  EXPECT_EQ(messages(*generate_torus({.dims = {4, 4, 4}})), Texts{});
  EXPECT_EQ(messages(*generate_hypercube({})), Texts{});
  EXPECT_EQ(messages(*generate_fat_tree({.k = 6, .oversubscription = 2})), Texts{});
  EXPECT_EQ(messages(*generate_leaf_spine({.oversubscription = 2})), Texts{});
  EXPECT_EQ(messages(*generate_dragonfly({})), Texts{});
  EXPECT_EQ(messages(*generate_rail_boxes({.boxes = 16, .spines = 4})), Texts{});
}

TEST(Symmetry, MeshesAreSilentThoughTheirBorderHasFewerLinks) {
  for (const std::vector<std::int64_t>& dims : std::vector<std::vector<std::int64_t>>{
           {3, 3}, {4, 4}, {2, 8}, {8, 8}, {20, 20}, {60, 60}, {4, 4, 4}, {9, 9, 9}}) {
    EXPECT_EQ(messages(*generate_mesh({.dims = dims})), Texts{});
  }
}

TEST(Symmetry, RandomGraphsAreMostlySilent) {
  int noisy = 0;
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    const auto graph = generate_random({.ranks = 4 + static_cast<std::int64_t>(seed % 13),
                                        .switches = static_cast<std::int64_t>(seed % 5),
                                        .extra = 16,
                                        .one_way = seed % 3 == 0,
                                        .seed = seed});
    if (!find_asymmetry(*graph).empty()) ++noisy;
  }
  EXPECT_LT(noisy, 50);
}

TEST(Symmetry, NamesTheNodesThatMissALink) {
  EXPECT_EQ(messages(without(*generate_fully_connected({.ranks = 8}), "gpu0", "gpu1")),
            Texts{"T101 6 of 8 GPUs have 7 link links, gpu0 and gpu1 have 6"});
  EXPECT_EQ(messages(without(*generate_fully_connected({.ranks = 8, .wire = {.link_class = ""}}), "gpu2", "gpu5")),
            Texts{"T101 6 of 8 GPUs have 7 links of 25 GB/s, gpu2 and gpu5 have 6"});
  EXPECT_EQ(messages(without(*generate_ring({.ranks = 8}), "gpu3", "gpu4")),
            Texts{"T101 6 of 8 GPUs have 2 link links, gpu3 and gpu4 have 1"});
}

TEST(Symmetry, NamesTheGpuThatLostItsNic) {
  const auto cluster = generate_rail_boxes({.boxes = 4});
  EXPECT_EQ(messages(without(*cluster, "box2.gpu5", "box2.nic5")),
            (Texts{"T101 31 of 32 GPUs have 1 pcie link, box2.gpu5 has 0",
                   "T101 31 of 32 NICs have 1 pcie link, box2.nic5 has 0"}));
}

TEST(Symmetry, ComparesInsideAHostWhereHostsDiffer) {
  // Three boxes of four GPUs on 3, 5 and 7 planes: no majority over all. In the last one gpu1 misses a plane.
  std::vector<Node> nodes;
  std::vector<Link> links;
  for (const std::size_t planes : {3U, 5U, 7U}) {
    const std::string host = "box" + std::to_string(planes);
    const std::size_t first = nodes.size();
    for (int i = 0; i < 4; ++i) nodes.push_back({.id = host + ".gpu" + std::to_string(i), .host = host});
    for (std::size_t p = 0; p < planes; ++p) {
      const std::size_t plane = nodes.size();
      nodes.push_back(
          {.id = host + ".plane" + std::to_string(p), .kind = NodeKind::switch_node, .is_rank = false, .host = host});
      for (std::size_t i = first; i < first + 4; ++i) {
        if (planes == 7 && p == 6 && i == first + 1) continue;
        links.push_back({NodeId(i), NodeId(plane), {.nominal = {100}, .link_class = "nvlink"}});
        links.push_back({NodeId(plane), NodeId(i), {.nominal = {100}, .link_class = "nvlink"}});
      }
    }
  }
  EXPECT_EQ(messages(*Topology::make("three", nodes, links)),
            (Texts{"T101 14 of 15 switches have 4 nvlink links, box7.plane6 has 3",
                   "T101 3 of 4 GPUs in box7 have 7 nvlink links, box7.gpu1 has 6"}));
}

TEST(Symmetry, CountsNeighbouringSwitches) {
  // Eight GPUs on four planes; gpu3 has two of its four links on plane0.
  std::vector<Node> nodes(12);
  std::vector<Link> links;
  for (std::size_t i = 0; i < 8; ++i) nodes[i].id = "gpu" + std::to_string(i);
  for (std::size_t s = 8; s < 12; ++s) {
    nodes[s] = {.id = "plane" + std::to_string(s - 8), .kind = NodeKind::switch_node, .is_rank = false};
    for (std::size_t i = 0; i < 8; ++i) {
      const std::size_t plane = i == 3 && s == 11 ? 8 : s;
      links.push_back({NodeId(i), NodeId(plane), {.nominal = {100}}});
      links.push_back({NodeId(plane), NodeId(i), {.nominal = {100}}});
    }
  }
  EXPECT_EQ(messages(*Topology::make("planes", nodes, links)),
            Texts{"T102 7 of 8 GPUs have 4 neighbouring switches, gpu3 has 3"});
}

TEST(Symmetry, ComparesTheRatesOfNodes) {
  const auto full = generate_fully_connected({.ranks = 5});
  std::vector<Node> nodes(full->nodes().begin(), full->nodes().end());
  for (Node& node : nodes) node.reduce_bandwidth = {100'000'000'000};
  nodes[2].reduce_bandwidth = {50'000'000'000};
  nodes[4].bandwidth = {20'000'000'000};
  EXPECT_EQ(messages(*Topology::make("rates", nodes, {full->links().begin(), full->links().end()})),
            (Texts{"T103 4 of 5 GPUs have no backplane bandwidth, gpu4 has a backplane bandwidth of 20 GB/s",
                   "T103 4 of 5 GPUs have a reduce bandwidth of 100 GB/s, gpu2 has a reduce bandwidth of 50 GB/s"}));
}

/// `full` without one node and its links.
Topology without_node(const Topology& full, const char* id) {
  const NodeId gone = full.find_node(id);
  std::vector<Node> nodes(full.nodes().begin(), full.nodes().end());
  nodes.erase(nodes.begin() + static_cast<std::ptrdiff_t>(gone.index()));
  std::vector<Link> links;
  const auto moved = [&](NodeId node) { return node > gone ? NodeId(node.index() - 1) : node; };
  for (Link link : full.links()) {
    if (link.tail == gone || link.head == gone) continue;
    link.tail = moved(link.tail);
    link.head = moved(link.head);
    links.push_back(link);
  }
  return *Topology::make(full.name(), nodes, links);
}

TEST(Symmetry, NamesTheHostThatMissesANode) {
  const auto of_two = messages(without_node(*generate_rail_boxes({.boxes = 2}), "box1.gpu7"));
  EXPECT_EQ(of_two.back(), "T104 host box0 has 8 GPUs, box1 has 7");
  const auto of_five = messages(without_node(*generate_rail_boxes({.boxes = 5}), "box3.nic2"));
  EXPECT_EQ(of_five.back(), "T104 4 of 5 hosts have 8 NICs, box3 has 7");
}

TEST(Symmetry, HostsThatNameTheirNodesInOtherWaysLackNone) {
  const auto boxes = generate_rail_boxes({.boxes = 5});
  std::vector<Node> nodes(boxes->nodes().begin(), boxes->nodes().end());
  for (Node& node : nodes) {
    if (node.id.starts_with("box3.nic")) node.id.replace(5, 3, "HCA-");
  }
  for (const std::string& message :
       messages(*Topology::make("mixed", nodes, {boxes->links().begin(), boxes->links().end()}))) {
    EXPECT_FALSE(message.starts_with("T104")) << message;
  }
}

TEST(Symmetry, ComparesTheDirectionsOfAPair) {
  const auto ring = generate_ring({.ranks = 6, .wire = {.link_class = ""}});
  const Topology slow = changed(*ring, [&](LinkId id, Link& link) {
    if (id == ring->find_link("gpu2>gpu1")) link.efficiency_ppm = 500'000;
    return true;
  });
  EXPECT_EQ(messages(slow), Texts{"T105 the directions between gpu1 and gpu2 differ: 25 GB/s forth, 12.5 GB/s back"});
  const Topology one_way = changed(*ring, [&](LinkId id, const Link&) { return id != ring->find_link("gpu2>gpu1"); });
  EXPECT_EQ(messages(one_way),
            Texts{"T105 5 of 6 pairs are joined both ways, but nothing leads back from gpu2 to gpu1"});
  EXPECT_EQ(messages(*generate_ring({.ranks = 6, .one_way = true})), Texts{});
}

TEST(Symmetry, ComparesParallelLinks) {
  const auto ring = generate_ring({.ranks = 6, .wire = {.link_class = "xgmi"}});
  std::vector<Link> links(ring->links().begin(), ring->links().end());
  links.insert(links.end(), ring->links().begin(), ring->links().end());
  links[0].nominal = links[1].nominal = {10'000'000'000};
  const auto doubled = Topology::make("doubled", {ring->nodes().begin(), ring->nodes().end()}, links);
  EXPECT_EQ(messages(*doubled), (Texts{"T106 link gpu0>gpu1#0 runs at 10 GB/s, its parallel link at 25 GB/s",
                                       "T106 link gpu1>gpu0#0 runs at 10 GB/s, its parallel link at 25 GB/s"}));
}

TEST(Symmetry, ComparesALinkWithItsClass) {
  const auto ring = generate_ring({.ranks = 6, .wire = {.link_class = "xgmi"}});
  const Topology slow = changed(*ring, [&](LinkId id, Link& link) {
    if (id == ring->find_link("gpu2>gpu1") || id == ring->find_link("gpu1>gpu2")) link.nominal = {1'000'000'000};
    return true;
  });
  EXPECT_EQ(messages(slow), Texts{"T107 10 of 12 xgmi links run at 25 GB/s, gpu1>gpu2 and gpu2>gpu1 at 1 GB/s"});
}

}  // namespace
}  // namespace espalier
