#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planners/bounds/cut_bound.h"
#include "planners/planning_problem.h"
#include "schedule/loads.h"
#include "schedule/schedule_shape.h"
#include "schedule/trees/tree_schedule.h"
#include "schedule/verify/verify.h"
#include "topology/analysis/flow_network.h"
#include "topology/topology_builder.h"

/// Networks and checks for tests of packings of one root.
namespace espalier::test {

inline Wire gigabytes(std::int64_t rate) { return {{rate * 1'000'000'000}, {1'000'000}, {}}; }

/// `ranks` ranks g0, g1, ..., each with a cable of 1 GB/s to each of `planes` switches.
inline Topology switch_planes(std::size_t ranks, std::size_t planes = 1) {
  TopologyBuilder builder;
  std::vector<NodeId> members;
  for (std::size_t r = 0; r < ranks; ++r) members.push_back(builder.rank("g" + std::to_string(r)));
  for (std::size_t p = 0; p < planes; ++p) {
    const NodeId plane = builder.forwarder(NodeKind::switch_node, "s" + std::to_string(p));
    for (const NodeId member : members) builder.cable(member, plane, gigabytes(1));
  }
  return *std::move(builder).build("planes");
}

/// What a verified schedule along trees looks like; it must be at the bound.
inline ScheduleShape shape_at_bound(const Topology& topology, const Collective& collective, const Forest& forest) {
  const auto schedule = schedule_from_trees(collective, topology, "packing", forest);
  EXPECT_TRUE(schedule) << schedule.error().message;
  if (!schedule) return {};
  const VerifyReport report = verify(*schedule, topology, 1);
  EXPECT_TRUE(report.ok()) << report.breaches.front().message;
  EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, planners::cut_bound(topology, collective)->time_per_byte);
  return measure_shape(*schedule);
}

/// The same for trees of one root.
inline ScheduleShape shape_at_bound(const Topology& topology, Direction direction, Rank root,
                                    const std::vector<Arborescence>& trees) {
  const bool inward = direction == Direction::reversed;
  const auto kind = inward ? CollectiveKind::reduce : CollectiveKind::broadcast;
  const Collective collective = *make_collective(kind, topology.rank_count(), root);
  Forest forest;
  (inward ? forest.in_trees : forest.out_trees) = trees;
  return shape_at_bound(topology, collective, forest);
}

}  // namespace espalier::test
