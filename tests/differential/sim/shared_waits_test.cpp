#include "sim/compiled/shared_waits.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "sim/simulate.h"
#include "tests/differential/sim/reference_fair.h"
#include "tests/support/networks/machine.h"
#include "tests/support/random/rounds.h"

namespace espalier {
namespace {

using test::Machine;
using test::ReferenceRun;

constexpr std::size_t ranks = 6;

/// Every rank adds up what all others have of its slice and sends them the sum: with uneven links its lanes are at
/// different chunks of that wait.
Machine all_to_all_sums(Random& random) {
  Machine machine(ranks);
  std::vector<std::vector<LinkId>> link(ranks, std::vector<LinkId>(ranks));
  for (std::size_t a = 0; a < ranks; ++a) {
    for (std::size_t b = 0; b < ranks; ++b) {
      if (a == b) continue;
      const Bandwidth rate{picoseconds_per_second / static_cast<std::int64_t>(1 + random.below(7))};
      link[a][b] = machine.add_link(a, b, static_cast<std::int64_t>(random.below(20)), rate);
    }
  }
  for (std::size_t i = 0; i < ranks; ++i) {
    if (random.below(3) == 0) machine.nodes[i].bandwidth = {picoseconds_per_second / 2};
    machine.slice_units.push_back(1 + static_cast<std::int64_t>(random.below(4)));
  }
  for (const bool gathers : {false, true}) {
    for (std::size_t owner = 0; owner < ranks; ++owner) {
      for (std::size_t other = 0; other < ranks; ++other) {
        if (other == owner) continue;
        const LinkId way = gathers ? link[owner][other] : link[other][owner];
        machine.send({way}, owner, 1, gathers ? Action::copy : Action::reduce, random.below(2));
      }
    }
  }
  return machine;
}

TEST(SharedWaits, AreOneListForAllThatSendASum) {
  Random random(20'261'124);
  const Schedule schedule = all_to_all_sums(random).schedule();
  const sim::SharedWaits shared(schedule, Dependencies(schedule));
  EXPECT_EQ(shared.count(), ranks);
  const std::size_t reductions = ranks * (ranks - 1);
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const std::uint32_t expected =
        i < reductions ? sim::SharedWaits::none : static_cast<std::uint32_t>((i - reductions) / (ranks - 1));
    EXPECT_EQ(shared.of(TransferId(i)), expected) << "transfer " << i;
  }
}

/// ESPALIER_SHARED_WAITS=200 for more.
TEST(SharedWaits, ChangeNoTime) {
  Random random(20'261'125);
  const std::int64_t rounds = test::rounds("ESPALIER_SHARED_WAITS", 80);
  for (std::int64_t round = 0; round < rounds; ++round) {
    const Machine machine = all_to_all_sums(random);
    const Schedule schedule = machine.schedule();
    const Topology topology = machine.topology();
    sim::Options options;
    options.element_size = 1;
    options.size = {random.between(1, 60)};
    options.chunk = {random.between(1, 6)};
    if (round % 3 > 0) options.ahead = static_cast<std::uint32_t>(random.between(1, 6));
    options.record_timeline = true;
    for (const sim::ModelKind model : {sim::ModelKind::link, sim::ModelKind::fair}) {
      options.model = model;
      const ReferenceRun expected = model == sim::ModelKind::link
                                        ? test::simulate_by_definition(schedule, topology, options)
                                        : test::simulate_fair_by_definition(schedule, topology, options);
      const auto report = sim::simulate_unverified(schedule, topology, options);
      ASSERT_TRUE(report) << report.error().message;
      ASSERT_EQ(report->elapsed.count, expected.elapsed) << "round " << round;
      ASSERT_EQ(report->timeline->spans, expected.spans) << "round " << round;
    }
  }
}

}  // namespace
}  // namespace espalier
