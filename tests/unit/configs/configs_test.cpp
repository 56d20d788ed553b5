#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "planners/bounds/cut_bound.h"
#include "planners/planning_problem.h"
#include "topology/analysis/symmetry.h"
#include "topology/generate/generate.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

namespace fs = std::filesystem;

const fs::path folder = fs::path(ESPALIER_SOURCE_DIR) / "configs";

/// What a shipped topology must be. Links are directed: a cable counts twice.
struct Shipped {
  const char* name;
  std::size_t ranks;
  std::size_t nodes;
  std::size_t links;
  /// The all_gather bound as 1/x*: seconds per shard of 1 GB, the worst of (ranks inside)/(GB/s leaving) over node
  /// sets.
  std::int64_t numerator;
  std::int64_t denominator;
};

void PrintTo(const Shipped& shipped, std::ostream* out) { *out << shipped.name; }

const Shipped all_shipped[] = {
    // 24 duplex NVLinks; a GPU takes 7 shards in over 6 x 22 GB/s.
    {"dgx1v-nvlink", 8, 8, 2 * 24, 7, 132},
    // One NVLink less, and gpu0 is left with 5 x 22.
    {"dgx1v-degraded", 8, 8, 2 * 23, 7, 110},
    // + 4 PCIe switches, 2 CPUs, 4 NICs; + 8 + 4 + 4 PCIe cables and the sockets' one. A GPU has 132 + 12 GB/s.
    {"dgx1v", 8, 8 + 4 + 2 + 4, 2 * (24 + 17), 7, 144},
    // 16 GPUs x 6 switches, 6 trunks; a GPU has 6 x 25.
    {"dgx2", 16, 16 + 12, 2 * (96 + 6), 15, 150},
    // 8 GPUs, a switch, 8 NICs that lead nowhere.
    {"dgx-a100", 8, 17, 2 * 16, 7, 300},
    // 15 shards into a GPU over 300 + 25; leaving a box, 8 shards over 200 is less.
    {"dgx-a100-x2", 16, 2 * 17 + 2, 2 * (2 * 16 + 16), 3, 65},
    // 16 boxes, 8 leaves, 4 spines; 120 shards into a box over 8 x 25.
    {"dgx-a100-x16", 128, 16 * 17 + 12, 2 * (16 * 24 + 32), 120, 200},
    {"dgx-h100", 8, 17, 2 * 16, 7, 450},
    {"dgx-h100-without-nvls", 8, 17, 2 * 16, 7, 450},
    // The same GPUs and their switch alone.
    {"dgx-h100-nvls", 8, 9, 2 * 8, 7, 450},
    // 31 shards into a GPU over 450 + 50; into a box, 24 over 400 is less.
    {"dgx-h100-x4", 32, 4 * 17 + 12, 2 * (4 * 24 + 32), 31, 500},
    // 4 x 8 leaves and 16 spines; 1016 shards into a box over 8 x 50.
    {"dgx-h100-x128", 1024, 128 * 17 + 48, 2 * (128 * 24 + 32 * 16), 1016, 400},
    {"gb200-nvl72", 72, 73, 2 * 72, 71, 900},
    {"dgx-h200", 8, 17, 2 * 16, 7, 450},
    {"dgx-b200", 8, 17, 2 * 16, 7, 900},
    {"dgx-b300", 8, 17, 2 * 16, 7, 900},
    {"gb300-nvl72", 72, 73, 2 * 72, 71, 900},
    // As dgx-h100-x4.
    {"dgx-h200-cluster", 32, 4 * 17 + 12, 2 * (4 * 24 + 32), 31, 500},
    // 24 shards into a box over 8 x 50.
    {"dgx-b200-cluster", 32, 4 * 17 + 12, 2 * (4 * 24 + 32), 24, 400},
    // 31 shards into a GPU over 900 + 100; into a box, 24 over 800 is less.
    {"dgx-b300-cluster", 32, 4 * 17 + 12, 2 * (4 * 24 + 32), 31, 1000},
    // By the cut; what passes a socket's backplane takes 8 shards over 28 in all (espalier bound).
    {"l40s-pcie", 8, 10, 2 * 9, 70, 252},
    {"rtx-pro-6000-pcie", 8, 10, 2 * 9, 70, 504},
    // 16 dies with 7 links each; 14 shards into the pair of dies 0 and 1 over 6 x 50.
    {"mi250", 16, 16, 16 * 7, 14, 300},
    // 30 shards into that pair over 300 + 2 x 16.
    {"mi250-x2", 32, 33, 2 * (16 * 7 + 32), 30, 332},
    {"mi300x", 8, 8, 8 * 7, 7, 7 * 64},
    // 7 shards into a GPU over 24; between the sockets, 4 over 16 is less.
    {"rtx4090-pcie", 8, 10, 2 * 9, 7, 24},
    {"torus-4x4x4", 64, 64, 64 * 6, 63, 6 * 50},
    // 63 shards into a host over 12.5; into a rack, 56 over 25 is less.
    {"leaf-spine-64", 64, 64 + 10, 2 * (64 + 16), 126, 25},
    // 72 hosts, 36 routers; 9 x 6 local cables, 36 global ones. 71 shards into a host over 25.
    {"dragonfly", 72, 108, 2 * (72 + 54 + 36), 71, 25},
    // 3 shards into the slowest host over 1.25 x 0.941.
    {"ethernet-mixed", 4, 5, 2 * 4, 300'000, 117'625},
    // h3 takes 3 shards over 1.25 + 3.125.
    // 3 shards into a rank over 20.
    {"one-host", 4, 5, 2 * 4, 3, 20},
    {"lab-mixed", 4, 5, 2 * 6, 24, 35},
    // 2 boxes of 8 GPUs, NVSwitch, 4 PCIe switches, 4 NICs, and the fabric; 8 shards into a box over 4 x 12.5.
    {"aws-p4d-x2", 16, 2 * 17 + 1, 2 * 2 * (8 + 8 + 4 + 4), 8, 50},
    // 2 boxes of 8 GPUs, NVSwitch, 8 x (PCIe switch, 4 NICs), and the fabric; 15 shards into a GPU over 450 + 48.
    {"aws-p5-x2", 16, 2 * 49 + 1, 2 * 2 * (8 + 8 + 32 + 32), 15, 498},
};

class Config : public testing::TestWithParam<Shipped> {
 protected:
  static Topology read() {
    TopologyReading reading = read_topology_file(folder / (std::string(GetParam().name) + ".yaml"));
    for (const Diagnostic& diagnostic : reading.diagnostics) ADD_FAILURE() << render(diagnostic, false);
    return *std::move(reading.topology);
  }
};

TEST_P(Config, HasTheCountsOfTheMachine) {
  const Topology topology = read();
  EXPECT_EQ(topology.name(), GetParam().name);
  EXPECT_EQ(topology.rank_count(), GetParam().ranks);
  EXPECT_EQ(topology.node_count(), GetParam().nodes);
  EXPECT_EQ(topology.link_count(), GetParam().links);
}

TEST_P(Config, SurvivesWritingAndReading) {
  const Topology topology = read();
  const std::string text = write_topology(topology);
  const TopologyReading again = read_topology_text(text, "written.yaml");
  ASSERT_TRUE(again.topology);
  ASSERT_EQ(again.topology->node_count(), topology.node_count());
  ASSERT_EQ(again.topology->link_count(), topology.link_count());
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    ASSERT_EQ(again.topology->link(LinkId(i)), topology.link(LinkId(i)));
  }
  EXPECT_EQ(write_topology(*again.topology), text);
}

TEST_P(Config, OnlyTheDamagedMachineIsWarnedAbout) {
  const std::vector<Diagnostic> found = find_asymmetry(read());
  if (GetParam().name != std::string("dgx1v-degraded")) {
    for (const Diagnostic& diagnostic : found) ADD_FAILURE() << render(diagnostic, false);
    return;
  }
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found.front().message, "6 of 8 GPUs have 6 nvlink2 links, gpu0 and gpu1 have 5");
}

TEST_P(Config, HasItsKnownAllGatherBound) {
  const Topology topology = read();
  const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
  const auto bound = planners::cut_bound(topology, {CollectiveKind::all_gather, ranks, Rank()});
  ASSERT_TRUE(bound) << bound.error().message;
  const Rational shard_time = bound->time_per_byte * ranks * Rational(1'000'000'000);
  EXPECT_EQ(shard_time, make_rational(GetParam().numerator, GetParam().denominator)) << to_string(shard_time);
}

INSTANTIATE_TEST_SUITE_P(Shipped, Config, testing::ValuesIn(all_shipped), [](const auto& instance) {
  std::string name = instance.param.name;
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
});

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

TEST(Configs, AreAllListedHereAndInTheReadme) {
  const std::string readme = text_of(folder / "README.md");
  std::set<std::string> found;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".yaml") found.insert(entry.path().stem().string());
  }
  std::set<std::string> listed;
  for (const Shipped& shipped : all_shipped) listed.insert(shipped.name);
  EXPECT_EQ(found, listed);
  for (const std::string& name : found) {
    EXPECT_NE(readme.find("`" + name + ".yaml`"), std::string::npos) << name << " is not in configs/README.md";
    const std::string text = text_of(folder / (name + ".yaml"));
    EXPECT_TRUE(text.starts_with("# yaml-language-server: $schema=espalier.schema.json\n")) << name;
    EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 40) << name;
  }
}

TEST(Configs, TheTorusIsTheGeneratedOne) {
  const TopologyReading reading = read_topology_file(folder / "torus-4x4x4.yaml");
  const auto generated = generate_torus({.dims = {4, 4, 4}});
  const auto joints = [](const Topology& topology) {
    std::multiset<std::pair<NodeId, NodeId>> pairs;
    for (const Link& link : topology.links()) pairs.emplace(link.tail, link.head);
    return pairs;
  };
  EXPECT_EQ(joints(*reading.topology), joints(*generated));
}

TEST(Configs, TheDragonflyJoinsEveryTwoGroupsOnce) {
  const TopologyReading reading = read_topology_file(folder / "dragonfly.yaml");
  const Topology& dragonfly = *reading.topology;
  std::set<std::pair<std::string, std::string>> joined;
  const auto group = [&](NodeId node) { return dragonfly.node(node).id.substr(0, dragonfly.node(node).id.find('.')); };
  for (const Link& link : dragonfly.links()) {
    if (link.link_class != "global") continue;
    EXPECT_TRUE(joined.emplace(group(link.tail), group(link.head)).second);
  }
  EXPECT_EQ(joined.size(), 9U * 8);
  for (std::size_t i = 0; i < dragonfly.node_count(); ++i) {
    EXPECT_EQ(dragonfly.out_links(NodeId(i)).size(), dragonfly.node(NodeId(i)).is_rank ? 1U : 2U + 3 + 2);
  }
}

}  // namespace
}  // namespace espalier
