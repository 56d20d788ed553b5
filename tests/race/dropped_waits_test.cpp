// That the sanitizer sees what the interpreter's threads read and write: a program whose waits are taken away has
// races, which the sanitizer finds and the verifier foretells.
#include <gtest/gtest.h>

#include <cstdlib>

#include "planners/planner.h"
#include "tests/support/device_program_case.h"
#include "topology/generate/generate.h"

namespace espalier::engine::cuda {
namespace {

constexpr int status_of_races = 66;  // The sanitizer's own.

/// Runs an all_reduce of three ranks along a ring and ends the process.
void run_ring(bool waits) {
  const auto topology = generate_fully_connected({.ranks = 3});
  const auto collective = make_collective(CollectiveKind::all_reduce, 3, std::nullopt);
  const auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner("ring"));
  const DataCase data{CollectiveKind::all_reduce, ElementType::float32, ReduceOperation::sum, 3, 0, 3000};
  const auto layout = Layout::make(*schedule, Bytes{12000}, 4);
  auto program = compile_for_device(*schedule, *layout, {Bytes{1024}}, {.blocks_per_rank = 2});
  if (!waits) {
    for (Step& step : program->steps) step.wait_count = 0;
  }
  if (verify(*program, false).has_value() != waits) std::exit(1);
  const test::DeviceRanks ranks(*program, data, false);
  if (!run_on_threads(*program, ranks.buffers, {data.type, data.operation})) std::exit(2);
  std::exit(0);
}

TEST(DroppedWaitsRace, IsFound) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_ring(false), testing::ExitedWithCode(status_of_races), "data race");
  EXPECT_EXIT(run_ring(true), testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace espalier::engine::cuda
