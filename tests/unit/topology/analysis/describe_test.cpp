#include "topology/analysis/describe.h"

#include <gtest/gtest.h>

#include "topology/analysis/analysis.h"
#include "topology/generate/generate.h"
#include "topology/names/name_list.h"
#include "topology/yaml/read_topology.h"

namespace espalier {
namespace {

Topology shipped(const std::string& name) {
  return *read_topology_file(std::string(ESPALIER_SOURCE_DIR) + "/configs/" + name + ".yaml").topology;
}

TEST(Describe, ShowsTheDamagedMachine) {
  EXPECT_EQ(describe_topology(shipped("dgx1v-degraded")), R"(dgx1v-degraded: 8 ranks, 8 nodes, 46 links

Nodes
  gpu  8  ranks  gpu[0-7]

Links, each direction counted
  class    links bandwidth latency  between
  nvlink2     46   22 GB/s  700 ns  gpu - gpu  25 GB/s x 0.88

Out of each node
  gpu  2 110 GB/s  5 nvlink2  gpu[0-1]
  gpu  6 132 GB/s  6 nvlink2  gpu[2-7]

Rank to rank, GB/s over the shortest ways; . only through other ranks
        gpu0 gpu1 gpu2 gpu3 gpu4 gpu5 gpu6 gpu7
  gpu0     -    .   22 2x22 2x22    .    .    .
  gpu1     .    - 2x22   22    . 2x22    .    .
  gpu2    22 2x22    - 2x22    .    .   22    .
  gpu3  2x22   22 2x22    -    .    .    .   22
  gpu4  2x22    .    .    .    -   22   22 2x22
  gpu5     . 2x22    .    .   22    - 2x22   22
  gpu6     .    .   22    .   22 2x22    - 2x22
  gpu7     .    .    .   22 2x22   22 2x22    -

Bisection: 132 GB/s (the least of all balanced halves)
  gpu[0-3] | gpu[4-7]
  cut: 6 nvlink2
     gpu0>gpu4#0 gpu0>gpu4#1 gpu1>gpu5#0 gpu1>gpu5#1 gpu2>gpu6 gpu3>gpu7

Warnings
  T101: 6 of 8 GPUs have 6 nvlink2 links, gpu0 and gpu1 have 5
)");
}

TEST(Describe, ShowsLargeMachinesByRepresentativesAndHosts) {
  // The middle one of three boxes is split: 12 NICs of 50 GB/s and 4 NVLinks of 450 GB/s lead out of a half.
  EXPECT_EQ(describe_topology(*generate_rail_boxes({.boxes = 3, .spines = 2})),
            R"(rail-boxes-3x8: 24 ranks, 61 nodes, 176 links

Nodes
  switch  13         rail[0-7], box[0-2].nvswitch, spine[0-1]
  gpu     24  ranks  box[0-2].gpu[0-7]
  nic     24         box[0-2].nic[0-7]

Links, each direction counted
  class   links bandwidth latency  between
  nvlink     48  450 GB/s    1 us  gpu - switch
  pcie       48   64 GB/s  500 ns  gpu - nic
  nic        48   50 GB/s    1 us  nic - switch
  uplink     32   75 GB/s    1 us  switch - switch

Out of each node
  switch   8  300 GB/s  3 nic + 2 uplink   rail[0-7]
  switch   3 3600 GB/s  8 nvlink           box[0-2].nvswitch
  gpu     24  514 GB/s  1 nvlink + 1 pcie  box[0-2].gpu[0-7]
  nic     24  114 GB/s  1 nic + 1 pcie     box[0-2].nic[0-7]
  switch   2  600 GB/s  8 uplink           spine[0-1]

From rank to NIC
  rank       nearest NIC  through  processor  fabric
  box0.gpu0  box0.nic0    -        -          rail0
  box0.gpu1  box0.nic1    -        -          rail1
  box0.gpu2  box0.nic2    -        -          rail2
  box0.gpu3  box0.nic3    -        -          rail3
  box0.gpu4  box0.nic4    -        -          rail4
  box0.gpu5  box0.nic5    -        -          rail5
  box0.gpu6  box0.nic6    -        -          rail6
  box0.gpu7  box0.nic7    -        -          rail7
  box1.gpu0  box1.nic0    -        -          rail0
  box1.gpu1  box1.nic1    -        -          rail1
  box1.gpu2  box1.nic2    -        -          rail2
  box1.gpu3  box1.nic3    -        -          rail3
  box1.gpu4  box1.nic4    -        -          rail4
  box1.gpu5  box1.nic5    -        -          rail5
  box1.gpu6  box1.nic6    -        -          rail6
  box1.gpu7  box1.nic7    -        -          rail7
  and 8 more ranks

From box0.gpu0 over the shortest ways
   7 ranks 450 GB/s  2 hops  box0.gpu[1-7]
   2 ranks  50 GB/s  4 hops  box[1-2].gpu0
  14 ranks  50 GB/s  6 hops  box[1-2].gpu[1-7]

Host to host, GB/s with all else idle
        box0 box1 box2
  box0     -  400  400
  box1   400    -  400
  box2   400  400    -

Bisection: 2400 GB/s (the least that was found)
  box0.gpu[0-7], box1.gpu[0-3] | box1.gpu[4-7], box2.gpu[0-7]
  cut: 12 nic + 4 nvlink
)");
}

TEST(Describe, ShowsAMachineWithoutLinks) {
  EXPECT_EQ(describe_topology(*generate_random({.ranks = 1, .extra = 0, .seed = 5})),
            R"(random-5: 1 rank, 1 node, 0 links

Nodes
  gpu  1  ranks  gpu0

Out of each node
  gpu  1 0 GB/s    gpu0
)");
}

TEST(Connections, CountWhatTheShortestWaysCarryTogether) {
  // DGX-2: six planes of 25 GB/s to the own board, and to the other board over six trunks.
  const std::vector<Connection> from = connections_from(shipped("dgx2"), Rank(0));
  EXPECT_EQ(from[0].hops, 0U);
  EXPECT_EQ(from[7].hops, 2U);
  EXPECT_EQ(from[8].hops, 3U);
  EXPECT_EQ(from[7].bandwidth.bytes_per_second, 150'000'000'000);
  EXPECT_EQ(from[8].bandwidth.bytes_per_second, 150'000'000'000);
  // DGX-1V: two NVLinks from gpu0 to gpu3; to gpu5 the way over both CPUs, 6 GB/s.
  const std::vector<Connection> cube = connections_from(shipped("dgx1v"), Rank(0));
  EXPECT_EQ(cube[3].direct_links, 2U);
  EXPECT_EQ(cube[3].bandwidth.bytes_per_second, 44'000'000'000);
  EXPECT_EQ(cube[5].direct_links, 0U);
  EXPECT_EQ(cube[5].bandwidth.bytes_per_second, 6'000'000'000);
}

TEST(Connections, CountBackplanesAndOneWayLinks) {
  std::vector<Node> nodes(3);
  nodes[0].id = "a";
  nodes[1].id = "b";
  nodes[2] = {.id = "s", .kind = NodeKind::switch_node, .is_rank = false, .bandwidth = {40}};
  std::vector<Link> links(3);
  links[0] = {NodeId(0), NodeId(2), {.nominal = {100}}};
  links[1] = {NodeId(2), NodeId(1), {.nominal = {100}}};
  links[2] = {NodeId(1), NodeId(0), {.nominal = {7}}};
  const auto topology = Topology::make("small", nodes, links);
  EXPECT_EQ(connections_from(*topology, Rank(0))[1].bandwidth.bytes_per_second, 40);
  EXPECT_EQ(connections_from(*topology, Rank(1))[0].bandwidth.bytes_per_second, 7);
  EXPECT_EQ(connections_from(*topology, Rank(1))[0].hops, 1U);
}

TEST(Connections, BetweenGroupsLeaveOutThirdOnes) {
  // A line of three pairs: the outer ones reach each other only through the middle one.
  const auto line = generate_mesh({.dims = {6}, .wire = {.bandwidth = {9}}});
  const auto rates = group_to_group(*line, {0, 0, 1, 1, 2, 2}, 3);
  EXPECT_EQ(rates[0][1].bytes_per_second, 9);
  EXPECT_EQ(rates[2][1].bytes_per_second, 9);
  EXPECT_EQ(rates[0][2].bytes_per_second, 0);
  EXPECT_EQ(rates[1][1].bytes_per_second, 0);
}

TEST(NameList, UsesRangesWhereNamesAllowIt) {
  EXPECT_EQ(summarize_names({}), "none");
  EXPECT_EQ(summarize_names({"gpu3"}), "gpu3");
  EXPECT_EQ(summarize_names({"gpu0", "gpu1", "gpu2", "gpu5"}), "gpu[0-2,5]");
  EXPECT_EQ(summarize_names({"n08", "n09", "n10"}), "n[08-10]");
  EXPECT_EQ(summarize_names({"n9", "n10"}), "n[9-10]");
  EXPECT_EQ(summarize_names({"a", "b", "a2"}), "a, b, a2");
  EXPECT_EQ(summarize_names({"b0.g0", "b0.g1", "b1.g0", "b1.g1"}), "b[0-1].g[0-1]");
  EXPECT_EQ(summarize_names({"b0.g0", "b0.g1", "b1.g0"}), "b0.g[0-1], b1.g0");
  EXPECT_EQ(summarize_names({"p", "q", "r", "s", "t", "u"}), "p .. u (6)");
}

}  // namespace
}  // namespace espalier
