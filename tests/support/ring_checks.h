#pragma once

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <set>
#include <vector>

#include "planners/ring/ring.h"

namespace espalier::test {

/// Every ring passes all ranks once, along routes through nodes that only forward, and together the rings fit links and
/// backplanes and do not beat their limit.
inline void expect_sound(const Topology& topology, const planners::RingSet& set) {
  std::vector<std::int64_t> used(topology.link_count(), 0);
  std::vector<std::int64_t> passed(topology.node_count(), 0);
  ASSERT_GT(set.period, 0);
  for (const planners::Ring& ring : set.rings) {
    EXPECT_GT(ring.rate, 0);
    ASSERT_EQ(ring.order.size(), topology.rank_count());
    EXPECT_EQ(ring.order.front(), Rank(0));
    EXPECT_EQ(std::set<Rank>(ring.order.begin(), ring.order.end()).size(), topology.rank_count());
    ASSERT_EQ(ring.hops.size(), ring.order.size());
    for (std::size_t i = 0; i < ring.hops.size(); ++i) {
      NodeId at = topology.node_of(ring.order[i]);
      passed[at.index()] += ring.rate;
      ASSERT_FALSE(ring.hops[i].empty());
      for (const LinkId id : ring.hops[i]) {
        EXPECT_EQ(topology.link(id).tail, at);
        at = topology.link(id).head;
        used[id.index()] += ring.rate;
        passed[at.index()] += ring.rate;
        EXPECT_EQ(topology.rank_of(at).is_none(), id != ring.hops[i].back());
      }
      EXPECT_EQ(at, topology.node_of(ring.order[(i + 1) % ring.order.size()]));
    }
  }
  const auto fits = [&](std::int64_t load, Bandwidth rate) {
    return BigInteger(load) <= BigInteger(rate.bytes_per_second) * set.period;
  };
  for (std::size_t i = 0; i < used.size(); ++i) {
    EXPECT_TRUE(fits(used[i], topology.link(LinkId(i)).bandwidth())) << topology.link_name(LinkId(i));
  }
  for (std::size_t i = 0; i < passed.size(); ++i) {
    const Node& node = topology.node(NodeId(i));
    EXPECT_TRUE(node.bandwidth.bytes_per_second == 0 || fits(passed[i], node.bandwidth)) << node.id;
  }
  EXPECT_LE(set.rate(), set.limit);
}

}  // namespace espalier::test
