#include "sim/simulate.h"

#include <gtest/gtest.h>

#include "schedule/loads.h"
#include "tests/support/gapless.h"
#include "tests/support/networks/random_machine.h"

namespace espalier {
namespace {

using test::Machine;
using test::RandomMachine;

constexpr int rounds = 1000;

/// Bytes that are a multiple of the units, so that every unit has as many bytes.
std::int64_t pick_size(const Schedule& schedule, Random& random) { return schedule.units * random.between(0, 12); }

TEST(SimulateProperty, LinksCarryTheLoadsOfTheSchedule) {
  RandomMachine maker(1);
  for (int round = 0; round < rounds; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const std::int64_t size = pick_size(schedule, maker.random());
    const sim::Report report = machine.simulate(size, maker.random().between(1, 30));
    const Loads loads = compute_loads(schedule, machine.topology());
    for (std::size_t i = 0; i < report.links.size(); ++i) {
      EXPECT_EQ(report.links[i].bytes, loads.link_units[i] * (size / schedule.units));
    }
  }
}

TEST(SimulateProperty, NothingIsFasterThanTheFullestLinkOrBackplane) {
  RandomMachine maker(2);
  for (int round = 0; round < rounds; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const std::int64_t size = pick_size(schedule, maker.random());
    const sim::Report report = machine.simulate(size, maker.random().between(1, 30));
    const Rational floor = compute_loads(schedule, machine.topology()).time_per_byte * make_rational(size) *
                           make_rational(picoseconds_per_second);
    EXPECT_GE(make_rational(report.elapsed.count), floor) << "round " << round;
    for (const sim::LinkUse& use : report.links) EXPECT_LE(use.busy, report.elapsed);
  }
}

TEST(SimulateProperty, SameInputGivesTheSameReport) {
  RandomMachine maker(3);
  for (int round = 0; round < rounds / 4; ++round) {
    const Machine machine = maker.make();
    const sim::Report first = machine.simulate(96, 7);
    const sim::Report second = machine.simulate(96, 7);
    EXPECT_EQ(first.elapsed, second.elapsed);
    EXPECT_EQ(first.links, second.links);
    EXPECT_EQ(first.timeline->spans, second.timeline->spans);
    EXPECT_EQ(first.critical_path, second.critical_path);
  }
}

TEST(SimulateProperty, CriticalPathCoversTheRunWithoutGaps) {
  RandomMachine maker(4);
  for (int round = 0; round < rounds; ++round) {
    const Machine machine = maker.make();
    const sim::Report report = machine.simulate(maker.random().between(0, 60), maker.random().between(1, 30));
    SCOPED_TRACE(round);
    test::expect_gapless(report);
  }
}

TEST(SimulateProperty, OneLaneAloneIsNeverFasterWithSlowerLinks) {
  // First come first served has anomalies with several flows; a single chain of copies has none.
  Random random(5);
  for (int round = 0; round < rounds; ++round) {
    const std::size_t ranks = 2 + random.below(4);
    Machine machine(ranks);
    machine.slice_units = {1};
    for (std::size_t i = 0; i + 1 < ranks; ++i) {
      machine.send({machine.add_link(i, i + 1, random.between(0, 20), {random.between(1, 9) * 100'000'000'000})});
    }
    const std::int64_t size = random.between(0, 200);
    const std::int64_t chunk = random.between(1, 60);
    const Picoseconds before = machine.simulate(size, chunk).elapsed;
    EXPECT_GE(machine.simulate(size + random.between(0, 50), size + 50).elapsed,
              machine.simulate(size, size + 50).elapsed);
    Link& slowed = machine.links[random.below(machine.links.size())];
    slowed.nominal = {slowed.nominal.bytes_per_second / 2};
    slowed.latency = {slowed.latency.count + random.between(0, 5)};
    EXPECT_GE(machine.simulate(size, chunk).elapsed, before) << "round " << round;
  }
}

TEST(SimulateProperty, SpansOfOneLinkNeverOverlap) {
  RandomMachine maker(6);
  for (int round = 0; round < rounds / 2; ++round) {
    const Machine machine = maker.make();
    const sim::Report report = machine.simulate(60, maker.random().between(1, 30));
    std::vector<Picoseconds> free_at(machine.links.size());
    for (const Span& span : report.timeline->spans) {
      EXPECT_LE(span.begin, span.end);
      if (span.phase != Phase::wire) continue;
      EXPECT_GE(span.begin, free_at[span.lane]);
      free_at[span.lane] = std::max(free_at[span.lane], span.end);
    }
  }
}

}  // namespace
}  // namespace espalier
