#include "sim/simulate.h"

#include <gtest/gtest.h>

#include "tests/differential/sim/reference_simulator.h"
#include "tests/support/networks/random_machine.h"

namespace espalier {
namespace {

using test::Machine;
using test::RandomMachine;
using test::ReferenceRun;

TEST(SimulateAgainstDefinition, AgreesOnEveryTimeOfRandomSchedules) {
  RandomMachine maker(20'260'731);
  for (int round = 0; round < 3000; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const Topology topology = machine.topology();
    sim::Options options;
    options.element_size = maker.random().below(2) == 0 ? 1 : 4;
    options.size = {maker.random().between(0, 40) * options.element_size};
    options.chunk = {maker.random().between(1, 20) * options.element_size};
    if (round % 3 > 0) options.ahead = static_cast<std::uint32_t>(maker.random().between(1, 6));
    options.record_timeline = true;
    // Every other machine's ranks have processors, whose time all their messages share.
    const Picoseconds message{round % 2 == 0 ? 0 : maker.random().between(1, 3'000'000)};
    const sim::CopyEngines engines{0, {}, message};
    const ReferenceRun expected = test::simulate_by_definition(schedule, topology, options, message);
    const auto report = sim::simulate_unverified(schedule, topology, options, engines);
    ASSERT_TRUE(report) << report.error().message;
    ASSERT_EQ(report->elapsed.count, expected.elapsed) << "round " << round;
    ASSERT_EQ(report->links, expected.links) << "round " << round;
    ASSERT_EQ(report->timeline->spans, expected.spans) << "round " << round;
    options.record_timeline = false;  // may take the way without an event queue
    const auto quick = sim::simulate_unverified(schedule, topology, options, engines);
    ASSERT_TRUE(quick) << quick.error().message;
    ASSERT_EQ(quick->elapsed.count, expected.elapsed) << "round " << round;
    ASSERT_EQ(quick->links, expected.links) << "round " << round;
    ASSERT_EQ(quick->events, report->events) << "round " << round;
  }
}

}  // namespace
}  // namespace espalier
