#include "planners/nccl/nccl_collnet.h"

#include <gtest/gtest.h>

#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/read_good.h"

namespace espalier::planners {
namespace {

/// Two boxes of two GPUs on NVLink, a NIC each, on one switch between the boxes.
Topology two_boxes(const std::string& switch_keys) {
  return test::read_good(R"(
espalier: 1
name: two-boxes
classes:
  nvlink: {bandwidth: 100 GB/s, latency: 300 ns}
  bus: {bandwidth: 50 GB/s, latency: 200 ns}
  cable: {bandwidth: 10 GB/s, latency: 600 ns}
nodes: [{id: spine, kind: switch)" +
                         switch_keys + R"(}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-1]", kind: gpu}, {id: nvswitch, kind: switch}, {id: "nic[0-1]", kind: nic}]
    links:
      - {all: ["gpu[0-1]", nvswitch], class: nvlink}
      - {zip: ["gpu[0-1]", "nic[0-1]"], class: bus}
      - {all: ["nic[0-1]", spine], class: cable}
)");
}

Collective all_reduce_of(const Topology& topology) {
  return {CollectiveKind::all_reduce, static_cast<std::uint32_t>(topology.rank_count()), Rank()};
}

TEST(Collnet, SwitchesBetweenMachinesAddUp) {
  const Topology topology = two_boxes(", multicast: true, reduction: true");
  for (const auto& plan : {plan_collnet_direct, plan_collnet_chain}) {
    const auto schedule = plan(topology, all_reduce_of(topology));
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, topology, 1).ok());
    EXPECT_EQ(schedule->relays.size(), 1U);
    // Each of two heads sends its half of S up once and gets it back once: 1/2 S over 10 GB/s, where a ring over four
    // ranks moves 3/2 S over two NICs.
    EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, Rational(1, 2) / 10'000'000'000);
  }
}

TEST(Collnet, EachRailsSwitchAddsUpWhatItsHeadsBring) {
  const Topology topology = test::read_good(R"(
espalier: 1
name: two-rails
nodes: [{id: "rail[0-1]", kind: switch, multicast: true, reduction: true}]
groups:
  - id: "box[0-2]"
    host: true
    nodes: [{id: "gpu[0-3]", kind: gpu}, {id: nvswitch, kind: switch}, {id: "nic[0-3]", kind: nic}]
    links:
      - {all: ["gpu[0-3]", nvswitch], bandwidth: 100 GB/s, latency: 1 us}
      - {zip: ["gpu[0-3]", "nic[0-3]"], bandwidth: 50 GB/s}
links:
  - {all: ["box[0-2].nic[0,2]", rail0], bandwidth: 10 GB/s}
  - {all: ["box[0-2].nic[1,3]", rail1], bandwidth: 10 GB/s}
)");
  for (const auto& plan : {plan_collnet_direct, plan_collnet_chain}) {
    const auto schedule = plan(topology, all_reduce_of(topology));
    ASSERT_TRUE(schedule) << schedule.error().message;
    EXPECT_TRUE(verify(*schedule, topology, 1).ok());
    EXPECT_EQ(schedule->relays.size(), 2U);
    // Each NIC carries a quarter of S.
    EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, Rational(1, 4) / 10'000'000'000);
  }
}

TEST(Collnet, DirectHasFewerStepsThanChains) {
  // With three GPUs a box, the chain has one more step than handing straight to the head.
  const Topology topology = test::read_good(R"(
espalier: 1
name: three
nodes: [{id: spine, kind: switch, multicast: true, reduction: true}]
groups:
  - id: "box[0-1]"
    host: true
    nodes: [{id: "gpu[0-2]", kind: gpu}, {id: nvswitch, kind: switch}, {id: nic, kind: nic}]
    links:
      - {all: ["gpu[0-2]", nvswitch], bandwidth: 100 GB/s, latency: 1 us}
      - {between: [gpu0, nic], bandwidth: 50 GB/s}
      - {between: [nic, spine], bandwidth: 10 GB/s}
)");
  const auto direct = plan_collnet_direct(topology, all_reduce_of(topology));
  const auto chain = plan_collnet_chain(topology, all_reduce_of(topology));
  ASSERT_TRUE(direct && chain);
  // Two branches inside of each box from the head, which is gpu0 alone: both, or one after the other.
  const auto from_head = [&](const Schedule& schedule) {
    std::size_t routes = 0;
    for (std::size_t i = 0; i < schedule.route_count(); ++i) {
      const Route route = schedule.route(RouteId(i));
      if (route.src == Rank(0) && route.dst.index() < 3) ++routes;
    }
    return routes;
  };
  EXPECT_EQ(from_head(*direct), 2U);
  EXPECT_EQ(from_head(*chain), 1U);
}

TEST(Collnet, RefusesWhereNoSwitchComputes) {
  for (const char* keys : {"", ", multicast: true", ", reduction: true"}) {
    const Topology topology = two_boxes(keys);
    EXPECT_EQ(plan_collnet_direct(topology, all_reduce_of(topology)).error().code, ErrorCode::unsupported);
    EXPECT_EQ(plan_collnet_chain(topology, all_reduce_of(topology)).error().code, ErrorCode::unsupported);
  }
  const Topology topology = two_boxes(", multicast: true, reduction: true");
  EXPECT_FALSE(plan_collnet_direct(topology, {CollectiveKind::all_gather, 4, Rank()}));
}

}  // namespace
}  // namespace espalier::planners
