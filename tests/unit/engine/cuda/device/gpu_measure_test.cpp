// A schedule on the fake driver's GPUs as `run` has it: out of place and in place, checked, with its timeline.
#include "engine/cuda/device/gpu_measure.h"

#include <gtest/gtest.h>

#include <set>

#include "planners/planner.h"
#include "tests/support/fake_gpus.h"
#include "topology/generate/generate.h"

namespace espalier::engine::cuda {
namespace {

TEST(GpuMeasure, DealsRanksEvenlyNeighboursTogether) {
  EXPECT_EQ(place_ranks(8, 1), (std::vector<std::size_t>{0, 0, 0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(place_ranks(4, 2), (std::vector<std::size_t>{0, 0, 1, 1}));
  EXPECT_EQ(place_ranks(3, 2), (std::vector<std::size_t>{0, 0, 1}));
  EXPECT_EQ(place_ranks(2, 4), (std::vector<std::size_t>{0, 1}));
}

TEST(GpuMeasure, ChecksAndRecordsWithSeveralBlocksForAStream) {
  const test::FakeGpus fake;
  std::vector<std::unique_ptr<CudaDevice>> gpus;
  for (const int gpu : {0, 1}) gpus.push_back(std::move(*fake.open(gpu)));
  const auto topology = generate_fully_connected({.ranks = 3});
  const auto collective = make_collective(CollectiveKind::all_reduce, 3, std::nullopt);
  const auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner("ring"));
  ASSERT_TRUE(schedule) << schedule.error().message;
  // Chunks of 64 KiB: two blocks each.
  const GpuCase gpu_case{*schedule,
                         {CollectiveKind::all_reduce, ElementType::bfloat16, ReduceOperation::avg, 3, 0, 300'001},
                         Pacing{Bytes{65536}}};
  const MeasureOptions options{.iterations = 2, .warmups = 1};
  const auto measured = measure_on_gpus(gpus, gpu_case, options);
  ASSERT_TRUE(measured) << measured.error().message;
  EXPECT_EQ(measured->out_of_place.wrong, 0U);
  ASSERT_TRUE(measured->in_place);
  EXPECT_EQ(measured->in_place->wrong, 0U);
  EXPECT_GT(measured->out_of_place.times.median, 0);

  const auto recorded = record_on_gpus(gpus, gpu_case, options, "a run", {"a", "b", "c"});
  ASSERT_TRUE(recorded) << recorded.error().message;
  std::set<std::pair<TransferId, std::uint32_t>> chunks;
  std::set<TransferId> transfers;
  for (const Span& span : recorded->timeline.spans) {
    EXPECT_LE(span.begin, span.end);
    EXPECT_TRUE(chunks.emplace(span.transfer, span.chunk).second) << "a chunk has one span";
    transfers.insert(span.transfer);
  }
  EXPECT_EQ(transfers.size(), schedule->transfers.size());
}

}  // namespace
}  // namespace espalier::engine::cuda
