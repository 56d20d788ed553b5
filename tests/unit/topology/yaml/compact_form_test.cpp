#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "tests/support/read_good.h"
#include "topology/generate/generate.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

using test::read_good;

std::string node_names(const Topology& topology) {
  std::string names;
  for (const Node& node : topology.nodes()) names += (names.empty() ? "" : " ") + node.id;
  return names;
}

/// "a>b b>a ...": tails and heads in link order.
std::string link_ends(const Topology& topology) {
  std::string ends;
  for (const Link& link : topology.links()) {
    ends += (ends.empty() ? "" : " ") + topology.node(link.tail).id + ">" + topology.node(link.head).id;
  }
  return ends;
}

TEST(CompactForm, BoxesAreWrittenOnceAndReadAsTheyWere) {
  RailBoxesOptions options;
  options.boxes = 300;
  const Topology boxes = *generate_rail_boxes(options);
  const std::string text = write_topology_compact(boxes, "nccl-hopper");
  EXPECT_NE(text.find("  - id: box\n    count: 300\n    host: true\n"), std::string::npos);
  EXPECT_LT(text.size(), 5000);
  EXPECT_EQ(write_topology(read_good(text)), write_topology(boxes));
  EXPECT_NE(text.find("profile: nccl-hopper\n"), std::string::npos);
}

TEST(CompactForm, WhatIsNotBoxAfterBoxIsWrittenAsItIs) {
  RailBoxesOptions with_spines;
  with_spines.boxes = 3;
  with_spines.spines = 2;  // Behind the boxes.
  const Topology spines = *generate_rail_boxes(with_spines);
  EXPECT_EQ(write_topology_compact(spines), write_topology(spines));
  RailBoxesOptions options;
  options.boxes = 3;
  const Topology whole = *generate_rail_boxes(options);
  std::vector<Link> links(whole.links().begin(), whole.links().end());
  links.back().latency.count += 1;  // Of the last box.
  const Topology unlike = *Topology::make(whole.name(), {whole.nodes().begin(), whole.nodes().end()}, std::move(links));
  EXPECT_EQ(write_topology_compact(unlike), write_topology(unlike));
}

TEST(CompactForm, RangesStandForNodesInOrder) {
  const std::string head = "espalier: 1\nnodes:\n  - id: ";
  const std::string tail =
      "\n    kind: gpu\n  - {id: hub, kind: switch}\nlinks:\n  - {all: [[NAMES], hub], bandwidth: 1 B/s}\n";
  const auto names_of = [&](const std::string& id) {
    std::string text = head + id + tail;
    text.replace(text.find("NAMES"), 5, "\"" + id + "\"");
    return node_names(read_good(text));
  };
  EXPECT_EQ(names_of("g[0-3]"), "g0 g1 g2 g3 hub");
  EXPECT_EQ(names_of("g[3-1]"), "g3 g2 g1 hub");
  EXPECT_EQ(names_of("g[0, 2,4-5]"), "g0 g2 g4 g5 hub");
  EXPECT_EQ(names_of("host[08-11]"), "host08 host09 host10 host11 hub");
  EXPECT_EQ(names_of("t[0-1]-[0-1]x"), "t0-0x t0-1x t1-0x t1-1x hub");
}

TEST(CompactForm, CountNumbersNodes) {
  EXPECT_EQ(node_names(read_good("espalier: 1\nnodes:\n  - {id: g, count: 3, kind: gpu}\nlinks:\n"
                                 "  - {all: [\"g[*]\"], bandwidth: 1 B/s}\n")),
            "g0 g1 g2");
}

TEST(CompactForm, WiringJoinsInOrder) {
  const std::string nodes = "espalier: 1\nnodes:\n  - {id: \"a[0-2]\", kind: gpu}\n  - {id: \"b[0-2]\", kind: gpu}\n";
  const auto ends_of = [&](const std::string& link) {
    // The last link joins everything, so that no rank is lonely; its 30 links are cut off again.
    const std::string all = "  - {all: [[\"a[*]\", \"b[*]\"]], bandwidth: 1 B/s}\n";
    const Topology topology = read_good(nodes + "links:\n  - {" + link + ", bandwidth: 1 B/s}\n" + all);
    std::string ends;
    for (std::size_t i = 0; i + 30 < topology.link_count(); ++i) {
      const Link& made = topology.link(LinkId(i));
      ends += (ends.empty() ? "" : " ") + topology.node(made.tail).id + ">" + topology.node(made.head).id;
    }
    return ends;
  };
  EXPECT_EQ(ends_of("between: [a0, b1]"), "a0>b1 b1>a0");
  EXPECT_EQ(ends_of("between: [a0, b1], count: 2"), "a0>b1 b1>a0 a0>b1 b1>a0");
  EXPECT_EQ(ends_of("from: a0, to: b1, count: 2"), "a0>b1 a0>b1");
  EXPECT_EQ(ends_of("zip: [\"a[0-2]\", \"b[2-0]\"], one_way: true"), "a0>b2 a1>b1 a2>b0");
  EXPECT_EQ(ends_of("zip: [\"a[*]\", \"a[1-2,0]\"], one_way: true"), "a0>a1 a1>a2 a2>a0");
  EXPECT_EQ(ends_of("zip: [[a0, \"b[0-1]\"], \"a[1,2,2]\"], one_way: true"), "a0>a1 b0>a2 b1>a2");
  EXPECT_EQ(ends_of("all: [\"a[0-1]\", \"b[0-1]\"], one_way: true"), "a0>b0 a0>b1 a1>b0 a1>b1");
  EXPECT_EQ(ends_of("all: [\"a[0-2]\"]"), "a0>a1 a1>a0 a0>a2 a2>a0 a1>a2 a2>a1");
  EXPECT_EQ(ends_of("all: [\"a[0-2]\"], one_way: true"), "a0>a1 a0>a2 a1>a2");
}

TEST(CompactForm, ClassesGiveWhatALinkDoesNotSay) {
  const Topology topology = read_good(R"(
espalier: 1
classes:
  fast: {bandwidth: 10 GB/s, latency: 1 us, overhead: 2 us, efficiency: 0.5}
nodes: [{id: a, kind: gpu}, {id: b, kind: gpu}]
links:
  - {from: a, to: b, class: fast}
  - {from: b, to: a, class: fast, bandwidth: 4 GB/s, latency: 0 ns, efficiency: 1}
)");
  const Link& plain = topology.link(LinkId(0));
  EXPECT_EQ(plain.link_class, "fast");
  EXPECT_EQ(plain.bandwidth().bytes_per_second, 5'000'000'000);
  EXPECT_EQ(plain.latency.count, 1'000'000);
  EXPECT_EQ(plain.overhead.count, 2'000'000);
  const Link& own = topology.link(LinkId(1));
  EXPECT_EQ(own.bandwidth().bytes_per_second, 4'000'000'000);
  EXPECT_EQ(own.latency.count, 0);
  EXPECT_EQ(own.overhead.count, 2'000'000);
}

TEST(CompactForm, GroupsNameTheirNodesAndSeeOutwards) {
  const Topology topology = read_good(R"(
espalier: 1
nodes:
  - {id: "leaf[0-1]", kind: switch}
groups:
  - id: pod
    count: 2
    groups:
      - id: box
        count: 2
        host: true
        nodes:
          - {id: gpu, kind: gpu, rail: $box}
          - {id: extra, kind: cpu, rank: false, host: elsewhere}
        links:
          - {between: [gpu, leaf$pod], bandwidth: 1 B/s}
    links:
      - {zip: ["box[*].gpu", "box[*].extra"], bandwidth: 2 B/s, one_way: true}
links:
  - {between: [leaf0, leaf1], bandwidth: 3 B/s}
)");
  EXPECT_EQ(node_names(topology),
            "leaf0 leaf1 pod0.box0.gpu pod0.box0.extra pod0.box1.gpu pod0.box1.extra pod1.box0.gpu pod1.box0.extra "
            "pod1.box1.gpu pod1.box1.extra");
  EXPECT_EQ(topology.node(NodeId(6)).host, "pod1.box0");
  EXPECT_EQ(topology.node(NodeId(7)).host, "elsewhere");
  EXPECT_EQ(topology.node(NodeId(0)).host, "");
  EXPECT_EQ(topology.node(NodeId(8)).rail, 1);
  EXPECT_EQ(link_ends(topology),
            "pod0.box0.gpu>leaf0 leaf0>pod0.box0.gpu pod0.box1.gpu>leaf0 leaf0>pod0.box1.gpu "
            "pod0.box0.gpu>pod0.box0.extra pod0.box1.gpu>pod0.box1.extra "
            "pod1.box0.gpu>leaf1 leaf1>pod1.box0.gpu pod1.box1.gpu>leaf1 leaf1>pod1.box1.gpu "
            "pod1.box0.gpu>pod1.box0.extra pod1.box1.gpu>pod1.box1.extra leaf0>leaf1 leaf1>leaf0");
}

TEST(CompactForm, AnInnerNameHidesAnOuterOne) {
  const Topology topology = read_good(R"(
espalier: 1
classes: {wire: {bandwidth: 1 B/s}}
nodes: [{id: hub, kind: switch}]
groups:
  - id: box
    classes: {wire: {bandwidth: 2 B/s}}
    nodes: [{id: hub, kind: switch}, {id: gpu, count: 2, kind: gpu}]
    links: [{all: ["gpu[*]", hub], class: wire, one_way: true}]
links:
  - {between: [box.gpu0, box.gpu1], class: wire}
)");
  EXPECT_EQ(link_ends(topology), "box.gpu0>box.hub box.gpu1>box.hub box.gpu0>box.gpu1 box.gpu1>box.gpu0");
  EXPECT_EQ(topology.link(LinkId(0)).nominal.bytes_per_second, 2);
  EXPECT_EQ(topology.link(LinkId(2)).nominal.bytes_per_second, 1);
}

constexpr std::string_view with_parameters = R"(
espalier: 1
name: x$n-$$${(n + 1) * 4 % 7 / 2 - 0}
parameters: {n: 2, rate: 5 GB/s, double: "${n * 2}"}
nodes:
  - {id: gpu, count: $double, kind: gpu, rail: "${index / 2}"}
links:
  - {all: ["gpu[0-${double - 1}]"], bandwidth: $rate}
)";

TEST(CompactForm, ParametersAreFilledIn) {
  const Topology topology = read_good(with_parameters);
  EXPECT_EQ(topology.name(), "x2-$2");  // (2 + 1) * 4 = 12, 12 % 7 = 5, 5 / 2 = 2
  EXPECT_EQ(topology.rank_count(), 4U);
  EXPECT_EQ(topology.node(NodeId(2)).rail, 1);
  EXPECT_EQ(topology.link(LinkId(0)).nominal.bytes_per_second, 5'000'000'000);
}

TEST(CompactForm, ParametersCanBeGivenFromOutside) {
  const Topology topology = read_good(with_parameters, {{"n", "3"}, {"rate", "1 GB/s"}});
  EXPECT_EQ(topology.rank_count(), 6U);
  EXPECT_EQ(topology.link(LinkId(0)).nominal.bytes_per_second, 1'000'000'000);
  const TopologyReading refused = read_topology_text(with_parameters, "test.yaml", std::nullopt, {{"m", "3"}});
  ASSERT_EQ(refused.diagnostics.size(), 1U);
  EXPECT_EQ(refused.diagnostics[0].code, "T051");
}

class Includes : public testing::Test {
 protected:
  void SetUp() override {
    const auto* const test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("espalier_") + test->name());
    std::filesystem::create_directories(folder_ / "parts");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, std::string_view text) const { std::ofstream(folder_ / name) << text; }
  [[nodiscard]] TopologyReading read(const std::string& name) const { return read_topology_file(folder_ / name); }

  std::filesystem::path folder_;
};

TEST_F(Includes, AMachineIsUsedAloneAndManyTimes) {
  write("parts/box.yaml", R"(espalier: 1
name: box
include: classes.yaml
parameters: {gpus: 8}
nodes:
  - {id: gpu, count: $gpus, kind: gpu}
  - {id: nvswitch, kind: switch}
links:
  - {all: ["gpu[*]", nvswitch], class: nvlink}
)");
  write("parts/classes.yaml", "espalier: 1\nclasses: {nvlink: {bandwidth: 300 GB/s, latency: 1 us}}\n");
  write("cluster.yaml", R"(espalier: 1
include: parts/classes.yaml
nodes: [{id: leaf, kind: switch}]
groups:
  - id: box
    count: 3
    host: true
    include: {file: parts/box.yaml, parameters: {gpus: "${box + 1}"}}
    links:
      - {all: ["gpu[*]", leaf], class: nvlink}
)");
  const TopologyReading box = read("parts/box.yaml");
  ASSERT_TRUE(box.topology) << render(box.diagnostics.at(0), false);
  EXPECT_EQ(box.topology->rank_count(), 8U);
  const TopologyReading cluster = read("cluster.yaml");
  ASSERT_TRUE(cluster.topology) << render(cluster.diagnostics.at(0), false);
  EXPECT_EQ(cluster.topology->name(), "cluster");
  EXPECT_EQ(cluster.topology->rank_count(), 6U);
  EXPECT_EQ(cluster.topology->link_count(), 24U);
  EXPECT_EQ(cluster.topology->node(cluster.topology->find_node("box2.gpu1")).host, "box2");
}

/// What an import or `topo show --expand` writes names classes that no file defines: labels, whatever is around it.
constexpr std::string_view labelled_box = R"(espalier: 1
nodes: [{id: gpu0, kind: gpu}, {id: gpu1, kind: gpu}, {id: mlx5_0, kind: nic}]
links:
  - {between: [gpu0, gpu1], class: nvlink, bandwidth: 25 GB/s}
  - {between: [gpu0, mlx5_0], class: pcie, bandwidth: 16 GB/s}
)";

TEST_F(Includes, ABoxWithLabelsIsIncludedWhereClassesAreDefined) {
  write("box.yaml", labelled_box);
  write("classes.yaml", "espalier: 1\nclasses: {ndr: {bandwidth: 50 GB/s}}\n");
  const std::string rest = R"(
nodes: [{id: leaf, kind: switch}]
groups: [{id: b, count: 2, include: box.yaml, links: [{between: [mlx5_0, leaf], class: ndr}]}]
)";
  for (const std::string classes : {"classes: {ndr: {bandwidth: 50 GB/s}}", "include: classes.yaml"}) {
    write("outer.yaml", "espalier: 1\n" + classes + rest);
    const TopologyReading reading = read("outer.yaml");
    ASSERT_TRUE(reading.topology) << render(reading.diagnostics.at(0), false);
    EXPECT_EQ(reading.topology->link_count(), 12U);  // 3 cables of each box, both ways
    const NodeId from = reading.topology->find_node("b1.gpu0"), to = reading.topology->find_node("b1.mlx5_0");
    EXPECT_EQ(reading.topology->link(reading.topology->links_between(from, to)[0]).link_class, "pcie");
  }
}

TEST_F(Includes, AnUnknownClassIsReportedOnceForAllItsLinks) {
  // A file with classes of its own, or included ones, may not name others, with a rate or without.
  write("classes.yaml", "espalier: 1\nclasses: {nvlink: {bandwidth: 25 GB/s}}\n");
  write("typo.yaml", R"(espalier: 1
include: classes.yaml
nodes: [{id: "gpu[0-2]", kind: gpu}]
links:
  - {between: [gpu0, gpu1], class: nvlnk, bandwidth: 25 GB/s}
  - {between: [gpu1, gpu2], class: nvlnk}
)");
  const TopologyReading reading = read("typo.yaml");
  ASSERT_EQ(reading.diagnostics.size(), 1U);
  EXPECT_EQ(reading.diagnostics[0].code, "T044");
}

TEST_F(Includes, TextsReadFromAGivenFolder) {
  write("box.yaml", "espalier: 1\nnodes: [{id: a, kind: gpu}]\n");
  const std::string text = "espalier: 1\ninclude: [box.yaml]\n";
  EXPECT_TRUE(read_topology_text(text, "t", folder_).topology);
  const TopologyReading refused = read_topology_text(text, "t");
  ASSERT_EQ(refused.diagnostics.size(), 1U);
  EXPECT_EQ(refused.diagnostics[0].code, "T063");
}

/// Each block of docs/topology.md that begins with a topology's first key, or a comment before it.
TEST(TopologyDocument, ItsExamplesAreRead) {
  std::ifstream stream(ESPALIER_SOURCE_DIR "/docs/topology.md");
  std::string block;
  bool inside = false;
  int blocks = 0;
  for (std::string line; std::getline(stream, line);) {
    if (line == "```yaml") {
      inside = true;
      block.clear();
    } else if (line == "```" && inside) {
      inside = false;
      ++blocks;
      const Topology topology = read_good(block);
      EXPECT_EQ(write_topology(read_good(write_topology(topology))), write_topology(topology));
      if (topology.name() == "dgx-h100-x128") {
        EXPECT_EQ(topology.rank_count(), 1024U);
        EXPECT_LT(std::ranges::count(block, '\n'), 40);
      }
    } else if (inside) {
      block += line + "\n";
    }
  }
  EXPECT_GE(blocks, 9);
}

}  // namespace
}  // namespace espalier
