#include "planners/nccl/nccl_found.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "planners/chooser.h"
#include "planners/nccl/nccl.h"
#include "planners/nccl/search/nccl_communicator.h"
#include "schedule/verify/verify.h"
#include "topology/link_kind.h"
#include "topology/slow.h"
#include "topology/without.h"
#include "topology/yaml/read_topology.h"

namespace espalier::planners {
namespace {

constexpr NcclEra on_v100{2030, 70, 0.8};
constexpr NcclEra on_a100{2030, 80, 0.8};

Topology shipped(const std::string& name) {
  return *read_topology_file(ESPALIER_SOURCE_DIR "/configs/" + name + ".yaml").topology;
}

Topology slowed(const Topology& topology, const std::string& text) {
  const std::vector<std::string> texts = {text};
  return *slow_down(topology, texts);
}

Schedule planned(const Topology& topology, const std::string& name, CollectiveKind kind, const NcclEra* era) {
  const auto planner = std::ranges::find(nccl_planners(), name, &Planner::name);
  PlanContext context;
  context.nccl = era;
  auto schedule = plan_unbounded(
      topology, Collective{.kind = kind, .rank_count = static_cast<std::uint32_t>(topology.rank_count())}, *planner,
      context);
  EXPECT_TRUE(schedule) << (schedule ? "" : schedule.error().message);
  EXPECT_TRUE(verify(*schedule, topology, 1).ok());
  return *std::move(schedule);
}

TEST(NcclFound, ARingForEachChannelThatTheSearchFinds) {
  const Topology machine = shipped("aws-p4d-x2");
  const RingSet found = found_rings(machine, on_a100);
  const auto made = make_communicator(machine, on_a100);
  ASSERT_TRUE(made);
  std::int64_t channels = 0;
  for (const Ring& ring : found.rings) channels += ring.rate;
  EXPECT_EQ(channels, made->ring.channels);
  std::set<std::vector<Rank>> orders;
  for (const Ring& ring : found.rings) orders.insert(ring.order);
  EXPECT_EQ(orders.size(), made->rings.size());
}

TEST(NcclFound, NothingWhereTheSearchIsNotKnown) {
  EXPECT_TRUE(found_rings(shipped("ethernet-mixed"), on_a100).rings.empty());  // No GPUs.
  EXPECT_TRUE(found_rings(shipped("gb200-nvl72"), on_a100).rings.empty());     // More of them than it was held against.
}

/// NCCL's rings enter and leave a machine by one NIC, to which the GPU that leaves hands over NVLink; here another NIC
/// of the rail takes that, and each as much.
TEST(NcclFound, WhatNeedsPxnLoadsNicsEvenly) {
  const Topology machine = shipped("dgx-a100-x2");
  const RingSet found = found_rings(machine, on_a100);
  std::map<LinkId, std::int64_t> loads;
  for (const Ring& ring : found.rings) {
    for (const Path& hop : ring.hops) {
      for (const LinkId link : hop) {
        if (kind_of(machine, link) == LinkKind::network) loads[link] += ring.rate;
      }
    }
  }
  EXPECT_EQ(loads.size(), 32U);
  for (const auto& [link, load] : loads) EXPECT_EQ(load, 1) << machine.link_name(link);
}

TEST(NcclFound, ALostCableLeavesFewerChannels) {
  const Topology machine = shipped("dgx1v");
  const std::vector<std::string> names = {"gpu0-gpu3#0"};
  const auto rate_of = [](const RingSet& set) {
    std::int64_t channels = 0;
    for (const Ring& ring : set.rings) channels += ring.rate;
    return channels;
  };
  EXPECT_LT(rate_of(found_rings(*without(machine, names), on_v100)), rate_of(found_rings(machine, on_v100)));
}

/// A port without a cable is not active, and NCCL leaves such NICs out.
TEST(NcclFound, ANicWithoutItsCableIsNone) {
  const Topology machine = shipped("dgx-a100-x2");
  const std::vector<std::string> nic = {"box0.nic0"}, cable = {"box0.nic0-rail0"};
  const auto whole = make_communicator(machine, on_a100),
             without_nic = make_communicator(*without(machine, nic), on_a100),
             without_cable = make_communicator(*without(machine, cable), on_a100);
  ASSERT_TRUE(whole && without_nic && without_cable);
  const auto orders_of = [](const NcclCommunicator& made) {
    std::vector<std::vector<Rank>> orders;
    for (const NcclRing& ring : made.rings) orders.push_back(ring.order);
    return orders;
  };
  EXPECT_EQ(without_cable->ring.channels, without_nic->ring.channels);
  EXPECT_EQ(orders_of(*without_cable), orders_of(*without_nic));
  EXPECT_NE(orders_of(*whole), orders_of(*without_nic));
}

/// NCCL plans for what its parts say of themselves: a slow NIC changes nothing that it does.
TEST(NcclFound, WhatIsSlowUnseenLeavesThePlanAsItWas) {
  const Topology machine = shipped("aws-p4d-x2");
  const Topology slow = slowed(machine, "vm0.nic1=0.5");
  for (const NcclEra* era : {&on_a100, static_cast<const NcclEra*>(nullptr)}) {
    for (const char* name : {"nccl/ring", "nccl/tree"}) {
      Schedule whole = planned(machine, name, CollectiveKind::all_reduce, era);
      const Schedule now = planned(slow, name, CollectiveKind::all_reduce, era);
      EXPECT_EQ(whole.transfers, now.transfers) << name;
    }
  }
  // Half of its NVLinks are seen.
  const Topology seen = slowed(machine, "vm0.gpu3-vm0.nvswitch=0.25");
  EXPECT_NE(planned(machine, "nccl/ring", CollectiveKind::all_reduce, &on_a100).transfers,
            planned(seen, "nccl/ring", CollectiveKind::all_reduce, &on_a100).transfers);
}

}  // namespace
}  // namespace espalier::planners
