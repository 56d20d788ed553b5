#include <gtest/gtest.h>

#include "base/random.h"
#include "topology/reachable.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

/// Names that are hard on a writer: words with a meaning in YAML, blanks, quotes, colons, dollars, other alphabets.
std::string random_name(Random& random, std::size_t number) {
  constexpr std::string_view stems[] = {"gpu",  "null", "true", "a b",          "x: y", "it's", "\"q\"", "$n",
                                        "${n}", "-",    "~",    "0x1F",         "1e3",  "a,b",  "{a}",   "&a",
                                        "*a",   "!t",   "a\\n", "\u00fc\u4e2d", "%off", "@at",  "`",     "box.",
                                        "?",    ":",    "| x",  "a/b",          "=",    "<<"};
  return std::string(stems[random.below(std::size(stems))]) + std::to_string(number);
}

Node random_node(Random& random, std::size_t number) {
  Node node;
  node.id = random_name(random, number);
  node.kind = static_cast<NodeKind>(random.below(5));
  const bool may_be_rank = node.kind == NodeKind::gpu || node.kind == NodeKind::cpu;
  node.is_rank = may_be_rank && random.below(4) > 0;
  if (random.below(3) == 0) node.bandwidth = {static_cast<std::int64_t>(random.next() >> (1 + random.below(60)))};
  if (random.below(3) == 0) node.reduce_bandwidth = {static_cast<std::int64_t>(random.below(1'000'000'000'000))};
  if (node.kind == NodeKind::switch_node) {
    node.multicast = random.below(2) == 0;
    node.reduction = random.below(2) == 0;
  }
  if (random.below(2) == 0) node.host = random_name(random, random.below(3));
  if (random.below(2) == 0) node.rail = static_cast<std::int32_t>(random.below(INT32_MAX));
  return node;
}

Link random_link(Random& random, std::size_t node_count) {
  Link link;
  link.tail = NodeId(random.below(node_count));
  do {
    link.head = NodeId(random.below(node_count));
  } while (link.head == link.tail);
  link.nominal = {1'000'000 + static_cast<std::int64_t>(random.next() >> (1 + random.below(43)))};
  constexpr std::uint64_t hour_ps = 3'600'000'000'000'000;  // The longest latency that a topology may have.
  link.latency = {static_cast<std::int64_t>(random.below(10) == 0 ? 0 : random.next() % hour_ps >> random.below(52))};
  if (random.below(2) == 0) link.overhead = {static_cast<std::int64_t>(random.below(1'000'000'000))};
  if (random.below(2) == 0) link.efficiency_ppm = static_cast<std::int32_t>(random.between(1, 1'000'000));
  if (random.below(2) == 0) link.link_class = random_name(random, random.below(3));
  return link;
}

Link reversed(Link link) {
  std::swap(link.tail, link.head);
  return link;
}

/// Any multigraph, ranks joined in a ring; parallel links, reverses next to their originals and far from them.
Topology random_topology(std::uint64_t seed) {
  Random random(seed);
  std::vector<Node> nodes;
  const std::size_t node_count = 2 + random.below(12);
  for (std::size_t i = 0; i < node_count; ++i) nodes.push_back(random_node(random, i));
  nodes[0].kind = NodeKind::gpu;
  nodes[0].is_rank = true;
  nodes[0].multicast = nodes[0].reduction = false;
  std::vector<Link> links;
  for (std::size_t i = 0; i < node_count; ++i) {
    links.push_back(random_link(random, node_count));
    links.back().tail = NodeId(i);
    links.back().head = NodeId((i + 1) % node_count);
  }
  const std::size_t more = random.below(20);
  for (std::size_t i = 0; i < more; ++i) {
    const std::uint64_t kind = random.below(4);
    if (kind == 0) links.push_back(random_link(random, node_count));
    if (kind == 1) links.push_back(reversed(links.back()));
    if (kind == 2) links.push_back(reversed(links[random.below(links.size())]));
    if (kind == 3) links.push_back(links[random.below(links.size())]);
  }
  auto topology = Topology::make(random_name(random, seed), nodes, links);
  EXPECT_TRUE(topology.has_value()) << topology.error().message;
  for (Node& node : nodes) node.relay = !node.is_rank || random.below(4) > 0;
  auto some_relay = Topology::make(topology->name(), std::move(nodes), std::move(links));
  return find_unreachable(*some_relay) ? *std::move(topology) : *std::move(some_relay);
}

void expect_equal(const Topology& a, const Topology& b) {
  EXPECT_EQ(a.name(), b.name());
  ASSERT_EQ(a.node_count(), b.node_count());
  ASSERT_EQ(a.link_count(), b.link_count());
  for (std::size_t i = 0; i < a.node_count(); ++i) {
    const Node& left = a.node(NodeId(i));
    const Node& right = b.node(NodeId(i));
    EXPECT_EQ(left.id, right.id);
    EXPECT_EQ(left.kind, right.kind);
    EXPECT_EQ(left.is_rank, right.is_rank);
    EXPECT_EQ(left.must_not_relay(), right.must_not_relay());
    EXPECT_EQ(left.bandwidth, right.bandwidth);
    EXPECT_EQ(left.reduce_bandwidth, right.reduce_bandwidth);
    EXPECT_EQ(left.multicast, right.multicast);
    EXPECT_EQ(left.reduction, right.reduction);
    EXPECT_EQ(left.host, right.host);
    EXPECT_EQ(left.rail, right.rail);
  }
  for (std::size_t i = 0; i < a.link_count(); ++i) {
    EXPECT_EQ(a.link_name(LinkId(i)), b.link_name(LinkId(i)));
    EXPECT_EQ(a.link(LinkId(i)), b.link(LinkId(i)));
  }
}

TEST(TopologyRoundTrip, WhatIsWrittenReadsBackEqual) {
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Topology topology = random_topology(seed);
    for (const std::string& text : {write_topology(topology), write_topology_json(topology)}) {
      const TopologyReading reading = read_topology_text(text, "written");
      ASSERT_TRUE(reading.topology.has_value()) << render(reading.diagnostics.at(0), false) << text;
      expect_equal(topology, *reading.topology);
    }
    if (testing::Test::HasFailure()) return;
  }
}

}  // namespace
}  // namespace espalier
