#include <gtest/gtest.h>

#include "planners/bound.h"
#include "planners/groups/plan_groups.h"
#include "schedule/verify.h"
#include "tests/support/random_graph.h"
#include "topology/group.h"

namespace espalier {
namespace {

constexpr std::array kinds = {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::broadcast,
                              CollectiveKind::reduce,     CollectiveKind::all_reduce,     CollectiveKind::all_to_all,
                              CollectiveKind::send_recv};

GroupWork work_of(const Topology& topology, const std::vector<NodeId>& nodes, CollectiveKind kind) {
  Topology group = *with_ranks(topology, nodes);
  const Collective collective = *make_collective(kind, nodes.size(), std::nullopt);
  return {std::move(group), collective};
}

/// Ranks dealt to some groups at random, each group with one rank or more.
std::vector<GroupWork> random_groups(const Topology& topology, CollectiveKind kind, Random& random) {
  std::vector<std::vector<NodeId>> groups(1 + random.below(std::min<std::size_t>(topology.rank_count(), 3)));
  for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
    groups[rank < groups.size() ? rank : random.below(groups.size())].push_back(topology.node_of(Rank(rank)));
  }
  std::vector<GroupWork> works;
  for (const auto& group : groups) works.push_back(work_of(topology, group, kind));
  return works;
}

/// The schedules verify, together they take the joint bound, and no group alone is slower than all at once.
TEST(Groups, PlansReachTheJointBound) {
  Random random(51);
  for (int round = 0; round < 60; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {7, 3, 9, round % 2 == 0}), 1);
    for (const CollectiveKind kind : kinds) {
      SCOPED_TRACE(to_string(kind));
      const std::vector<GroupWork> works = random_groups(topology, kind, random);
      const auto plan = plan_groups(works);
      ASSERT_TRUE(plan) << plan.error().message;
      const auto bound = bound_groups(works);
      ASSERT_TRUE(bound) << bound.error().message;
      EXPECT_EQ(bound->time_per_byte, plan->bound.time_per_byte);
      EXPECT_EQ(plan->time_per_byte, plan->bound.time_per_byte);
      ASSERT_EQ(plan->schedules.size(), works.size());
      for (std::size_t i = 0; i < works.size(); ++i) {
        EXPECT_TRUE(verify(plan->schedules[i], works[i].topology).ok());
        EXPECT_GE(bound->time_per_byte, compute_bound(works[i].topology, works[i].collective)->time_per_byte);
      }
    }
  }
}

/// One group of all ranks is the collective as ever; where switches are balanced its bound is known.
TEST(Groups, OneGroupIsTheCollective) {
  Random random(52);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {6, 3, 9, true}), 1);
    std::vector<NodeId> all;
    for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) all.push_back(topology.node_of(Rank(rank)));
    for (const CollectiveKind kind : kinds) {
      const GroupWork work = work_of(topology, all, kind);
      EXPECT_EQ(bound_groups(std::span(&work, 1))->time_per_byte,
                compute_bound(work.topology, work.collective)->time_per_byte)
          << to_string(kind);
    }
  }
}

/// The same group twice needs everything twice.
TEST(Groups, TwiceTheSameTakesTwiceTheTime) {
  Random random(53);
  for (int round = 0; round < 30; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {6, 3, 9, round % 2 == 0}), 1);
    for (const CollectiveKind kind : kinds) {
      std::vector<GroupWork> works = random_groups(topology, kind, random);
      const Rational once = bound_groups(works)->time_per_byte;
      const std::size_t count = works.size();
      for (std::size_t i = 0; i < count; ++i) works.push_back(works[i]);
      EXPECT_EQ(bound_groups(works)->time_per_byte, 2 * once) << to_string(kind);
    }
  }
}

TEST(Groups, WhatIsNotPlannedTogetherIsRefused) {
  const Topology topology = test::make_topology({2, 0, {{0, 1, 1}, {1, 0, 1}}}, 1);
  const std::vector<NodeId> both = {NodeId(0), NodeId(1)};
  for (const CollectiveKind kind : {CollectiveKind::gather, CollectiveKind::scatter}) {
    const GroupWork work = work_of(topology, both, kind);
    EXPECT_EQ(bound_groups(std::span(&work, 1)).error().code, ErrorCode::unsupported);
  }
  GroupWork unequal = work_of(topology, both, CollectiveKind::all_gather);
  unequal.collective.shares = {2, 1};
  EXPECT_EQ(plan_groups(std::span(&unequal, 1)).error().code, ErrorCode::unsupported);
  const GroupWork alone = work_of(topology, {NodeId(1)}, CollectiveKind::all_gather);
  EXPECT_EQ(plan_groups(std::span(&alone, 1))->time_per_byte, 0);
}

}  // namespace
}  // namespace espalier
