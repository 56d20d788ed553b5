// Calls of communicators in CUDA graphs, on the fake driver: captured, launched again and again, refused where the host
// would have a part in them.
#include <gtest/gtest.h>

#include <atomic>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "engine/communicator/communicator.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/fake_gpus.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine::cuda {
namespace {

using test::PlannedSource;

constexpr int capture_of_this_thread = 1;  // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL.

JobOptions each_on_a_gpu(const test::FakeGpus& gpus, int count, std::chrono::milliseconds timeout) {
  JobOptions options;
  options.transport = TransportChoice::shm;
  options.timeout = timeout;
  options.make_device = [&gpus, count, next = std::make_shared<std::atomic<int>>(0)]() -> std::unique_ptr<Device> {
    auto opened = gpus.open(next->fetch_add(1) % count);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::unique_ptr<Device>(std::move(*opened)) : nullptr;
  };
  return options;
}

/// A stream of the caller's with what is captured on it.
class CapturingStream {
 public:
  CapturingStream(const test::FakeGpus& gpus, Communicator& world) : api_((*gpus.driver())->api()) {
    EXPECT_EQ(api_.make_stream(&stream_, 1), status_success);
    auto queue = world.adopt_stream(stream_);
    EXPECT_TRUE(queue) << queue.error().message;
    queue_ = std::move(*queue);
  }
  ~CapturingStream() {
    if (executable_ != nullptr) api_.destroy_executable(executable_);
    if (graph_ != nullptr) api_.destroy_graph(graph_);
    queue_.reset();
    api_.destroy_stream(stream_);
  }
  CapturingStream(const CapturingStream&) = delete;
  CapturingStream& operator=(const CapturingStream&) = delete;

  void capture(const std::function<void()>& what) {
    ASSERT_EQ(api_.begin_capture(stream_, capture_of_this_thread), status_success);
    what();
    ASSERT_EQ(api_.end_capture(stream_, &graph_), status_success);
    ASSERT_EQ(api_.make_executable(&executable_, graph_, 0), status_success);
  }
  template <class Element>
  std::vector<Element> launch_on(std::byte* data, const std::vector<Element>& values) {
    const auto place = reinterpret_cast<DeviceAddress>(data);
    const std::size_t bytes = values.size() * sizeof(Element);
    std::vector<Element> result(values.size());
    EXPECT_EQ(api_.copy(place, reinterpret_cast<DeviceAddress>(values.data()), bytes, stream_), status_success);
    EXPECT_EQ(api_.launch_graph(executable_, stream_), status_success);
    EXPECT_EQ(api_.copy(reinterpret_cast<DeviceAddress>(result.data()), place, bytes, stream_), status_success);
    EXPECT_EQ(api_.await_stream(stream_), status_success);
    return result;
  }
  [[nodiscard]] DeviceQueue* queue() const { return queue_.get(); }

 private:
  const DriverApi& api_;
  DriverHandle stream_ = nullptr;
  DriverHandle graph_ = nullptr;
  DriverHandle executable_ = nullptr;
  std::unique_ptr<DeviceQueue> queue_;
};

class CapturedCalls : public ::testing::TestWithParam<std::size_t> {};

/// Two calls in a graph, launched three times, and calls that nothing captures in between.
TEST_P(CapturedCalls, RunWheneverTheirGraphIsLaunched) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "4");
  PlannedSource source("ring", Bytes{1024});
  run_ranks(3, source.source(), each_on_a_gpu(gpus, 4, std::chrono::milliseconds(20000)), [&](Communicator& world) {
    const std::size_t count = GetParam();
    const test::DeviceMemory memory(world, count * 4);
    const test::DeviceMemory other(world, count * 4);
    CapturingStream stream(gpus, world);
    CallArguments sum{CollectiveKind::all_reduce, memory.data(),       memory.data(), count,
                      ElementType::float32,       ReduceOperation::sum};
    CallArguments average = sum;
    average.operation = ReduceOperation::avg;
    sum.queue = average.queue = stream.queue();
    stream.capture([&] {
      for (const CallArguments& arguments : {sum, average}) {
        const auto captured = world.run(arguments);
        ASSERT_TRUE(captured) << captured.error().message;
      }
    });
    CallArguments uncaptured = sum;
    uncaptured.send = uncaptured.receive = other.data();
    uncaptured.queue = nullptr;
    for (int launch = 1; launch <= 3; ++launch) {
      const std::vector<float> values(count, static_cast<float>(launch * (static_cast<int>(world.rank()) + 1)));
      // The sum of 1, 2 and 3 times `launch`; the average of three of those is the same.
      EXPECT_EQ(stream.launch_on(memory.data(), values), std::vector<float>(count, static_cast<float>(6 * launch)));
      const auto done = world.run(uncaptured);
      ASSERT_TRUE(done) << done.error().message;
    }
    const auto went_well = world.check_captured();
    EXPECT_TRUE(went_well) << went_well.error().message;
    EXPECT_TRUE(world.barrier());
  });
}

INSTANTIATE_TEST_SUITE_P(All, CapturedCalls, ::testing::Values(std::size_t{500}, std::size_t{30000}));

/// Ranks that share a GPU have no kernels: the reason is said, nothing was captured, and the job goes on.
TEST(CapturedCallsTest, AreRefusedWhereTheHostHasAPart) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "1");
  PlannedSource source("ring", Bytes{1024});
  run_ranks(2, source.source(), each_on_a_gpu(gpus, 1, std::chrono::milliseconds(20000)), [&](Communicator& world) {
    const test::DeviceMemory memory(world, 4000);
    CapturingStream stream(gpus, world);
    CallArguments arguments{CollectiveKind::all_reduce, memory.data(),       memory.data(), 1000,
                            ElementType::int32,         ReduceOperation::sum};
    arguments.queue = stream.queue();
    stream.capture([&] {
      const auto captured = world.run(arguments);
      ASSERT_FALSE(captured);
      EXPECT_NE(captured.error().message.find("cannot be captured: no kernels carry it out on all ranks: rank "),
                std::string::npos)
          << captured.error().message;
      EXPECT_EQ(captured.error().code, ErrorCode::unsupported);
      EXPECT_FALSE(world.start(arguments));
      world.group_begin();
      EXPECT_FALSE(world.run(arguments));
      EXPECT_TRUE(world.group_end());
    });
    const auto done = world.run(arguments);
    EXPECT_TRUE(done) << done.error().message;
    EXPECT_TRUE(world.barrier());
  });
}

/// A rank that does not launch its graph: the others' kernels stop at the deadline, and say so.
TEST(CapturedCallsTest, StopAtTheDeadline) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "4");
  PlannedSource source("ring", Bytes{1024});
  std::atomic<int> late = 0;
  run_ranks(3, source.source(), each_on_a_gpu(gpus, 4, std::chrono::milliseconds(5000)), [&](Communicator& world) {
    constexpr std::size_t count = 30000;
    const test::DeviceMemory memory(world, count * 4);
    CapturingStream stream(gpus, world);
    CallArguments arguments{CollectiveKind::all_reduce, memory.data(),       memory.data(), count,
                            ElementType::float32,       ReduceOperation::sum};
    arguments.queue = stream.queue();
    stream.capture([&] {
      const auto captured = world.run(arguments);
      ASSERT_TRUE(captured) << captured.error().message;
    });
    if (world.rank() != 2) {
      stream.launch_on(memory.data(), std::vector<float>(count, 1));
      const auto done = world.check_captured();
      ASSERT_FALSE(done);
      EXPECT_EQ(done.error().code, ErrorCode::unavailable);
      ++late;
    }
    while (late < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));  // Their memory is here.
  });
  EXPECT_EQ(late, 2);
}

}  // namespace
}  // namespace espalier::engine::cuda
