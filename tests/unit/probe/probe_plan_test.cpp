#include "probe/probe_plan.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "probe/measured_topology.h"
#include "sim/simulate.h"
#include "topology/generate/generate.h"
#include "topology/routes.h"
#include "topology/slow.h"

namespace espalier::probe {
namespace {

/// A machine that the simulator runs rounds on: every pair sends over as many ways as there are like ones.
class SimulatedMachine {
 public:
  SimulatedMachine(Topology topology, double noise, std::uint64_t seed)
      : topology_(std::move(topology)), random_(seed), noise_(0, noise) {}

  std::vector<FlowResult> measure(std::span<const PairPath> paths, const Round& round) {
    constexpr std::uint32_t ways = 4;
    constexpr std::int64_t bytes = std::int64_t{4} << 20U;
    Schedule schedule({CollectiveKind::broadcast, static_cast<std::uint32_t>(topology_.rank_count()), Rank(0)},
                      topology_.name(), "probe");
    for (std::size_t i = 0; i < round.size(); ++i) {
      const PairPath& path = paths[round[i]];
      for (const auto& variant : routes(path.from, path.to, ways)) {
        schedule.slices.push_back({schedule.units++, 1, {}, {}});
        schedule.add_transfer(schedule.add_route(path.from, path.to, variant.links),
                              SliceId(schedule.slices.size() - 1), 1, Action::copy, ChannelId(0));
      }
    }
    sim::Options options;
    options.size = {schedule.units * bytes / ways};
    options.chunk = {bytes / ways / 8};
    options.record_timeline = true;
    const auto report = sim::simulate_unverified(schedule, topology_, options);
    EXPECT_TRUE(report) << report.error().message;
    std::vector<Picoseconds> ends(round.size());
    for (const Span& span : report->timeline->spans) {
      if (span.phase != Phase::recv) continue;
      Picoseconds& end = ends[span.transfer.index() / ways];
      end = std::max(end, span.end);
    }
    std::vector<FlowResult> results;
    for (const Picoseconds end : ends) {
      const double rate = static_cast<double>(bytes) / end.seconds() * std::exp(noise_(random_));
      results.push_back({rate, rate, rate, 0});
    }
    return results;
  }

 private:
  const std::vector<FoundRoute>& routes(Rank from, Rank to, std::uint32_t ways) {
    auto& known = routes_[{from, to}];
    for (std::uint32_t i = 0; known.size() < ways; ++i) {
      known.push_back(*find_route(topology_, from, to, {.variant = i}));
    }
    return known;
  }

  Topology topology_;
  std::map<std::pair<Rank, Rank>, std::vector<FoundRoute>> routes_;
  std::mt19937_64 random_;
  std::normal_distribution<double> noise_;
};

Topology slowed(const Topology& topology, const std::string& text) {
  return slow_down(topology, std::vector<std::string>{text}).value();
}

/// Runs a plan to its end.
std::uint32_t run(ProbePlan& plan, SimulatedMachine& machine) {
  while (const auto round = plan.next()) plan.note(machine.measure(plan.paths(), *round));
  return plan.findings().rounds();
}

Topology boxes(std::int64_t count, std::int64_t gpus) {
  RailBoxesOptions options;
  options.boxes = count;
  options.gpus_per_box = gpus;
  options.rails = gpus;
  return generate_rail_boxes(options).value();
}

TEST(ProbePlanTest, FirstRoundsCrossEveryHopAndNoRankTwice) {
  const Topology topology = boxes(4, 8);
  const ProbePlan plan(topology);
  std::vector<bool> is_crossed(plan.hops().count());
  for (const Round& round : plan.first_rounds()) {
    std::set<Rank> busy;
    for (const std::uint32_t index : round) {
      const PairPath& path = plan.paths()[index];
      EXPECT_TRUE(busy.insert(path.from).second);
      EXPECT_TRUE(busy.insert(path.to).second);
      for (const HopShare& share : path.shares) is_crossed[share.hop] = true;
    }
  }
  EXPECT_EQ(std::ranges::count(is_crossed, false), 0);
  EXPECT_LE(plan.first_rounds().size(), 5U);
}

TEST(ProbePlanTest, SlowNicAmong64BoxesIsFoundInTwelveRounds) {
  const Topology topology = boxes(64, 2);
  std::mt19937_64 random(5);
  for (int fault = 0; fault < 12; ++fault) {
    const std::string nic = "box" + std::to_string(random() % 64) + ".nic" + std::to_string(random() % 2);
    const int left = 25 + static_cast<int>(random() % 51);
    SimulatedMachine machine(slowed(topology, nic + "=" + std::to_string(left) + "%"), 0.02, random());
    ProbePlan plan(topology);
    EXPECT_LE(run(plan, machine), 12U) << nic;
    const auto suspects = plan.findings().suspects();
    ASSERT_FALSE(suspects.empty()) << nic << " at " << left;
    for (const Suspect& suspect : suspects) {  // One for each direction.
      EXPECT_EQ(suspect.parts.front(), nic);
      EXPECT_NEAR(suspect.left, left / 100.0, 0.08);
      EXPECT_TRUE(suspect.is_confirmed);
    }
  }
}

TEST(ProbePlanTest, TwoSlowNicsAreBothFound) {
  const Topology topology = boxes(64, 1);
  SimulatedMachine machine(slowed(slowed(topology, "box3.nic0=0.5"), "box40.nic0=0.6"), 0.02, 1);
  ProbePlan plan(topology);
  EXPECT_LE(run(plan, machine), 12U);
  std::set<std::string> named;
  for (const Suspect& suspect : plan.findings().suspects()) named.insert(suspect.parts.front());
  EXPECT_EQ(named, (std::set<std::string>{"box3.nic0", "box40.nic0"}));
}

TEST(ProbePlanTest, HealthyMachineHasNoSuspects) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    const Topology topology = boxes(16, 4);
    SimulatedMachine machine(topology, 0.03, seed);
    ProbePlan plan(topology);
    EXPECT_EQ(run(plan, machine), plan.first_rounds().size());
    EXPECT_TRUE(plan.findings().suspects().empty());
  }
}

TEST(ProbePlanTest, OneSlowDirectionOfACableIsNamedAsThat) {
  const Topology topology = generate_leaf_spine({.leaves = 2, .ranks_per_leaf = 8, .spines = 1}).value();
  const Topology bad = slowed(topology, "gpu5>leaf0=0.5");
  SimulatedMachine machine(bad, 0.02, 3);
  ProbePlan plan(topology);
  run(plan, machine);
  const auto suspects = plan.findings().suspects();
  ASSERT_EQ(suspects.size(), 1U);
  EXPECT_EQ(suspects.front().parts.front(), "gpu5>leaf0");
}

TEST(ProbePlanTest, WhatPassesIsClearedWhenTheSecondTimeIsFine) {
  const Topology topology = boxes(16, 1);
  SimulatedMachine machine(topology, 0.01, 3);
  ProbePlan plan(topology);
  for (bool is_first = true; const auto round = plan.next(); is_first = false) {
    auto results = machine.measure(plan.paths(), *round);
    if (is_first) results.front().rate *= 0.4;  // Others' traffic, once.
    plan.note(results);
  }
  EXPECT_TRUE(plan.findings().suspects().empty());
}

TEST(ProbePlanTest, MeasuredMachineHasMeasuredRatesWithTheirSpread) {
  const Topology topology = boxes(16, 1);
  SimulatedMachine machine(slowed(slowed(topology, "nic=0.8"), "box3.nic0=0.5"), 0.01, 1);
  ProbePlan plan(topology);
  run(plan, machine);
  const auto measured = measured_topology(topology, plan.hops(), plan.paths(), plan.findings());
  ASSERT_TRUE(measured) << measured.error().message;
  const auto rate_of = [&](const char* link) {
    return static_cast<double>(measured->topology.link(measured->topology.find_link(link)).nominal.bytes_per_second) *
           1e-9;
  };
  EXPECT_NEAR(rate_of("box5.nic0>rail0"), 40, 1.5);
  EXPECT_NEAR(rate_of("box3.nic0>rail0"), 20, 1.5);
  EXPECT_NEAR(rate_of("box5.gpu0>box5.nic0"), 64, 0.01);  // It was never what limits.
  ASSERT_FALSE(measured->provenance.empty());
  for (const ProvenanceRow& row : measured->provenance) {
    EXPECT_EQ(row.origin, Origin::measured);
    EXPECT_NE(row.source.find("described"), std::string::npos) << row.source;
  }
}

}  // namespace
}  // namespace espalier::probe
