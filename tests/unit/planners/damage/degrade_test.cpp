#include "planners/damage/degrade.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planners/bounds/bound.h"
#include "planners/damage/alike.h"
#include "schedule/loads.h"
#include "tests/support/networks/real_machines.h"
#include "topology/generate/generate.h"

namespace espalier::planners {
namespace {

using test::dgx1v_nvlinks;
using test::FabricMaker;
using test::line_of;
using test::ring_of;
using test::star_of;

using Names = std::vector<std::string>;

Collective collective_on(const Topology& topology, CollectiveKind kind) {
  return *make_collective(kind, topology.rank_count(), std::nullopt);
}

/// Takes the time of a schedule as if nothing but the fullest link counted: exact, and no planner needs a simulator.
Result<Choice> by_load(const Topology& topology, const Candidates& candidates, Bytes at) {
  const auto load_time = [&](const Schedule& schedule, Bytes size, const Cut& cut, Picoseconds /*deadline*/) {
    RunReport report;
    report.size = size;
    report.chunk = cut.chunk;
    report.ahead = cut.ahead;
    const double seconds = to_double(compute_loads(schedule, topology).time_per_byte) * static_cast<double>(size.count);
    report.elapsed = {static_cast<std::int64_t>(seconds * static_cast<double>(picoseconds_per_second))};
    return Result<RunReport>(report);
  };
  return choose(candidates, at, load_time);
}

const Damage* find_damage(const Degradation& degradation, const std::string& name) {
  const auto found =
      std::ranges::find_if(degradation.damages, [&](const Damage& damage) { return damage.failure.name == name; });
  return found == degradation.damages.end() ? nullptr : &*found;
}

TEST(Alike, ARingHasOneKindOfEverything) {
  const Topology topology = ring_of(6);
  const Alike alike = find_alike(topology, find_cables(topology));
  EXPECT_EQ(alike.of_node, std::vector<std::uint32_t>(6, 0));
  for (const std::uint32_t kind : alike.of_cable) EXPECT_EQ(kind, alike.of_cable.front());
}

TEST(Alike, ARootTellsTheOthersApart) {
  // On a ring of six, seen from g0: itself, two neighbours, two at distance two, one opposite.
  const Topology topology = ring_of(6);
  const Alike alike = find_alike(topology, find_cables(topology), Rank(0));
  EXPECT_EQ(alike.of_node[1], alike.of_node[5]);
  EXPECT_EQ(alike.of_node[2], alike.of_node[4]);
  EXPECT_NE(alike.of_node[1], alike.of_node[2]);
  EXPECT_NE(alike.of_node[0], alike.of_node[3]);
}

TEST(Alike, RatesOfOneDirectionCount) {
  FabricMaker maker;
  const NodeId a = maker.add_rank("a"), b = maker.add_rank("b");
  maker.add_link(a, b, Bandwidth{2});
  maker.add_link(b, a, Bandwidth{1});
  const Topology topology = maker.build("uneven");
  const Alike alike = find_alike(topology, find_cables(topology));
  EXPECT_NE(alike.of_node[0], alike.of_node[1]);
}

/// The same network, whose names do not count anything.
Topology without_numbers(const Topology& topology) {
  std::vector<Node> nodes(topology.nodes().begin(), topology.nodes().end());
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    nodes[i].id.clear();
    for (std::size_t rest = i + 1; rest > 0; rest /= 26) nodes[i].id += static_cast<char>('a' + rest % 26);
  }
  return *Topology::make(topology.name(), std::move(nodes), {topology.links().begin(), topology.links().end()});
}

// What names propose is all that a search finds, or it is searched.
TEST(Alike, DoesNotDependOnNames) {
  Random random(29);
  std::vector<Topology> machines = {*generate_torus({.dims = {4, 4}}),
                                    *generate_mesh({.dims = {3, 4}}),
                                    *generate_fat_tree({.k = 4}),
                                    *generate_leaf_spine({}),
                                    *generate_dragonfly({}),
                                    *generate_rail_boxes({.boxes = 4, .gpus_per_box = 4, .rails = 2}),
                                    *generate_rail_boxes({.boxes = 3, .gpus_per_box = 4, .rails = 4})};
  for (int round = 0; round < 20; ++round) {
    machines.push_back(test::random_fabric(2 + random.below(5), random.below(4), random.below(8), random));
  }
  for (const Topology& topology : machines) {
    const Topology searched = without_numbers(topology);
    const Alike by_names = find_alike(topology, find_cables(topology));
    const Alike by_search = find_alike(searched, find_cables(searched));
    EXPECT_EQ(by_names.of_node, by_search.of_node) << topology.name();
    EXPECT_EQ(by_names.of_cable, by_search.of_cable) << topology.name();
  }
}

// A slow cable among like ones is not taken for one of them.
TEST(Alike, NamesOnlyPropose) {
  const Topology whole = *generate_leaf_spine({});
  std::vector<Link> links(whole.links().begin(), whole.links().end());
  links.back().nominal.bytes_per_second /= 2;
  const Topology topology = *Topology::make("slower", {whole.nodes().begin(), whole.nodes().end()}, std::move(links));
  const Alike alike = find_alike(topology, find_cables(topology));
  EXPECT_EQ(std::ranges::count(alike.of_cable, alike.of_cable.back()), 1);
}

TEST(SingleFailures, EachOnceWithThoseThatAreAlike) {
  const Topology topology = star_of(4);
  const std::vector<Failure> failures = single_failures(topology);
  ASSERT_EQ(failures.size(), 2U);
  EXPECT_EQ(failures[0].what, "25 GB/s cable");
  EXPECT_EQ(failures[0].alike, (Names{"g0-s0", "g1-s0", "g2-s0", "g3-s0"}));
  EXPECT_EQ(failures[1].name, "s0");
  EXPECT_EQ(failures[1].what, "switch");
  const std::vector<Failure> with_ranks = single_failures(topology, {true, Rank(2)});
  ASSERT_EQ(with_ranks.size(), 4U);  // the root's cable and the others', the other ranks, the switch
  EXPECT_EQ(with_ranks[2].alike, (Names{"g0", "g1", "g3"}));
}

// What a symmetry says to be the same has the same bound: of all failures on machines with many and with few
// symmetries.
TEST(SingleFailures, AlikeOnesLeaveTheSameBound) {
  const std::vector<Topology> machines = {dgx1v_nvlinks(false), dgx1v_nvlinks(true), *generate_torus({.dims = {3, 4}}),
                                          *generate_fat_tree({.k = 4})};
  for (const Topology& topology : machines) {
    const Collective collective = collective_on(topology, CollectiveKind::all_gather);
    for (const Failure& failure : single_failures(topology, {true, Rank()})) {
      std::optional<Rational> first;
      for (const std::string& name : failure.alike) {
        const auto rest = without(topology, *find_parts(topology, name), name);
        Collective on_rest = collective;
        on_rest.rank_count = rest ? static_cast<std::uint32_t>(rest->rank_count()) : 0;
        const Rational time = rest ? compute_bound(*rest, on_rest)->time_per_byte : Rational(-1);
        EXPECT_EQ(time, first.value_or(time)) << topology.name() << " " << name;
        first = time;
      }
    }
  }
}

// The healthy machine's trees make planning quicker and nothing else different.
TEST(Degrade, FromScratchOrNotIsTheSame) {
  const auto planner = find_planner("packing");
  for (const Topology& topology : {dgx1v_nvlinks(true), *generate_torus({.dims = {3, 3}})}) {
    DegradeOptions options{Bytes{1 << 20}, std::span(&*planner, 1), true, false};
    const auto warm = degrade(topology, collective_on(topology, CollectiveKind::all_reduce), options, by_load);
    options.from_scratch = true;
    const auto cold = degrade(topology, collective_on(topology, CollectiveKind::all_reduce), options, by_load);
    ASSERT_TRUE(warm && cold);
    ASSERT_EQ(warm->damages.size(), cold->damages.size());
    for (const Damage& damage : cold->damages) {
      const Damage* same = find_damage(*warm, damage.failure.name);
      ASSERT_NE(same, nullptr);
      EXPECT_EQ(same->bound_loss, damage.bound_loss);
      EXPECT_NEAR(same->loss, damage.loss, 1e-9);
    }
  }
}

TEST(Degrade, SideBySideIsTheSame) {
  const auto planner = find_planner("packing");
  const Topology topology = dgx1v_nvlinks(true);
  const Collective collective = collective_on(topology, CollectiveKind::all_reduce);
  DegradeOptions options{Bytes{1 << 20}, std::span(&*planner, 1), true};
  const auto alone = degrade(topology, collective, options, by_load);
  options.threads = 4;
  std::vector<std::size_t> told;
  const auto side_by_side = degrade(topology, collective, options, by_load,
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
  const auto planners = find_planner("packing");
  const auto degradation = degrade(topology, collective_on(topology, CollectiveKind::all_gather),
                                   {Bytes{1 << 20}, std::span(&*planners, 1), false}, by_load);
  ASSERT_TRUE(degradation);
  ASSERT_EQ(degradation->damages.size(), 1U);
  const Damage& damage = degradation->damages.front();
  EXPECT_EQ(damage.failure.alike.size(), 4U);
  EXPECT_EQ(damage.bound_loss, 0.5);
  EXPECT_NEAR(damage.loss, 0.5, 1e-6);
  EXPECT_FALSE(damage.outlook->fastest->kept);
}

TEST(Degrade, WhatTheFastestDoesNotUseCostsNothing) {
  // Two ranks with a direct cable, and a switch with slow cables aside: the tree goes over the cable.
  FabricMaker maker;
  const NodeId a = maker.add_rank("a"), b = maker.add_rank("b"), s = maker.add_switch("s");
  maker.add_cable(a, b, Bandwidth{1'000'000'000'000});
  maker.add_cable(a, s, Bandwidth{1});
  maker.add_cable(b, s, Bandwidth{1});
  const Topology topology = maker.build("aside");
  const auto planners = find_planner("tree");
  const auto degradation = degrade(topology, collective_on(topology, CollectiveKind::broadcast),
                                   {Bytes{1 << 20}, std::span(&*planners, 1), false}, by_load);
  ASSERT_TRUE(degradation);
  const Damage* aside = find_damage(*degradation, "s");
  ASSERT_NE(aside, nullptr);
  EXPECT_TRUE(aside->outlook->fastest->kept);
  EXPECT_EQ(aside->loss, 0);
  EXPECT_EQ(degradation->damages.front().failure.name, "a-b");  // the worst comes first
}

TEST(Degrade, BoundsAloneNeedNoPlanner) {
  const Topology topology = dgx1v_nvlinks(false);
  const auto degradation =
      degrade(topology, collective_on(topology, CollectiveKind::all_gather), {Bytes{}, {}, false}, by_load);
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
  const auto degradation =
      degrade(topology, collective_on(topology, CollectiveKind::all_gather), {Bytes{}, {}, false}, by_load);
  ASSERT_TRUE(degradation);
  const Damage& damage = degradation->damages.front();
  EXPECT_FALSE(damage.outlook);
  EXPECT_EQ(damage.loss, 1);
  EXPECT_EQ(damage.broken.message, "without g0-g1, g0 and g[1-2] cannot reach each other");
}

TEST(Degrade, ARootKeepsItsPlaceWhenARankBeforeItFails) {
  const Topology topology = star_of(4);
  const Collective collective = *make_collective(CollectiveKind::broadcast, 4, Rank(3));
  const auto degradation = degrade(topology, collective, {Bytes{}, {}, true}, by_load);
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
      const auto degradation = degrade(topology, collective_on(topology, kind), {Bytes{}, {}, false}, by_load);
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
}  // namespace espalier::planners
