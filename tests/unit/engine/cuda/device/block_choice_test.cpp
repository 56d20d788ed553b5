// How many blocks carry out a stream, and how long chunks are, from the schedule and what a GPU runs at a time.
#include "engine/cuda/device/block_choice.h"

#include <gtest/gtest.h>

#include "planners/planner.h"
#include "topology/generate/generate.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::uint32_t blocks_of_h100 = 264;

Schedule ring_of(std::uint32_t ranks) {
  const auto topology = generate_fully_connected({.ranks = ranks});
  const auto collective = make_collective(CollectiveKind::all_reduce, ranks, std::nullopt);
  return *planners::plan_unbounded(*topology, *collective, *planners::find_planner("ring"));
}

BlockOptions blocks_for_size(const Schedule& schedule, Bytes size, std::uint32_t max_blocks) {
  const auto layout = Layout::make(schedule, size, 4);
  return choose_blocks(schedule, *layout, Pacing{choose_gpu_chunk(schedule, max_blocks)}, max_blocks);
}

TEST(BlockChoice, FillsTheGpuWithLargeMessages) {
  for (const std::uint32_t ranks : {2U, 4U, 8U, 16U}) {
    const Schedule schedule = ring_of(ranks);
    const std::uint32_t most = blocks_of_h100 / ranks;
    const BlockOptions options = blocks_for_size(schedule, Bytes{std::int64_t{256} << 20}, most);
    EXPECT_EQ(options.blocks_per_rank, most);
    const auto layout = Layout::make(schedule, Bytes{std::int64_t{256} << 20}, 4);
    const auto program = compile_for_device(schedule, *layout, Pacing{choose_gpu_chunk(schedule, most)}, options);
    ASSERT_TRUE(program) << program.error().message;
    EXPECT_LE(program->blocks.size(), blocks_of_h100);
    EXPECT_GE(program->blocks.size(), blocks_of_h100 / 2) << ranks << " ranks";
    EXPECT_FALSE(options.low_latency);
  }
}

TEST(BlockChoice, GivesShortMessagesFewBlocks) {
  const Schedule schedule = ring_of(4);
  EXPECT_EQ(blocks_for_size(schedule, Bytes{64}, 66).blocks_per_stream, 1U);
  EXPECT_TRUE(blocks_for_size(schedule, Bytes{32 << 10}, 66).low_latency);
  const std::uint32_t of_64k = blocks_for_size(schedule, Bytes{64 << 10}, 66).blocks_per_stream;
  const std::uint32_t of_1m = blocks_for_size(schedule, Bytes{1 << 20}, 66).blocks_per_stream;
  EXPECT_LT(of_64k, of_1m);
  EXPECT_FALSE(blocks_for_size(schedule, Bytes{64 << 10}, 66).low_latency);
}

TEST(BlockChoice, MakesChunksOfWhatTheBlocksOfAStreamTakeTogether) {
  constexpr std::int64_t of_block = std::int64_t{128} << 10;
  const Schedule schedule = ring_of(8);
  const std::int64_t chunk = choose_gpu_chunk(schedule, blocks_of_h100 / 8).count;
  EXPECT_EQ(chunk % of_block, 0);
  EXPECT_EQ(blocks_for_size(schedule, Bytes{std::int64_t{64} << 20}, blocks_of_h100 / 8).blocks_per_stream,
            chunk / of_block);
  EXPECT_EQ(choose_gpu_chunk(schedule, 1).count, of_block);
  EXPECT_EQ(choose_gpu_chunk(schedule, 100'000), choose_gpu_chunk(schedule, 132)) << "a rank has 132 at most";
}

}  // namespace
}  // namespace espalier::engine::cuda
