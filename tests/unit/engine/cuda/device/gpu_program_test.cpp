// Calls on streams and in graphs, calls by copies of the host's, and every fault that the fake driver can inject.
#include "engine/cuda/device/gpu_program.h"

#include <gtest/gtest.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/lsan_interface.h>
#endif

#include <chrono>

#include "engine/check/data_case.h"
#include "engine/cuda/device/gpu_path.h"
#include "engine/cuda/device/gpu_ranks.h"
#include "engine/cuda/device/host_driven_ranks.h"
#include "engine/cuda/verify_program.h"
#include "planners/planner.h"
#include "tests/support/fake_gpus.h"
#include "topology/generate/generate.h"

namespace espalier::engine::cuda {
namespace {

using namespace std::chrono_literals;

/// An all_reduce of 4 ranks on two GPUs, neighbours apart.
class CallCase {
 public:
  CallCase(const test::FakeGpus& fake, GpuPath path, DeviceCall call, bool low_latency = false)
      : data_{CollectiveKind::all_reduce, call.type, call.operation, 4, 0, 500} {
    for (const int gpu : {0, 1}) {
      auto opened = fake.open(gpu);
      if (!opened) {
        made = tl::unexpected(opened.error());
        return;
      }
      gpus.push_back(std::move(*opened));
    }
    made = make(path, call, low_latency);
  }
  ~CallCase() {
    made = fail(ErrorCode::unavailable, "");
    for (const auto& [gpu, data] : memories_) gpu->release(data, 0);
  }
  CallCase(const CallCase&) = delete;
  CallCase& operator=(const CallCase&) = delete;

  void check_results() {
    for (std::uint32_t rank = 0; rank < data_.ranks; ++rank) {
      EXPECT_EQ(check_receive_buffer(data_, rank, buffers_[rank].receive).wrong, 0U) << "rank " << rank;
      std::fill_n(buffers_[rank].receive, program_.memories[rank].receive, std::byte{0x55});
    }
  }

  std::vector<std::unique_ptr<CudaDevice>> gpus;
  Result<std::unique_ptr<GpuProgram>> made = fail(ErrorCode::unavailable, "");

 private:
  Result<std::unique_ptr<GpuProgram>> make(GpuPath path, const DeviceCall& call, bool low_latency) {
    const auto topology = generate_fully_connected({.ranks = data_.ranks});
    const auto collective = make_collective(CollectiveKind::all_reduce, data_.ranks, std::nullopt);
    const auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner("ring"));
    const std::int64_t element = size_of(call.type);
    const auto layout = Layout::make(*schedule, Bytes{500 * element}, element);
    const bool by_kernels = path == GpuPath::kernels;
    program_ = *compile_for_device(*schedule, *layout, {Bytes{512}},
                                   {.forwards = by_kernels, .low_latency = by_kernels && low_latency});
    EXPECT_TRUE(verify(program_, false));
    std::vector<CudaDevice*> of_rank;
    for (std::uint32_t rank = 0; rank < data_.ranks; ++rank) {
      CudaDevice* const gpu = gpus[rank % gpus.size()].get();
      of_rank.push_back(gpu);
      const MemorySizes& sizes = program_.memories[rank];
      std::array<std::byte*, 3> data{};
      for (std::size_t i = 0; i < 3; ++i) {
        const auto memory = gpu->allocate(
            std::max<std::int64_t>(std::array{sizes.send, sizes.receive, sizes.scratch}[i], 1), MemorySpace::device);
        if (!memory) return tl::unexpected(memory.error());
        data[i] = *memory;
        memories_.emplace_back(gpu, *memory);
      }
      buffers_.push_back({data[0], data[1], data[2]});
      fill_send_buffer(data_, rank, data[0]);  // The fake GPU's memory is the processor's.
    }
    if (by_kernels) return GpuRanks::prepare(of_rank, program_, buffers_, call, false);
    return HostDrivenRanks::prepare(of_rank, program_, buffers_, call);
  }

  DataCase data_;
  DeviceProgram program_;
  std::vector<std::pair<CudaDevice*, std::byte*>> memories_;
  std::vector<RankBuffers> buffers_;
};

/// Streams of the caller's, one for each GPU.
class Streams {
 public:
  explicit Streams(const CallCase& of) : api_(of.gpus.front()->driver().api()) {
    for (DriverHandle& stream : handles) EXPECT_EQ(api_.make_stream(&stream, 1), status_success);
  }
  ~Streams() {
    for (const DriverHandle stream : handles) api_.destroy_stream(stream);
  }
  /// Until both are done.
  void await() {
    DriverStatus first = status_not_ready;
    DriverStatus second = status_not_ready;
    while (first == status_not_ready || second == status_not_ready) {
      first = api_.query_stream(handles[0]);
      second = api_.query_stream(handles[1]);
    }
    EXPECT_EQ(first, status_success);
    EXPECT_EQ(second, status_success);
  }

  std::array<DriverHandle, 2> handles{};

 private:
  const DriverApi& api_;
};

TEST(GpuCalls, FollowEachOtherOnStreamsWithoutTheHost) {
  const test::FakeGpus fake;
  for (const GpuPath path : {GpuPath::kernels, GpuPath::copies}) {
    for (const bool low_latency : {false, true}) {
      CallCase of(fake, path, {ElementType::float32, ReduceOperation::sum}, low_latency);
      ASSERT_TRUE(of.made) << of.made.error().message;
      Streams streams(of);
      for (int call = 0; call < 3; ++call) ASSERT_TRUE((*of.made)->enqueue(streams.handles));
      streams.await();
      EXPECT_TRUE((*of.made)->check());
      of.check_results();
    }
  }
}

TEST(GpuCalls, ByCopiesNeedNeitherPeerAccessNorCooperativeLaunches) {
  for (const char* const lacks : {"FAKE_CUDA_PEERS", "FAKE_CUDA_COOPERATIVE"}) {
    const test::FakeGpus fake(lacks, "0");
    for (const ReduceOperation operation : {ReduceOperation::sum, ReduceOperation::avg}) {
      CallCase of(fake, GpuPath::copies, {ElementType::float16, operation});
      ASSERT_TRUE(of.made) << of.made.error().message;
      for (int call = 0; call < 2; ++call) {
        const auto done = (*of.made)->run();
        ASSERT_TRUE(done) << done.error().message;
        of.check_results();
      }
      const auto choice = choose_path(of.gpus, std::nullopt);
      ASSERT_TRUE(choice);
      EXPECT_EQ(choice->path, GpuPath::copies);
      EXPECT_EQ(choice->reason, std::string_view(lacks) == "FAKE_CUDA_PEERS"
                                    ? "GPU 0 cannot reach the memory of GPU 1"
                                    : "GPU 0 (Fake GPU) has no cooperative launches");
    }
  }
  const test::FakeGpus fake;
  const CallCase of(fake, GpuPath::kernels, {});
  EXPECT_EQ(choose_path(of.gpus, std::nullopt)->path, GpuPath::kernels);
  EXPECT_EQ(choose_path(of.gpus, GpuPath::copies)->path, GpuPath::copies);
}

/// Every call of the driver that a path makes fails once, with every kind of status: the call or its preparation says
/// so, well before the deadline, and later calls say the same.
TEST(GpuCalls, SayWhatFailed) {
  for (const GpuPath path : {GpuPath::kernels, GpuPath::copies}) {
    for (const char* const function :
         {"cuMemAlloc_v2", "cuMemHostAlloc", "cuMemsetD8Async", "cuMemcpyAsync", "cuStreamCreate", "cuStreamQuery",
          "cuModuleLoadData", "cuModuleGetFunction", "cuLaunchCooperativeKernel", "cuLaunchKernel", "cuEventCreate",
          "cuEventRecord", "cuStreamWaitEvent", "cuMemcpyPeerAsync", "cuMemcpyDtoDAsync_v2",
          "cuDevicePrimaryCtxRetain"}) {
      for (const int status : {2, 214, 700, 719}) {
        for (const int at : {1, 2, 9}) {
          const std::string fault = std::string(function) + ":" + std::to_string(at) + ":" + std::to_string(status);
          const test::FakeGpus fake("FAKE_CUDA_FAIL", fault.c_str());
          const auto begin = std::chrono::steady_clock::now();
          CallCase of(fake, path, {ElementType::float32, ReduceOperation::sum, 5000ms});
          Result<void> done;
          for (int call = 0; of.made && done && call < 2; ++call) done = (*of.made)->run();
          EXPECT_LT(std::chrono::steady_clock::now() - begin, 5000ms) << fault;
          if (!of.made) {
            EXPECT_NE(of.made.error().message.find("(" + std::to_string(status)), std::string::npos) << fault;
          } else if (!done) {
            EXPECT_NE(done.error().message.find("(" + std::to_string(status)), std::string::npos) << fault;
            const auto again = (*of.made)->run();
            ASSERT_FALSE(again) << fault;
            EXPECT_EQ(again.error().message, done.error().message) << fault;
          } else {
            of.check_results();  // Less than so many calls of it are made.
          }
        }
      }
    }
  }
}

/// While one is there, what this thread allocates may be left behind.
struct MayLeak {
#ifdef __SANITIZE_ADDRESS__
  MayLeak() { __lsan_disable(); }
  ~MayLeak() { __lsan_enable(); }
#endif
};

TEST(GpuCalls, GiveUpOnAKernelThatHangs) {
  [[maybe_unused]] const MayLeak what_a_kernel_may_still_write;
  const test::FakeGpus fake("FAKE_CUDA_HANG", "1");
  CallCase of(fake, GpuPath::kernels, {ElementType::float32, ReduceOperation::sum, 20ms});
  ASSERT_TRUE(of.made) << of.made.error().message;
  const auto begin = std::chrono::steady_clock::now();
  const auto done = (*of.made)->run();
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().message, "a kernel does not end, 4000 ms past its deadline");
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 20s);
  EXPECT_FALSE((*of.made)->run());
}

}  // namespace
}  // namespace espalier::engine::cuda
