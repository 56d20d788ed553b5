#include "topology/routes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "base/random.h"

namespace espalier {
namespace {

/// A small directed graph with few distinct rates and latencies, so that ties are common; not always connected.
Topology random_graph(Random& random) {
  const auto count = static_cast<std::size_t>(random.between(2, 7));
  std::vector<Node> nodes(count);
  for (std::size_t i = 0; i < count; ++i) {
    nodes[i].id = "n" + std::to_string(i);
    if (i >= 2 && random.below(2) == 0) {
      nodes[i].kind = NodeKind::switch_node;
      nodes[i].is_rank = false;
      if (random.below(4) == 0) nodes[i].bandwidth = {random.between(1, 4) * 100};
    }
  }
  std::vector<Link> links;
  for (std::size_t i = 0; i < 3 * count; ++i) {
    const std::size_t tail = random.below(count);
    const std::size_t head = random.below(count);
    if (tail == head) continue;
    links.push_back({NodeId(tail),
                     NodeId(head),
                     {.nominal = {random.between(1, 4) * 100}, .latency = {random.between(0, 2) * 1'000'000'000'000}}});
  }
  return *Topology::make("random", nodes, links);
}

/// The least latency + size/bottleneck over all simple paths, by trying each; negative when there is none.
__int128 min_time(const Topology& topology, Rank src, Rank dst, Bytes size) {
  __int128 best = -1;
  std::vector<bool> visited(topology.node_count(), false);
  const auto narrow = [](std::int64_t width, std::int64_t rate) { return rate == 0 ? width : std::min(width, rate); };
  const std::function<void(NodeId, std::int64_t, std::int64_t)> walk = [&](NodeId node, std::int64_t latency,
                                                                           std::int64_t bottleneck) {
    const std::int64_t width = narrow(bottleneck, topology.node(node).bandwidth.bytes_per_second);
    if (node == topology.node_of(dst)) {
      const __int128 time = latency + transfer_time_wide(size, {width});
      if (best < 0 || time < best) best = time;
      return;
    }
    if (node != topology.node_of(src) && topology.node(node).is_rank) return;
    visited[node.index()] = true;
    for (const LinkId id : topology.out_links(node)) {
      const Link& link = topology.link(id);
      if (visited[link.head.index()]) continue;
      walk(link.head, latency + link.latency.count, narrow(width, link.bandwidth().bytes_per_second));
    }
    visited[node.index()] = false;
  };
  walk(topology.node_of(src), 0, std::numeric_limits<std::int64_t>::max());
  return best;
}

void expect_route_is_sound(const Topology& topology, Rank src, Rank dst, const FoundRoute& route) {
  ASSERT_FALSE(route.links.empty());
  NodeId at = topology.node_of(src);
  std::int64_t bottleneck = std::numeric_limits<std::int64_t>::max();
  std::int64_t latency = 0;
  const auto narrow = [&](Bandwidth rate) {
    if (rate.bytes_per_second > 0) bottleneck = std::min(bottleneck, rate.bytes_per_second);
  };
  narrow(topology.node(at).bandwidth);
  for (const LinkId id : route.links) {
    const Link& link = topology.link(id);
    ASSERT_EQ(link.tail, at);
    ASSERT_TRUE(at == topology.node_of(src) || !topology.node(at).is_rank);
    at = link.head;
    latency += link.latency.count;
    narrow(link.bandwidth());
    narrow(topology.node(at).bandwidth);
  }
  EXPECT_EQ(at, topology.node_of(dst));
  EXPECT_EQ(route.bottleneck.bytes_per_second, bottleneck);
  EXPECT_EQ(route.latency.count, latency);
}

TEST(RoutesProperty, AreAsFastAsTheBestOfAllPaths) {
  Random random(11);
  int found = 0;
  for (int round = 0; round < 3000; ++round) {
    const Topology graph = random_graph(random);
    const Bytes size{random.between(0, 600)};
    const auto variant = static_cast<std::uint32_t>(random.below(5));
    for (std::size_t s = 0; s < graph.rank_count(); ++s) {
      const auto routes = routes_from(graph, Rank(s), {.size = size, .variant = variant});
      ASSERT_EQ(routes.size(), graph.rank_count());
      EXPECT_FALSE(routes[s]);
      for (std::size_t d = 0; d < graph.rank_count(); ++d) {
        if (s == d) continue;
        const __int128 best = min_time(graph, Rank(s), Rank(d), size);
        ASSERT_EQ(routes[d].has_value(), best >= 0);
        if (!routes[d]) continue;
        ++found;
        expect_route_is_sound(graph, Rank(s), Rank(d), *routes[d]);
        EXPECT_TRUE(routes[d]->latency.count + transfer_time_wide(size, routes[d]->bottleneck) == best);
      }
    }
  }
  EXPECT_GT(found, 10'000);
}

}  // namespace
}  // namespace espalier
