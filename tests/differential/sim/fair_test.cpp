#include <gtest/gtest.h>

#include "sim/simulate.h"
#include "tests/differential/sim/reference_fair.h"
#include "tests/support/networks/random_machine.h"

namespace espalier {
namespace {

using test::Machine;
using test::RandomMachine;
using test::ReferenceRun;

/// Links that slow down or die at random; all are whole again in the end. Half of the rounds have jitter.
sim::Conditions pick_conditions(const Machine& machine, Random& random) {
  sim::Conditions conditions;
  for (std::uint64_t changes = random.below(5); changes > 0 && !machine.links.empty(); --changes) {
    const LinkId link(random.below(machine.links.size()));
    const std::int32_t parts[] = {0, 1, 250'000, 333'333};
    conditions.changes.push_back({link, {random.between(0, 40)}, parts[random.below(std::size(parts))]});
    conditions.changes.push_back({link, {random.between(41, 90)}, 1'000'000});
  }
  if (random.below(2) == 0) conditions.jitter_ppm = static_cast<std::int32_t>(random.between(0, 1'000'000));
  conditions.seed = random.next();
  return conditions;
}

TEST(FairAgainstDefinition, AgreesOnEveryTimeOfRandomSchedules) {
  RandomMachine maker(20'261'121);
  for (int round = 0; round < 3000; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const Topology topology = machine.topology();
    sim::Options options;
    options.model = sim::ModelKind::fair;
    options.element_size = maker.random().below(2) == 0 ? 1 : 4;
    options.size = {maker.random().between(0, 40) * options.element_size};
    options.chunk = {maker.random().between(1, 20) * options.element_size};
    if (round % 3 > 0) options.ahead = static_cast<std::uint32_t>(maker.random().between(1, 6));
    options.record_timeline = true;
    if (round % 2 == 1) options.conditions = pick_conditions(machine, maker.random());
    // Every other machine's ranks have processors, whose time all their messages share.
    const Picoseconds message{round % 4 < 2 ? 0 : maker.random().between(1, 30)};
    const sim::CopyEngines engines{0, {}, message};
    const ReferenceRun expected = test::simulate_fair_by_definition(schedule, topology, options, message);
    const auto report = sim::simulate_unverified(schedule, topology, options, engines);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->elapsed.count, expected.elapsed) << "round " << round;
    ASSERT_EQ(report->timeline->spans, expected.spans) << "round " << round;
    options.record_timeline = false;
    ASSERT_EQ(sim::simulate_unverified(schedule, topology, options, engines)->elapsed.count, expected.elapsed)
        << "round " << round;
  }
}

}  // namespace
}  // namespace espalier
