#include "topology/analysis/affinity.h"

#include <gtest/gtest.h>

#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

std::vector<std::string> names(const Topology& topology, const std::vector<NodeId>& nodes) {
  std::vector<std::string> found;
  for (const NodeId node : nodes) found.push_back(topology.node(node).id);
  return found;
}

// Two sockets: g0 and its NIC under one bridge of c0, g1 under another bridge of c0 without a NIC, g2 directly at c1
// that has two NICs. The rail switch joins all NICs; an NVLink switch joins the GPUs and leads to no NIC.
Topology two_sockets() {
  return *read_topology_text(R"(
espalier: 1
name: two-sockets
nodes:
  - {id: "g[0-2]", kind: gpu}
  - {id: "p[0-1]", kind: pcie}
  - {id: "c[0-1]", kind: cpu, rank: false}
  - {id: "n[0-2]", kind: nic}
  - {id: rail, kind: switch}
  - {id: nvs, kind: switch}
links:
  - {between: [g0, p0], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [n0, p0], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [p0, c0], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [g1, p1], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [p1, c0], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [c0, c1], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [g2, c1], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [n1, c1], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [n2, c1], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [n0, rail], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [n1, rail], bandwidth: 25 GB/s, latency: 1 us}
  - {between: [g0, nvs], bandwidth: 300 GB/s, latency: 1 us}
  - {between: [g1, nvs], bandwidth: 300 GB/s, latency: 1 us}
  - {between: [g2, nvs], bandwidth: 300 GB/s, latency: 1 us}
)",
                             "two-sockets.yaml")
              .topology;
}

TEST(Affinity, IsTheNearestNicInsideTheMachine) {
  const Topology topology = two_sockets();
  const std::vector<Affinity> found = find_affinities(topology);
  ASSERT_EQ(found.size(), 3U);
  EXPECT_EQ(names(topology, found[0].nics), (std::vector<std::string>{"n0"}));
  EXPECT_EQ(names(topology, found[0].bridges), (std::vector<std::string>{"p0"}));
  EXPECT_EQ(topology.node(found[0].processor).id, "c0");
  // g1 - p1 - c0 - p0 - n0 has four links, and so has g1 - p1 - c0 - c1 - n1 or n2.
  EXPECT_EQ(names(topology, found[1].nics), (std::vector<std::string>{"n0", "n1", "n2"}));
  EXPECT_EQ(names(topology, found[1].bridges), (std::vector<std::string>{"p1", "c0", "p0"}));
  EXPECT_EQ(names(topology, found[2].nics), (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(names(topology, found[2].bridges), (std::vector<std::string>{"c1"}));
  EXPECT_EQ(topology.node(found[2].processor).id, "c1");
  EXPECT_EQ(names(topology, found[2].fabric), (std::vector<std::string>{"rail"}));
}

TEST(Affinity, IsEmptyWhereNoNicIs) {
  const std::string file = std::string(ESPALIER_SOURCE_DIR) + "/configs/dgx1v-degraded.yaml";
  const Topology topology = *read_topology_file(file).topology;
  for (const Affinity& one : find_affinities(topology)) {
    EXPECT_TRUE(one.nics.empty() && one.bridges.empty() && one.fabric.empty());
  }
}

}  // namespace
}  // namespace espalier
