#pragma once

// Tested by: tests/property/planners/groups_test.cpp

#include <span>
#include <vector>

#include "base/rational.h"
#include "base/result.h"
#include "schedule/schedule.h"
#include "topology/topology.h"

namespace espalier::planners {

/// A process group at work: the network with the group's ranks alone (topology/names/group.h), and what they do.
struct GroupWork {
  Topology topology;
  Collective collective;
};

/// What all groups can do at once, each with a message size of S of its own.
struct JointBound {
  Rational time_per_byte;  ///< Seconds per byte of S that no schedules can undercut when all groups are to be done.
};

/// Schedules that share the links, one per group in their order.
struct JointPlan {
  JointBound bound;
  std::vector<Schedule> schedules;
  Rational time_per_byte;  ///< What the fullest link or backplane needs for all of them: the bound, but for rounding.
};

/// The least time in which all groups can finish together when links are shared in the best way and switches only
/// forward: the joint linear program over the trees of all groups (docs/bounds.md), all at the same throughput. Groups
/// may differ in size and may share ranks.
/// Requires: topologies that differ in their ranks alone; collectives of one kind.
/// Errors: unsupported for a gather or scatter of unequal shards; infeasible when a rank cannot reach another of its
/// group; too_large past 256 ranks in all or 2,048 links.
Result<JointBound> bound_groups(std::span<const GroupWork> groups);

/// The schedules that reach it. Errors: as bound_groups; also unsupported when the program was not solved exactly.
Result<JointPlan> plan_groups(std::span<const GroupWork> groups);

/// Seconds per byte of S that the fullest link or backplane needs when all schedules run at once, each with S bytes.
/// Requires: schedules whose structure is right on their group's topology.
Rational joint_time_per_byte(std::span<const GroupWork> groups, std::span<const Schedule> schedules);

}  // namespace espalier::planners
