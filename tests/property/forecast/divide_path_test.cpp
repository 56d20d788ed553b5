#include <gtest/gtest.h>

#include <algorithm>

#include "sim/critical_path/path_times.h"
#include "sim/simulate.h"
#include "tests/support/networks/random_machine.h"

namespace espalier::forecast {
namespace {

using test::Machine;
using test::RandomMachine;

sim::Report simulate(const Machine& machine, sim::ModelKind model, Random& random, std::int64_t size) {
  sim::Options options;
  options.size = {size};
  options.chunk = {random.between(1, 30)};
  options.element_size = 1;
  options.model = model;
  options.payload_ppm = random.below(3) == 0 ? 500'000 : 1'000'000;
  options.record_critical_path = options.record_sharing = true;
  auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  ESPALIER_CHECK(report.has_value(), "a test's machine simulates");
  return std::move(*report);
}

TEST(DividePathProperty, ContributionsAddUpToTheTotal) {
  RandomMachine maker(91);
  int shared_runs = 0;
  for (int round = 0; round < 1500; ++round) {
    const Machine machine = maker.make();
    const Schedule schedule = machine.schedule();
    const Topology topology = machine.topology();
    const std::int64_t size = schedule.units * maker.random().between(0, 12);
    for (const sim::ModelKind model : sim::all_models) {
      const sim::Report report = simulate(machine, model, maker.random(), size);
      std::int64_t sum = 0;
      sim::PathTimes times(topology);
      for (const sim::PathPart& part : report.path_parts) times.add(part);
      for (const sim::PathTime& part : times.shares()) {
        EXPECT_GT(part.time.count, 0);
        EXPECT_LE(part.max_time, part.time);
        EXPECT_TRUE(model == sim::ModelKind::fair || part.use != sim::PathUse::sharing);
        sum += part.time.count;
      }
      EXPECT_EQ(sum, report.elapsed.count) << "round " << round << ", model " << to_string(model);
      // Undisturbed flows are held back by other flows only.
      std::int64_t queued = 0;
      for (const sim::CriticalStep& step : report.critical_path) queued += step.reduces ? 0 : step.queued.count;
      std::int64_t shared = 0;
      for (const sim::SharedTime& part : report.shared) shared += part.time.count;
      if (model == sim::ModelKind::link) continue;
      EXPECT_EQ(shared, queued) << "round " << round;
      shared_runs += shared > 0 ? 1 : 0;
    }
  }
  EXPECT_GT(shared_runs, 200);
}

}  // namespace
}  // namespace espalier::forecast
