#include <gtest/gtest.h>

#include "tests/support/read_good.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

using test::messages;
using test::read_good;

std::vector<std::string> link_names(const Topology& topology) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < topology.link_count(); ++i) names.push_back(topology.link_name(LinkId(i)));
  return names;
}

constexpr std::string_view two_gpus = R"(espalier: 1
name: two-gpus-one-switch
nodes:
  - {id: g0, kind: gpu}            # gpu and cpu nodes are ranks, in file order, unless rank: false
  - {id: g1, kind: gpu}
  - {id: s0, kind: switch}
links:
  - {between: [g0, s0], bandwidth: 25 GB/s, latency: 1 us}     # both directions, each at this rate
  - {between: [g1, s0], bandwidth: 25 GB/s, latency: 1 us}
  - {from: g0, to: g1, bandwidth: 200 Gbit/s, latency: 500 ns} # one direction only
)";

TEST(ReadTopology, ReadsThePlainForm) {
  const Topology topology = read_good(two_gpus);
  EXPECT_EQ(topology.name(), "two-gpus-one-switch");
  EXPECT_EQ(topology.node_count(), 3U);
  EXPECT_EQ(topology.rank_count(), 2U);
  EXPECT_EQ(link_names(topology), (std::vector<std::string>{"g0>s0", "s0>g0", "g1>s0", "s0>g1", "g0>g1"}));
  EXPECT_EQ(topology.link(LinkId(4)).nominal.bytes_per_second, 25'000'000'000);
  EXPECT_EQ(topology.link(LinkId(4)).latency.count, 500'000);
  EXPECT_EQ(topology.link(LinkId(1)).latency.count, 1'000'000);
}

TEST(ReadTopology, ReadsEveryKeyOfNodesAndLinks) {
  const Topology topology = read_good(R"(
espalier: 1
name: all keys
nodes:
  - {id: a, kind: cpu, bandwidth: 200 GB/s, reduce_bandwidth: 10 GB/s, host: box0, rail: 3}
  - {id: b, kind: gpu}
  - {id: c, kind: gpu, rank: false}
  - {id: s, kind: switch, multicast: true, reduction: true}
links:
  - {between: [a, s], class: fast, bandwidth: 25 GB/s, latency: 1 us, overhead: 250 ns, efficiency: 0.92}
  - {between: [b, s], bandwidth: 25 GB/s}
  - {from: s, to: c, bandwidth: 1 B/s}
)");
  const Node& a = topology.node(NodeId(0));
  EXPECT_EQ(a.kind, NodeKind::cpu);
  EXPECT_EQ(a.bandwidth.bytes_per_second, 200'000'000'000);
  EXPECT_EQ(a.reduce_bandwidth.bytes_per_second, 10'000'000'000);
  EXPECT_EQ(a.host, "box0");
  EXPECT_EQ(a.rail, 3);
  EXPECT_FALSE(topology.node(NodeId(2)).is_rank);
  EXPECT_TRUE(topology.node(NodeId(3)).multicast);
  EXPECT_TRUE(topology.node(NodeId(3)).reduction);
  const Link& fast = topology.link(LinkId(0));
  EXPECT_EQ(fast.link_class, "fast");
  EXPECT_EQ(fast.overhead.count, 250'000);
  EXPECT_EQ(fast.efficiency_ppm, 920'000);
  EXPECT_EQ(fast.bandwidth().bytes_per_second, 23'000'000'000);  // 25e9 x 0.92
  EXPECT_EQ(topology.link(LinkId(2)).latency.count, 0);
}

TEST(ReadTopology, TakesTheFileNameWhereNoNameIsWritten) {
  const Topology topology = read_good("espalier: 1\nnodes: [{id: a, kind: gpu}]\n");
  EXPECT_EQ(topology.name(), "test");
}

TEST(ReadTopology, ReadsTheNameOfItsProfile) {
  const std::string text = "profile: nccl-volta:one-process\n" + std::string(two_gpus);
  const TopologyReading reading = read_topology_text(text, "test");
  ASSERT_TRUE(reading.topology);
  EXPECT_EQ(reading.profile, "nccl-volta:one-process");
  EXPECT_EQ(read_topology_text(two_gpus, "test").profile, "");
  const std::string written = write_topology(*reading.topology, {}, reading.profile);
  EXPECT_EQ(read_topology_text(written, "test").profile, reading.profile) << written;
  const std::string json = write_topology_json(*reading.topology, {}, reading.profile);
  EXPECT_EQ(read_topology_text(json, "test").profile, reading.profile) << json;
  EXPECT_FALSE(read_topology_text("profile: [a, b]\n" + std::string(two_gpus), "test").topology);
}

TEST(ReadTopology, KeepsTheGpu) {
  const TopologyReading reading = read_topology_text("gpu: h100-sxm\n" + std::string(two_gpus), "test");
  ASSERT_TRUE(reading.topology);
  EXPECT_EQ(reading.gpu, "h100-sxm");
  EXPECT_EQ(read_topology_text(two_gpus, "test").gpu, "");
  const std::string written = write_topology(*reading.topology, {}, "nccl-hopper", reading.gpu);
  EXPECT_EQ(read_topology_text(written, "test").gpu, reading.gpu) << written;
  const std::string json = write_topology_json(*reading.topology, {}, {}, reading.gpu);
  EXPECT_EQ(read_topology_text(json, "test").gpu, reading.gpu) << json;
}

TEST(ReadTopology, ReadsJson) {
  const Topology topology = read_good(two_gpus);
  const std::string json = write_topology_json(topology);
  EXPECT_EQ(json.find('\n'), std::string::npos);
  const Topology again = read_good(json);
  EXPECT_EQ(write_topology(again), write_topology(topology));
}

TEST(WriteTopology, KeepsTheOrderOfParallelLinks) {
  std::vector<Node> nodes(3);
  nodes[0].id = "a";
  nodes[1].id = "b b";
  nodes[2].id = "null";
  const auto link = [](std::size_t tail, std::size_t head, std::int64_t rate) {
    Link made;
    made.tail = NodeId(tail);
    made.head = NodeId(head);
    made.nominal = {rate};
    return made;
  };
  // a>b#0 and a>b#1 differ in rate; their reverses come in the other order and far away.
  const auto topology = Topology::make("order $1", nodes,
                                       {link(0, 1, 10), link(0, 1, 20), link(1, 0, 20), link(2, 0, 5), link(1, 0, 10),
                                        link(0, 2, 5), link(2, 1, 7), link(1, 2, 7)});
  ASSERT_TRUE(topology.has_value());
  const Topology again = read_good(write_topology(*topology));
  EXPECT_EQ(again.name(), "order $1");
  EXPECT_EQ(link_names(again), link_names(*topology));
  for (std::size_t i = 0; i < topology->link_count(); ++i) {
    EXPECT_EQ(again.link(LinkId(i)).nominal, topology->link(LinkId(i)).nominal);
  }
  EXPECT_EQ(write_topology(again), write_topology(*topology));
}

}  // namespace
}  // namespace espalier
