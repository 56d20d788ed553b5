#include "forecast/degrade.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planners/bounds/bound.h"
#include "tests/support/networks/real_machines.h"
#include "topology/generate/generate.h"
#include "topology/without.h"

namespace espalier::forecast {
namespace {

using test::dgx1v_nvlinks;
using test::FabricMaker;
using test::line_of;
using test::ring_of;
using test::star_of;

/// What a planner loses with a gibibyte; only bounds where none is named. The topology must outlive it.
Question ask(const Topology& topology, CollectiveKind kind, const std::string& planner) {
  Question question{.machine = &topology, .collective = *make_collective(kind, topology.rank_count(), std::nullopt)};
  question.algorithms.clear();
  if (!planner.empty()) question.algorithms.push_back(planner);
  question.sizes = {Bytes{1 << 30}};
  return question;
}

const Damage* find_damage(const Degradation& degradation, const std::string& name) {
  const auto found =
      std::ranges::find_if(degradation.damages, [&](const Damage& damage) { return damage.failure.name == name; });
  return found == degradation.damages.end() ? nullptr : &*found;
}

// The healthy machine's trees, which bounds begin with, change none of them.
TEST(Degrade, BoundsAreThoseOfWhatIsLeft) {
  for (const Topology& topology : {dgx1v_nvlinks(true), *generate_torus({.dims = {3, 3}})}) {
    const auto bounds = degrade(ask(topology, CollectiveKind::all_reduce, ""));
    ASSERT_TRUE(bounds);
    ASSERT_FALSE(bounds->damages.empty());
    for (const Damage& damage : bounds->damages) {
      const auto rest = without(topology, damage.failure.parts, damage.failure.name);
      ASSERT_EQ(rest.has_value(), damage.outlook.has_value()) << damage.failure.name;
      if (!rest) continue;
      const auto alone = planners::compute_bound(*rest, damage.outlook->collective);
      ASSERT_TRUE(alone);
      EXPECT_EQ(damage.outlook->bound.time_per_byte, alone->time_per_byte) << damage.failure.name;
    }
  }
}

TEST(Degrade, SideBySideIsTheSame) {
  const Topology topology = dgx1v_nvlinks(true);
  const Question question = ask(topology, CollectiveKind::all_reduce, "packing");
  const auto alone = degrade(question, {.ranks = true});
  std::vector<std::size_t> told;
  const auto side_by_side = degrade(question, {.ranks = true, .threads = 4},
                                    [&](const std::string&, std::size_t done, std::size_t) { told.push_back(done); });
  ASSERT_TRUE(alone && side_by_side);
  ASSERT_EQ(side_by_side->damages.size(), alone->damages.size());
  ASSERT_GT(alone->damages.size(), 4U);
  ASSERT_EQ(told.size(), alone->damages.size() + 1);
  for (std::size_t i = 0; i < told.size(); ++i) EXPECT_EQ(told[i], i);
  for (std::size_t i = 0; i < alone->damages.size(); ++i) {
    const Damage& one = alone->damages[i];
    const Damage& other = side_by_side->damages[i];
    EXPECT_EQ(other.failure.name, one.failure.name);
    EXPECT_EQ(other.loss, one.loss);
    EXPECT_EQ(other.bound_loss, one.bound_loss);
    ASSERT_EQ(other.outlook.has_value(), one.outlook.has_value());
    if (one.outlook) {
      EXPECT_EQ(other.outlook->fastest->run.elapsed, one.outlook->fastest->run.elapsed);
    }
  }
}

TEST(Degrade, LossesOfARing) {
  // All-gather on a ring of 4 with cables of 25 GB/s: 3/4 S enter each rank over 50 GB/s; on the line that is left when
  // a cable fails the end has 25 GB/s: half is lost.
  const Topology topology = ring_of(4);
  const auto degradation = degrade(ask(topology, CollectiveKind::all_gather, "packing"));
  ASSERT_TRUE(degradation);
  ASSERT_EQ(degradation->damages.size(), 1U);
  const Damage& damage = degradation->damages.front();
  EXPECT_EQ(damage.failure.alike.size(), 4U);
  EXPECT_EQ(damage.bound_loss, 0.5);
  EXPECT_NEAR(damage.loss, 0.5, 0.01);  // Pipelines of chunks begin and end.
  EXPECT_FALSE(damage.outlook->fastest->kept);
}

TEST(Degrade, WhatTheFastestDoesNotUseCostsNothing) {
  // Two ranks with a direct cable, and a switch with slow cables aside: the tree goes over the cable.
  FabricMaker maker;
  const NodeId a = maker.add_rank("a"), b = maker.add_rank("b"), s = maker.add_switch("s");
  maker.add_cable(a, b, Bandwidth{1'000'000'000'000});
  maker.add_cable(a, s, Bandwidth{1'000'000'000});
  maker.add_cable(b, s, Bandwidth{1'000'000'000});
  const Topology topology = maker.build("aside");
  const auto degradation = degrade(ask(topology, CollectiveKind::broadcast, "tree"));
  ASSERT_TRUE(degradation);
  const Damage* aside = find_damage(*degradation, "s");
  ASSERT_NE(aside, nullptr);
  EXPECT_TRUE(aside->outlook->fastest->kept);
  EXPECT_EQ(aside->loss, 0);
  EXPECT_EQ(degradation->damages.front().failure.name, "a-b");  // the worst comes first
}

TEST(Degrade, WhatLeavesTheSameIsTheSame) {
  // Without one of its cables a NIC leads nowhere: that is as good as no NIC. GPUs of a box reach each other without.
  const Topology topology = *generate_rail_boxes({.boxes = 2, .gpus_per_box = 2, .rails = 2});
  const auto degradation = degrade(ask(topology, CollectiveKind::all_gather, "packing"));
  ASSERT_TRUE(degradation);
  const Damage* nic = find_damage(*degradation, "box0.nic0");
  ASSERT_NE(nic, nullptr);
  for (const std::string name : {"box0.gpu0-box0.nic0", "box0.nic0-rail0"}) {
    const Damage* cable = find_damage(*degradation, name);
    ASSERT_NE(cable, nullptr) << name;
    EXPECT_EQ(cable->outlook->fastest->run.elapsed, nic->outlook->fastest->run.elapsed) << name;
    EXPECT_EQ(cable->bound_loss, nic->bound_loss) << name;
  }
  EXPECT_GT(find_damage(*degradation, "box0.nvswitch")->loss, nic->loss);
}

TEST(Degrade, TrafficNeedNotBeAsSymmetricAsTheMachine) {
  // On a star all cables are alike; rank 0 sends all that there is to rank 1, so these two cables matter alone.
  const Topology topology = star_of(4);
  Question question = ask(topology, CollectiveKind::all_to_all, "");
  std::vector<std::int64_t> blocks(16, 0);
  blocks[1] = 8;
  question.collective = *make_collective(CollectiveKind::all_to_all, 4, std::nullopt, blocks);
  EXPECT_FALSE(degrade(question, {.ranks = true}));
  const auto degradation = degrade(question);
  ASSERT_TRUE(degradation);
  for (const Damage& damage : degradation->damages) EXPECT_EQ(damage.failure.alike.size(), 1U) << damage.failure.name;
  EXPECT_GE(degradation->damages.size(), 4U);
}

TEST(Degrade, BoundsAloneNeedNoPlanner) {
  const Topology topology = dgx1v_nvlinks(false);
  const auto degradation = degrade(ask(topology, CollectiveKind::all_gather, ""));
  ASSERT_TRUE(degradation);
  EXPECT_FALSE(degradation->healthy.fastest);
  // 132 GB/s with six links of 22 GB/s, 110 with five.
  EXPECT_DOUBLE_EQ(*degradation->healthy.bound_busbw(), 132e9);
  const Damage* damage = find_damage(*degradation, "gpu0-gpu1");
  ASSERT_NE(damage, nullptr);
  EXPECT_DOUBLE_EQ(*damage->outlook->bound_busbw(), 110e9);
  EXPECT_EQ(damage->loss, damage->bound_loss);
}

TEST(Degrade, CutOffRanksAreNamed) {
  const Topology topology = line_of(3);
  const auto degradation = degrade(ask(topology, CollectiveKind::all_gather, ""));
  ASSERT_TRUE(degradation);
  const Damage& damage = degradation->damages.front();
  EXPECT_FALSE(damage.outlook);
  EXPECT_EQ(damage.loss, 1);
  EXPECT_EQ(damage.broken.message, "without g0-g1, g0 and g[1-2] cannot reach each other");
}

TEST(Degrade, ARootKeepsItsPlaceWhenARankBeforeItFails) {
  const Topology topology = star_of(4);
  Question question = ask(topology, CollectiveKind::broadcast, "");
  question.collective.root = Rank(3);
  const auto degradation = degrade(question, {.ranks = true});
  ASSERT_TRUE(degradation);
  const Damage* damage = find_damage(*degradation, "g0");
  ASSERT_NE(damage, nullptr);
  EXPECT_EQ(damage->outlook->collective.root, Rank(2));
  EXPECT_EQ(damage->outlook->collective.rank_count, 3U);
  EXPECT_EQ(find_damage(*degradation, "g3"), nullptr);
}

// Whatever runs on the damaged machine also runs on the whole one, so no failure of a cable or switch raises a bound.
TEST(Degrade, NoFailureRaisesABound) {
  Random random(5);
  for (int round = 0; round < 12; ++round) {
    const Topology topology = test::random_fabric(2 + random.below(5), random.below(4), random.below(8), random);
    for (const CollectiveKind kind : all_collective_kinds) {
      const auto degradation = degrade(ask(topology, kind, ""));
      ASSERT_TRUE(degradation);
      for (const Damage& damage : degradation->damages) {
        if (!damage.outlook) continue;
        EXPECT_GE(damage.outlook->bound.time_per_byte, degradation->healthy.bound.time_per_byte)
            << to_string(kind) << " without " << damage.failure.name << ", round " << round;
      }
    }
  }
}

}  // namespace
}  // namespace espalier::forecast
