#include <gtest/gtest.h>

#include <sstream>

#include "planners/bounds/bound.h"
#include "planners/groups/plan_groups.h"
#include "schedule/json/schedule_json.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/names/group.h"

namespace espalier::planners {
namespace {

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
    for (const CollectiveKind kind : all_collective_kinds) {
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
    for (const CollectiveKind kind : all_collective_kinds) {
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
    for (const CollectiveKind kind : all_collective_kinds) {
      std::vector<GroupWork> works = random_groups(topology, kind, random);
      const Rational once = bound_groups(works)->time_per_byte;
      const std::size_t count = works.size();
      for (std::size_t i = 0; i < count; ++i) works.push_back(works[i]);
      EXPECT_EQ(bound_groups(works)->time_per_byte, 2 * once) << to_string(kind);
    }
  }
}

/// Unequal shards: one group alone reaches the bound of its shares, and several share the links.
TEST(Groups, UnequalShards) {
  Random random(54);
  for (int round = 0; round < 40; ++round) {
    SCOPED_TRACE(round);
    const Topology topology = test::make_topology(test::random_graph(random, {7, 3, 9, true}), 1);
    for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
      std::vector<GroupWork> works = random_groups(topology, kind, random);
      for (GroupWork& work : works) {
        std::vector<std::int64_t> shares(work.topology.rank_count(), 1);
        for (std::int64_t& share : shares) share = random.between(0, 4);
        shares[random.below(shares.size())] += 1;
        work.collective = *make_collective(kind, shares.size(), std::nullopt, shares);
        EXPECT_EQ(bound_groups(std::span(&work, 1))->time_per_byte,
                  compute_bound(work.topology, work.collective)->time_per_byte);
      }
      const auto plan = plan_groups(works);
      ASSERT_TRUE(plan) << plan.error().message;
      EXPECT_EQ(plan->time_per_byte, plan->bound.time_per_byte);
    }
  }
}

/// A plan of a group is read for the whole network as one of its ranks.
TEST(Groups, PlansAreReadForTheWholeNetwork) {
  Random random(55);
  for (int round = 0; round < 20; ++round) {
    const Topology topology = test::make_topology(test::random_graph(random, {7, 3, 9, true}), 1);
    const std::vector<GroupWork> works = random_groups(topology, CollectiveKind::all_gather, random);
    const auto plan = plan_groups(works);
    ASSERT_TRUE(plan);
    std::ostringstream text;
    ASSERT_TRUE(write_schedule(text, plan->schedules.back(), works.back().topology, WriteOptions{}));
    const auto read = read_plan(text.str(), "plan.json", &topology);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(read->topology.rank_count(), works.back().topology.rank_count());
    EXPECT_TRUE(verify(read->schedule, read->topology).ok());
  }
}

TEST(Groups, WhatIsNotPlannedTogetherIsRefused) {
  const Topology topology = test::make_topology({2, 0, {{0, 1, 1}, {1, 0, 1}}}, 1);
  const std::vector<NodeId> both = {NodeId(0), NodeId(1)};
  GroupWork unequal = work_of(topology, both, CollectiveKind::gather);
  unequal.collective.shares = {2, 1};
  EXPECT_EQ(plan_groups(std::span(&unequal, 1)).error().code, ErrorCode::unsupported);
  const GroupWork alone = work_of(topology, {NodeId(1)}, CollectiveKind::all_gather);
  EXPECT_EQ(plan_groups(std::span(&alone, 1))->time_per_byte, 0);
}

}  // namespace
}  // namespace espalier::planners
