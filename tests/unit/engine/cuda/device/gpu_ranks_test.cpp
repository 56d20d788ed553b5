// Ranks on the GPUs of a process, by the fake driver: the collective's result, call after call, and what goes wrong.
#include "engine/cuda/device/gpu_ranks.h"

#include <gtest/gtest.h>

#include "engine/check/data_case.h"
#include "engine/cuda/verify_program.h"
#include "planners/planner.h"
#include "tests/support/fake_gpus.h"
#include "topology/generate/generate.h"

namespace espalier::engine::cuda {
namespace {

/// All_reduces of a ring on so many GPUs, rank r on GPU r modulo their number.
class GpuRing {
 public:
  GpuRing(const test::FakeGpus& fake, std::uint32_t ranks, int gpus, DeviceCall call, bool records) {
    data_ = {CollectiveKind::all_reduce, call.type, call.operation, ranks, 0, 1000};
    for (int gpu = 0; gpu < gpus; ++gpu) {
      auto opened = fake.open(gpu);
      EXPECT_TRUE(opened) << opened.error().message;
      gpus_.push_back(std::move(*opened));
    }
    const auto topology = generate_fully_connected({.ranks = ranks});
    const auto collective = make_collective(CollectiveKind::all_reduce, ranks, std::nullopt);
    const auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner("ring"));
    const std::int64_t element = size_of(call.type);
    const auto layout = Layout::make(*schedule, Bytes{1000 * element}, element);
    program = *compile_for_device(*schedule, *layout, {Bytes{512}}, {});
    EXPECT_TRUE(verify(program, false));
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      CudaDevice* const gpu = gpus_[rank % gpus_.size()].get();
      of_rank_.push_back(gpu);
      const MemorySizes& sizes = program.memories[rank];
      buffers_.push_back({allocate(*gpu, sizes.send), allocate(*gpu, sizes.receive), allocate(*gpu, sizes.scratch)});
      // The fake GPU's memory is the processor's.
      fill_send_buffer(data_, rank, const_cast<std::byte*>(buffers_.back().send));
    }
    prepared = GpuRanks::prepare(of_rank_, program, buffers_, call, records);
  }
  ~GpuRing() {
    prepared = fail(ErrorCode::unavailable, "");
    for (const auto& [gpu, data] : memories_) gpu->release(data, 0);
  }

  void check_results() {
    for (std::uint32_t rank = 0; rank < data_.ranks; ++rank) {
      EXPECT_EQ(check_receive_buffer(data_, rank, buffers_[rank].receive).wrong, 0U) << "rank " << rank;
      std::fill_n(buffers_[rank].receive, program.memories[rank].receive, std::byte{0x55});
    }
  }

  DeviceProgram program;
  Result<std::unique_ptr<GpuProgram>> prepared = fail(ErrorCode::unavailable, "");

 private:
  std::byte* allocate(CudaDevice& gpu, std::int64_t bytes) {
    const auto data = gpu.allocate(std::max<std::int64_t>(bytes, 1), MemorySpace::device);
    EXPECT_TRUE(data) << data.error().message;
    memories_.emplace_back(&gpu, *data);
    return *data;
  }

  DataCase data_;
  std::vector<std::unique_ptr<CudaDevice>> gpus_;
  std::vector<CudaDevice*> of_rank_;
  std::vector<std::pair<CudaDevice*, std::byte*>> memories_;
  std::vector<RankBuffers> buffers_;
};

TEST(GpuRanks, RunCallAfterCallOnOneGpuAndOnTwo) {
  const test::FakeGpus fake;
  for (const int gpus : {1, 2}) {
    for (const ReduceOperation operation : {ReduceOperation::sum, ReduceOperation::avg}) {
      GpuRing ring(fake, 4, gpus, {ElementType::float32, operation}, false);
      ASSERT_TRUE(ring.prepared) << ring.prepared.error().message;
      for (int call = 0; call < 3; ++call) {
        const auto done = (*ring.prepared)->run();
        ASSERT_TRUE(done) << done.error().message;
        ring.check_results();
      }
    }
  }
}

TEST(GpuRanks, RefuseMoreBlocksThanAGpuRuns) {
  const test::FakeGpus fake("FAKE_CUDA_MULTIPROCESSORS", "3");
  const GpuRing ring(fake, 4, 1, {}, false);  // Three rings: three blocks per rank; the GPU runs 3 x 2.
  ASSERT_FALSE(ring.prepared);
  EXPECT_EQ(ring.prepared.error().message,
            "4 ranks need 12 thread blocks at a time, and the GPU runs 6 (3 multiprocessors, 2 blocks each)");
  const GpuRing apart(fake, 4, 2, {}, false);
  EXPECT_TRUE(apart.prepared) << apart.prepared.error().message;
}

TEST(GpuRanks, RefuseGpusThatDoNotReachEachOther) {
  const test::FakeGpus fake("FAKE_CUDA_PEERS", "0");
  const GpuRing ring(fake, 2, 2, {}, false);
  ASSERT_FALSE(ring.prepared);
  EXPECT_EQ(ring.prepared.error().message, "GPU 0 cannot reach the memory of GPU 1");
}

/// The second GPU's kernel is not launched, so the first one's blocks wait in vain, until they are told to stop.
TEST(GpuRanks, EndWhenAGpuIsLost) {
  const test::FakeGpus fake("FAKE_CUDA_FAIL", "cuLaunchCooperativeKernel:2:719");
  GpuRing ring(fake, 2, 2, {}, false);
  ASSERT_TRUE(ring.prepared) << ring.prepared.error().message;
  const auto done = (*ring.prepared)->run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message,
            "cannot launch the interpreter on GPU 1: CUDA_ERROR_LAUNCH_FAILED (719, as the fake driver has it)");
  const auto again = (*ring.prepared)->run();
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().message, done.error().message);
}

/// Rank 1 copies what rank 0 has once rank 0 enters, which it never says.
TEST(GpuRanks, EndAtTheirDeadline) {
  const test::FakeGpus fake;
  const auto gpu = fake.open(0);
  ASSERT_TRUE(gpu) << gpu.error().message;
  DeviceProgram program;
  program.element_size = 4;
  program.counter_count = 2;
  program.memories = {{8, 8, 0, std::nullopt}, {8, 8, 0, std::nullopt}};
  program.pieces = {{8, {Place::send, 0}, {Place::receive, 0}, {Place::receive, 0}}};
  program.waits = {{0, 1}};
  program.steps = {{StepKind::enter, Rank(0), 0, 0, 0, 0, no_counter}, {StepKind::copy, Rank(0), 0, 1, 0, 1, 1}};
  program.blocks = {{Rank(0), 0, 1}, {Rank(1), 1, 1}};
  const auto memory = (*gpu)->allocate(64, MemorySpace::device);
  ASSERT_TRUE(memory) << memory.error().message;
  const std::array buffers = {RankBuffers{*memory, *memory + 8, nullptr},
                              RankBuffers{*memory + 16, *memory + 24, nullptr}};
  const std::array<CudaDevice*, 2> gpus = {gpu->get(), gpu->get()};
  {
    const auto ranks = GpuRanks::prepare(
        gpus, program, buffers, {ElementType::int32, ReduceOperation::sum, std::chrono::milliseconds(20)}, false);
    ASSERT_TRUE(ranks) << ranks.error().message;
    const auto done = (*ranks)->run();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().message, "rank 1, block 1: counter 0 did not reach 1 within 20 ms");
    EXPECT_FALSE((*ranks)->run());
  }
  (*gpu)->release(*memory, 64);
}

TEST(GpuRanks, RecordWhenStepsWereCarriedOut) {
  const test::FakeGpus fake;
  GpuRing ring(fake, 3, 2, {}, true);
  ASSERT_TRUE(ring.prepared) << ring.prepared.error().message;
  ASSERT_TRUE((*ring.prepared)->run());
  const auto times = (*ring.prepared)->step_times();
  ASSERT_TRUE(times) << times.error().message;
  ASSERT_EQ(times->size(), ring.program.steps.size());
  std::vector<std::vector<std::size_t>> signals(ring.program.counter_count);  // Steps, in their order.
  for (const Block& block : ring.program.blocks) {
    for (std::uint32_t i = 0; i < block.step_count; ++i) {
      const std::size_t step = block.first_step + i;
      EXPECT_GE((*times)[step].end_ns, (*times)[step].begin_ns);
      const Step& done = ring.program.steps[step];
      if (done.signal != no_counter) signals[done.signal].push_back(step);
      for (std::uint32_t d = 0; d < done.destination_count; ++d) {
        signals[ring.program.destinations[done.first_destination + d].signal].push_back(step);
      }
    }
  }
  // A step begins when those that it waits for have ended; clocks of two GPUs are off by their errors.
  const std::int64_t error = 2 * (*ring.prepared)->clock_error_ns();
  std::size_t compared = 0;
  for (std::size_t step = 0; step < times->size(); ++step) {
    for (std::uint32_t i = 0; i < ring.program.steps[step].wait_count; ++i) {
      const CounterWait& wait = ring.program.waits[ring.program.steps[step].first_wait + i];
      if (wait.count == 0) continue;
      ++compared;
      EXPECT_GE((*times)[step].begin_ns + error, (*times)[signals[wait.counter][wait.count - 1]].end_ns);
    }
  }
  EXPECT_GT(compared, 10U);
}

}  // namespace
}  // namespace espalier::engine::cuda
