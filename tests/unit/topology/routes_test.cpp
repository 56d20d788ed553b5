#include "topology/routes.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "topology/generate/generate.h"

namespace espalier {
namespace {

constexpr std::int64_t giga = 1'000'000'000;

Node gpu(const std::string& id) { return {.id = id}; }
Node box_switch(const std::string& id) { return {.id = id, .kind = NodeKind::switch_node, .is_rank = false}; }
Link wire(std::size_t tail, std::size_t head, std::int64_t rate, std::int64_t latency_ns) {
  return {NodeId(tail), NodeId(head), {.nominal = {rate}, .latency = {latency_ns * 1000}}};
}

TEST(Routes, PassOnlyThroughNodesThatForward) {
  // g0 - g1 - g2 in a line: g0 reaches g2 only through g1, which is a rank.
  const auto line =
      Topology::make("line", {gpu("g0"), gpu("g1"), gpu("g2")},
                     {wire(0, 1, giga, 1), wire(1, 0, giga, 1), wire(1, 2, giga, 1), wire(2, 1, giga, 1)});
  const auto routes = routes_from(*line, Rank(0));
  EXPECT_FALSE(routes[0]);
  ASSERT_TRUE(routes[1]);
  EXPECT_EQ(routes[1]->links, std::vector<LinkId>{LinkId(0)});
  EXPECT_FALSE(routes[2]);
}

TEST(Routes, WeighLatencyAgainstWidth) {
  // Direct: 1 GB/s, 1 us. Through the switch: 10 GB/s, 2 x 2 us. They cross at 3 us = S (1/1e9 - 1/10e9): S = 3333.3 B.
  const auto both = Topology::make(
      "both", {gpu("g0"), gpu("g1"), box_switch("s")},
      {wire(0, 1, giga, 1000), wire(0, 2, 10 * giga, 2000), wire(2, 1, 10 * giga, 2000), wire(1, 0, giga, 1000)});
  EXPECT_EQ(find_route(*both, Rank(0), Rank(1), {.size = {3'333}})->links.size(), 1U);
  const auto wide = find_route(*both, Rank(0), Rank(1), {.size = {3'334}});
  EXPECT_EQ(wide->links, (std::vector<LinkId>{LinkId(1), LinkId(2)}));
  EXPECT_EQ(wide->bottleneck.bytes_per_second, 10 * giga);
  EXPECT_EQ(wide->latency.count, 4'000'000);
}

TEST(Routes, CountBackplanesAndEfficiency) {
  Node slow = box_switch("s");
  slow.bandwidth = {3 * giga};
  Link worn = wire(0, 2, 10 * giga, 1);
  worn.efficiency_ppm = 500'000;
  const auto one = Topology::make("one", {gpu("g0"), gpu("g1"), slow}, {worn, wire(2, 1, 10 * giga, 1)});
  EXPECT_EQ(find_route(*one, Rank(0), Rank(1))->bottleneck.bytes_per_second, 3 * giga);
  slow.bandwidth = {};
  const auto open = Topology::make("open", {gpu("g0"), gpu("g1"), slow}, {worn, wire(2, 1, 10 * giga, 1)});
  EXPECT_EQ(find_route(*open, Rank(0), Rank(1))->bottleneck.bytes_per_second, 5 * giga);
}

/// `count` ranks, each joined to every one of `width` switches.
Topology planes(std::size_t count, std::size_t width) {
  std::vector<Node> nodes;
  std::vector<Link> links;
  for (std::size_t i = 0; i < count; ++i) nodes.push_back(gpu("g" + std::to_string(i)));
  for (std::size_t s = 0; s < width; ++s) {
    nodes.push_back(box_switch("s" + std::to_string(s)));
    for (std::size_t i = 0; i < count; ++i) {
      links.push_back(wire(i, count + s, giga, 100));
      links.push_back(wire(count + s, i, giga, 100));
    }
  }
  return *Topology::make("planes", nodes, links);
}

TEST(Routes, SpreadOverEqualSwitches) {
  // 6 ranks x 5 others over 6 planes: (src + dst) mod 6 gives every link between 0 and 1 of the 30 routes.
  const Topology six = planes(6, 6);
  std::map<LinkId, int> load;
  for (std::size_t src = 0; src < 6; ++src) {
    for (const auto& route : routes_from(six, Rank(src))) {
      if (!route) continue;
      for (const LinkId link : route->links) ++load[link];
    }
  }
  for (const auto& [link, routes] : load) EXPECT_EQ(routes, 1) << six.link_name(link);
}

TEST(Routes, VariantsTakeTheOtherWays) {
  const Topology four = planes(2, 4);
  std::set<LinkId> first_links;
  for (std::uint32_t variant = 0; variant < 4; ++variant) {
    first_links.insert(find_route(four, Rank(0), Rank(1), {.variant = variant})->links.front());
  }
  EXPECT_EQ(first_links.size(), 4U);
}

TEST(Routes, VariantsOfOneSearchAreThoseOfMany) {
  for (const Topology& topology : {planes(5, 3), planes(6, 6), planes(2, 4)}) {
    for (std::size_t src = 0; src < topology.rank_count(); ++src) {
      const auto together = route_variants_from(topology, Rank(src), {1 << 18}, 7);
      ASSERT_EQ(together.size(), 7U);
      for (std::uint32_t variant = 0; variant < 7; ++variant) {
        const auto alone = routes_from(topology, Rank(src), {{1 << 18}, variant});
        ASSERT_EQ(together[variant].size(), alone.size());
        for (std::size_t dst = 0; dst < alone.size(); ++dst) {
          ASSERT_EQ(together[variant][dst].has_value(), alone[dst].has_value());
          if (alone[dst]) {
            EXPECT_EQ(together[variant][dst]->links, alone[dst]->links);
          }
        }
      }
    }
  }
}

TEST(Routes, SpreadOverSpines) {
  // Two leaves of 4 ranks, 4 spines: each rank's routes to the other leaf use each spine once, and so does a shift.
  std::vector<Node> nodes;
  std::vector<Link> links;
  for (std::size_t i = 0; i < 8; ++i) nodes.push_back(gpu("g" + std::to_string(i)));
  for (const char* id : {"l0", "l1", "s0", "s1", "s2", "s3"}) nodes.push_back(box_switch(id));
  const auto join = [&](std::size_t a, std::size_t b) {
    links.push_back(wire(a, b, giga, 100));
    links.push_back(wire(b, a, giga, 100));
  };
  for (std::size_t i = 0; i < 8; ++i) join(i, 8 + i / 4);
  for (std::size_t s = 0; s < 4; ++s) {
    join(8, 10 + s);
    join(9, 10 + s);
  }
  const auto fabric = Topology::make("leaf-spine", nodes, links);
  std::set<NodeId> shifted;
  for (std::size_t src = 0; src < 4; ++src) {
    std::set<NodeId> spines;
    const auto routes = routes_from(*fabric, Rank(src));
    for (std::size_t dst = 4; dst < 8; ++dst) spines.insert(fabric->link(routes[dst]->links[1]).head);
    EXPECT_EQ(spines.size(), 4U);
    shifted.insert(fabric->link(routes[src + 4]->links[1]).head);
  }
  EXPECT_EQ(shifted.size(), 4U);
}

TEST(Routes, LoadEveryUplinkOfARailFabricAlike) {
  // 4 boxes of 8 GPUs on 8 rails, 4 spines. Of a GPU's 31 routes 7 stay in the box, 3 on the rail's leaf, 21 go over
  // the spines: 32 x 21 routes over 8 x 4 uplinks, 21 each way over each.
  const auto fabric = generate_rail_boxes({.boxes = 4, .spines = 4});
  std::map<LinkId, int> load;
  for (std::size_t src = 0; src < 32; ++src) {
    for (const auto& route : routes_from(*fabric, Rank(src))) {
      if (!route) continue;
      for (const LinkId link : route->links) ++load[link];
    }
  }
  for (std::size_t i = 0; i < fabric->link_count(); ++i) {
    if (fabric->link(LinkId(i)).link_class != "uplink") continue;
    EXPECT_EQ(load[LinkId(i)], 21) << fabric->link_name(LinkId(i));
  }
}

}  // namespace
}  // namespace espalier
