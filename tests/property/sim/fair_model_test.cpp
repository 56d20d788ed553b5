#include <gtest/gtest.h>

#include "schedule/loads.h"
#include "sim/simulate.h"
#include "tests/support/gapless.h"
#include "tests/support/networks/random_machine.h"

namespace espalier {
namespace {

using test::Machine;
using test::RandomMachine;

constexpr int fair_rounds = 1000;

sim::Report simulate_fair(const Machine& machine, std::int64_t size, std::int64_t chunk,
                          const sim::Conditions& conditions = {}) {
  sim::Options options{Bytes{size}, Bytes{chunk}, 1, true, true};
  options.model = sim::ModelKind::fair;
  options.conditions = conditions;
  auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  ESPALIER_CHECK(report.has_value(), "a test's machine simulates");
  return std::move(*report);
}

/// Some links slow down, die and come back at random; all are whole again in the end.
sim::Conditions pick_conditions(const Machine& machine, Random& random) {
  sim::Conditions conditions;
  for (std::uint64_t changes = random.below(6); changes > 0 && !machine.links.empty(); --changes) {
    const LinkId link(random.below(machine.links.size()));
    const std::int32_t parts[] = {0, 0, 1, 333'333, 500'000};
    conditions.changes.push_back({link, {random.between(0, 60)}, parts[random.below(std::size(parts))]});
    conditions.changes.push_back({link, {random.between(61, 200)}, 1'000'000});
  }
  if (random.below(2) == 0) conditions.jitter_ppm = static_cast<std::int32_t>(random.between(0, 1'000'000));
  conditions.seed = random.next();
  return conditions;
}

TEST(FairModelProperty, LinksCarryTheLoadsOfTheScheduleWhateverHappens) {
  RandomMachine maker(11);
  for (int round = 0; round < fair_rounds; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const std::int64_t size = schedule.units * maker.random().between(0, 12);
    const sim::Report report =
        simulate_fair(machine, size, maker.random().between(1, 30), pick_conditions(machine, maker.random()));
    const Loads loads = compute_loads(schedule, machine.topology());
    for (std::size_t i = 0; i < report.links.size(); ++i) {
      EXPECT_EQ(report.links[i].bytes, loads.link_units[i] * (size / schedule.units)) << "round " << round;
      EXPECT_LE(report.links[i].busy, report.elapsed) << "round " << round;
    }
  }
}

TEST(FairModelProperty, NothingIsFasterThanTheFullestLinkOrBackplane) {
  RandomMachine maker(12);
  for (int round = 0; round < fair_rounds; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const std::int64_t size = schedule.units * maker.random().between(0, 12);
    const sim::Report report = simulate_fair(machine, size, maker.random().between(1, 30));
    const Rational floor = compute_loads(schedule, machine.topology()).time_per_byte * make_rational(size) *
                           make_rational(picoseconds_per_second);
    EXPECT_GE(make_rational(report.elapsed.count), floor) << "round " << round;
  }
}

TEST(FairModelProperty, ALinkIsBusyForItsBytes) {
  RandomMachine maker(13);
  for (int round = 0; round < fair_rounds; ++round) {
    const Machine machine = maker.make();
    const sim::Report report = simulate_fair(machine, maker.random().between(0, 90), maker.random().between(1, 30));
    for (std::size_t i = 0; i < report.links.size(); ++i) {
      // All flows' bytes at the full rate, rounded up once.
      EXPECT_EQ(report.links[i].busy, transfer_time(Bytes{report.links[i].bytes}, machine.links[i].bandwidth()));
    }
  }
}

TEST(FairModelProperty, CriticalPathCoversTheRunWithoutGaps) {
  RandomMachine maker(14);
  for (int round = 0; round < fair_rounds; ++round) {
    const Machine machine = maker.make();
    const sim::Report report = simulate_fair(machine, maker.random().between(0, 60), maker.random().between(1, 30),
                                             pick_conditions(machine, maker.random()));
    SCOPED_TRACE(round);
    test::expect_gapless(report);
  }
}

TEST(FairModelProperty, SameInputGivesTheSameReport) {
  RandomMachine maker(15);
  for (int round = 0; round < fair_rounds / 4; ++round) {
    const Machine machine = maker.make();
    const sim::Conditions conditions = pick_conditions(machine, maker.random());
    const sim::Report first = simulate_fair(machine, 96, 7, conditions);
    const sim::Report second = simulate_fair(machine, 96, 7, conditions);
    EXPECT_EQ(first.elapsed, second.elapsed);
    EXPECT_EQ(first.links, second.links);
    EXPECT_EQ(first.timeline->spans, second.timeline->spans);
    EXPECT_EQ(first.critical_path, second.critical_path);
  }
}

}  // namespace
}  // namespace espalier
