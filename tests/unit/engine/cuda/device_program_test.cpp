// Device programs of every planner's schedules give every collective's result, for all types and operations.
#include "engine/cuda/device_program.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "planners/planner.h"
#include "tests/support/device_program_case.h"
#include "tests/support/sanitized.h"
#include "topology/generate/generate.h"

namespace espalier::engine::cuda {
namespace {

Schedule make_schedule(CollectiveKind kind, std::uint32_t ranks, std::string_view planner) {
  const auto topology = generate_fully_connected({.ranks = ranks});
  const auto collective = make_collective(kind, ranks, std::nullopt);
  auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner(planner));
  EXPECT_TRUE(schedule) << schedule.error().message;
  return schedule ? *std::move(schedule) : Schedule();
}

TEST(DeviceProgram, CarriesOutEveryPlannersSchedules) {
  std::size_t schedules = 0;
  for (const std::uint32_t ranks : {2U, 3U, 5U, 8U}) {
    const auto topology = generate_fully_connected({.ranks = ranks});
    for (const CollectiveKind kind : all_collective_kinds) {
      const auto root = has_root(kind) ? std::optional(Rank(ranks - 1)) : std::nullopt;
      const auto collective = make_collective(kind, ranks, root);
      for (const planners::Planner& planner : planners::all_planners()) {
        const auto schedule = planners::plan_unbounded(*topology, *collective, planner);
        if (!schedule || !schedule->relays.empty()) continue;
        ++schedules;
        for (const bool in_place : {false, true}) {
          const DataCase data{kind, ElementType::float32, ReduceOperation::sum, ranks, root ? ranks - 1 : 0, 1003};
          test::run_device_case(*schedule, data, Bytes{256}, {.streams_per_pair = 2, .blocks_per_rank = 3}, in_place);
          test::run_device_case(*schedule, data, Bytes{256}, {.blocks_per_rank = 4, .blocks_per_stream = 2}, in_place);
          test::run_device_case(*schedule, data, Bytes{256}, {.forwards = false}, in_place);
          test::run_device_case(*schedule, data, Bytes{512}, {.low_latency = true}, in_place);
        }
      }
    }
  }
  EXPECT_GE(schedules, 4 * all_collective_kinds.size());  // At least one planner makes each.
}

TEST(DeviceProgram, CombinesEveryTypeWithEveryOperation) {
  for (const CollectiveKind kind :
       {CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::reduce}) {
    for (const char* planner : {"ring", "tree", "flat"}) {
      if (kind == CollectiveKind::reduce && std::string_view(planner) == "ring") continue;
      const Schedule schedule = make_schedule(kind, 3, planner);
      for (const ElementType type : all_element_types) {
        for (const ReduceOperation operation : all_reduce_operations) {
          for (const std::size_t count : {0U, 1U, 2U, 331U}) {
            if (ESPALIER_SANITIZED != 0 && count == 1) continue;
            for (const bool low_latency : {false, true}) {
              test::run_device_case(schedule, {kind, type, operation, 3, 0, count}, Bytes{64},
                                    {.low_latency = low_latency}, count % 2 == 1);
            }
          }
        }
      }
    }
  }
}

TEST(DeviceProgram, LetsOneRankKeepWhatItHas) {
  const Schedule schedule = [] {
    Schedule made(*make_collective(CollectiveKind::all_reduce, 1, std::nullopt), "one", "none");
    made.units = 1;
    made.slices.push_back({0, 1, Rank(), Rank()});
    return made;
  }();
  test::run_device_case(schedule, {CollectiveKind::all_reduce, ElementType::int32, ReduceOperation::sum, 1, 0, 77},
                        Bytes{64}, {}, false);
}

TEST(DeviceProgram, HasNoMoreBlocksThanAskedFor) {
  const Schedule schedule = make_schedule(CollectiveKind::all_to_all, 4, "flat");
  const auto layout = Layout::make(schedule, Bytes{1024}, 4);
  // Every rank receives from 3 others: 3 streams, dealt to 2 blocks.
  const auto program = compile_for_device(schedule, *layout, {Bytes{1024}}, {.blocks_per_rank = 2});
  ASSERT_TRUE(program) << program.error().message;
  EXPECT_EQ(program->blocks.size(), 8U);
  // 3 streams of 2 blocks each would be 6: dealt to 2 teams of 2.
  const auto together =
      compile_for_device(schedule, *layout, {Bytes{1024}}, {.blocks_per_rank = 5, .blocks_per_stream = 2});
  ASSERT_TRUE(together) << together.error().message;
  EXPECT_EQ(together->blocks.size(), 16U);
  EXPECT_TRUE(check_co_residency(*program, {4, 2}));
  const auto refused = check_co_residency(*program, {7, 1});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large);
  EXPECT_EQ(refused.error().message,
            "4 ranks need 8 thread blocks at a time, and the GPU runs 7 (7 multiprocessors, 1 blocks each)");
}

/// What a rank only passes on is written to the next rank by the step that brought it.
TEST(DeviceProgram, WritesWhatIsPassedOnInTheSameStep) {
  const auto topology = generate_fully_connected({.ranks = 4});
  const auto collective = make_collective(CollectiveKind::broadcast, 4, Rank(0));
  const auto tree = planners::plan_unbounded(*topology, *collective, *planners::find_planner("tree"));
  const auto layout = Layout::make(*tree, Bytes{1024}, 4);
  const auto count = [&](const BlockOptions& options) {
    const auto program = compile_for_device(*tree, *layout, {Bytes{1024}}, options);
    EXPECT_TRUE(program) << program.error().message;
    return std::pair(program->steps.size(), program->destinations.size());
  };
  // Each rank enters and finishes, the root copies its own, and there is a step for each transfer that none brings
  // along.
  const auto [apart, no_destinations] = count({.forwards = false});
  EXPECT_EQ(apart, 4 * 2 + 1 + tree->transfers.size());
  EXPECT_EQ(no_destinations, 0U);
  const auto [together, destinations] = count({});
  EXPECT_GT(destinations, 0U);
  EXPECT_EQ(together + destinations, apart);
  // By mailboxes a transfer takes a step at either end, or is a destination of the step that brought its bytes.
  const auto [sent, slots] = count({.low_latency = true});
  EXPECT_EQ(slots, tree->transfers.size());
  EXPECT_LT(sent, 4 * 2 + 1 + 2 * tree->transfers.size());
}

/// What a rank copies from its own data into its own result all of its blocks copy together, the root of a broadcast,
/// which receives nothing, as well.
TEST(DeviceProgram, SharesOwnCopiesAmongBlocks) {
  for (const CollectiveKind kind :
       {CollectiveKind::broadcast, CollectiveKind::all_gather, CollectiveKind::all_to_all}) {
    SCOPED_TRACE(to_string(kind));
    const Schedule schedule = make_schedule(kind, 4, "flat");
    const auto layout = Layout::make(schedule, Bytes{4 << 20}, 4);
    const auto program =
        compile_for_device(schedule, *layout, {Bytes{1 << 20}}, {.blocks_per_rank = 12, .blocks_per_stream = 4});
    ASSERT_TRUE(program) << program.error().message;
    std::vector<std::int64_t> copied;  // by block of rank 0
    for (const Block& block : program->blocks) {
      if (block.rank != Rank(0)) continue;
      copied.push_back(0);
      for (const Step& step : std::span(program->steps).subspan(block.first_step, block.step_count)) {
        if (step.kind != StepKind::copy || step.peer != Rank(0)) continue;
        for (const Piece& piece : std::span(program->pieces).subspan(step.first_piece, step.piece_count)) {
          copied.back() += piece.length;
        }
      }
    }
    EXPECT_EQ(copied.size(), kind == CollectiveKind::broadcast ? 4U : 12U);
    const std::int64_t own = std::int64_t{4 << 20} / (kind == CollectiveKind::broadcast ? 1 : 4);
    EXPECT_EQ(std::accumulate(copied.begin(), copied.end(), std::int64_t{0}), own);
    EXPECT_LE(std::ranges::max(copied), own / static_cast<std::int64_t>(copied.size()) + 16);
  }
}

}  // namespace
}  // namespace espalier::engine::cuda
