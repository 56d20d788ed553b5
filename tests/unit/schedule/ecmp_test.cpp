#include "schedule/ecmp.h"

#include <gtest/gtest.h>

#include <set>

#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/read_good.h"

namespace espalier {
namespace {

/// Two leaves of two ranks, two spines, and a third one by slower cables.
Topology two_tiers() {
  return test::read_good(R"(
espalier: 1
name: two-tiers
classes:
  port: {bandwidth: 10 GB/s, latency: 1 us}
  slow: {bandwidth: 5 GB/s, latency: 1 us}
nodes:
  - {id: "gpu[0-3]", kind: gpu}
  - {id: "leaf[0-1]", kind: switch}
  - {id: "spine[0-2]", kind: switch}
links:
  - {zip: ["gpu[0-3]", "leaf[0,0,1,1]"], class: port}
  - {all: ["leaf[0-1]", "spine[0-1]"], class: port}
  - {all: ["leaf[0-1]", spine2], class: slow}
)");
}

std::vector<LinkId> path(const Topology& topology, const std::vector<const char*>& names) {
  std::vector<LinkId> links;
  for (const char* name : names) links.push_back(topology.find_link(name));
  return links;
}

/// gpu0 sends to gpu2 by spine0 and gpu1 to gpu3 by spine1, and gpu0 its own leaf's gpu1: a scatter's kind of traffic,
/// of which only the routes matter here.
Schedule two_flows(const Topology& topology) {
  Schedule schedule({CollectiveKind::broadcast, 4, Rank(0)}, "two-tiers", "by hand");
  schedule.units = 1;
  schedule.slices.push_back({.offset = 0, .length = 1, .rank = Rank(), .to = Rank()});
  const auto add = [&](std::uint32_t src, std::uint32_t dst, std::uint32_t channel,
                       const std::vector<const char*>& names) {
    schedule.add_transfer(schedule.add_route(Rank(src), Rank(dst), path(topology, names)), SliceId(0), 1, Action::copy,
                          ChannelId(channel));
  };
  add(0, 1, 0, {"gpu0>leaf0", "leaf0>gpu1"});
  add(0, 2, 0, {"gpu0>leaf0", "leaf0>spine0", "spine0>leaf1", "leaf1>gpu2"});
  add(1, 3, 0, {"gpu1>leaf0", "leaf0>spine1", "spine1>leaf1", "leaf1>gpu3"});
  return schedule;
}

/// The spine that a transfer passes.
std::string spine_of(const Topology& topology, const Schedule& schedule, std::size_t transfer) {
  const Route route = schedule.route(schedule.transfers[transfer].route);
  return topology.node(topology.link(route.links[1]).head).id;
}

TEST(Ecmp, DrawsEachFlowByItself) {
  const Topology topology = two_tiers();
  const Schedule planned = two_flows(topology);
  ASSERT_TRUE(verify(planned, topology, 1).ok());
  EXPECT_TRUE(has_equal_paths(planned, topology));
  constexpr std::uint64_t seeds = 1000;
  std::size_t together = 0, by_first = 0;
  for (std::uint64_t seed = 0; seed < seeds; ++seed) {
    const Schedule drawn = hash_flows(planned, topology, seed);
    ASSERT_TRUE(verify(drawn, topology, 1).ok());
    const std::string a = spine_of(topology, drawn, 1), b = spine_of(topology, drawn, 2);
    // Of equal length, but slower.
    EXPECT_NE(a, "spine2");
    EXPECT_NE(b, "spine2");
    if (a == b) ++together;
    if (a == "spine0") ++by_first;
    // Inside one leaf there is nothing to choose.
    EXPECT_EQ(drawn.route(drawn.transfers[0].route).links.size(), 2U);
  }
  // Fair coins: 500 each, with a standard deviation of 16.
  EXPECT_NEAR(static_cast<double>(together), 500, 80);
  EXPECT_NEAR(static_cast<double>(by_first), 500, 80);
}

TEST(Ecmp, TheSameSeedGivesTheSameRoutes) {
  const Topology topology = two_tiers();
  Schedule planned = two_flows(topology);
  planned.pacing = {Bytes{4096}, Bytes{1024}, 2};
  const Schedule one = hash_flows(planned, topology, 7), two = hash_flows(planned, topology, 7);
  for (std::size_t i = 1; i < 3; ++i) EXPECT_EQ(spine_of(topology, one, i), spine_of(topology, two, i));
  EXPECT_EQ(one.slices, planned.slices);
  EXPECT_EQ(one.units, planned.units);
  EXPECT_EQ(one.pacing, planned.pacing);
}

TEST(Ecmp, ChannelsAreFlowsOfTheirOwn) {
  const Topology topology = two_tiers();
  Schedule planned = two_flows(topology);
  const RouteId route = planned.transfers[1].route;
  for (std::uint32_t channel = 1; channel < 32; ++channel) {
    planned.add_transfer(route, SliceId(0), 1, Action::copy, ChannelId(channel));
  }
  const Schedule drawn = hash_flows(planned, topology, 0);
  std::set<std::string> spines;
  for (std::size_t i = 3; i < drawn.transfers.size(); ++i) spines.insert(spine_of(topology, drawn, i));
  EXPECT_EQ(spines.size(), 2U);
}

TEST(Ecmp, OneTierHasNoChoice) {
  const Topology topology = test::read_good(R"(
espalier: 1
name: star
nodes: [{id: "gpu[0-1]", kind: gpu}, {id: hub, kind: switch}]
links: [{all: ["gpu[0-1]", hub], bandwidth: 10 GB/s}]
)");
  Schedule planned({CollectiveKind::broadcast, 2, Rank(0)}, "star", "by hand");
  planned.units = 1;
  planned.slices.push_back({.offset = 0, .length = 1, .rank = Rank(), .to = Rank()});
  planned.add_transfer(planned.add_route(Rank(0), Rank(1), path(topology, {"gpu0>hub", "hub>gpu1"})), SliceId(0), 1,
                       Action::copy, ChannelId(0));
  EXPECT_FALSE(has_equal_paths(planned, topology));
}

}  // namespace
}  // namespace espalier
