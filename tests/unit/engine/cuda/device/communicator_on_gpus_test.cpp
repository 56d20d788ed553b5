// Ranks whose device is a GPU, on the fake driver: collectives on its memory, calls on streams of the caller's, what a
// GPU does not reach. Here ranks are threads; tests/cuda/run_on_gpus_test.py has them as processes.
#include <gtest/gtest.h>

#include <array>
#include <map>
#include <mutex>
#include <set>
#include <tuple>
#include <vector>

#include "engine/communicator/communicator.h"
#include "engine/executor/clock.h"
#include "engine/executor/recorder.h"
#include "engine/program/rank_program.h"
#include "schedule/layout.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/fake_gpus.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine::cuda {
namespace {

using test::PlannedSource;

/// Ranks take so many fake GPUs in turn.
JobOptions on_gpus(const test::FakeGpus& gpus, TransportChoice transport, int count = 2) {
  JobOptions options;
  options.transport = transport;
  options.timeout = std::chrono::milliseconds(20000);
  options.make_device = [&gpus, count, next = std::make_shared<std::atomic<int>>(0)]() -> std::unique_ptr<Device> {
    auto opened = gpus.open(next->fetch_add(1) % count);
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::unique_ptr<Device>(std::move(*opened)) : nullptr;
  };
  return options;
}

class CommunicatorOnGpus : public ::testing::TestWithParam<TransportChoice> {};

TEST_P(CommunicatorOnGpus, CarriesEveryCollective) {
  const test::FakeGpus gpus;
  PlannedSource source("ring", Bytes{256});
  run_ranks(3, source.source(), on_gpus(gpus, GetParam()), [](Communicator& world) {
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{2000}, std::size_t{9000}}) {
        test::run_device_case(world, {kind, ElementType::float32, ReduceOperation::sum, 3, 0, count, 2});
        if (::testing::Test::HasFailure()) return world.abort("a test failed");
      }
    }
    const auto met = world.barrier();
    EXPECT_TRUE(met) << met.error().message;
  });
}

/// On host memory too, where the communicator knows it.
TEST_P(CommunicatorOnGpus, CarriesRegisteredMemoryOfTheHost) {
  const test::FakeGpus gpus;
  PlannedSource source("ring", Bytes{256});
  run_ranks(3, source.source(), on_gpus(gpus, GetParam()), [](Communicator& world) {
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const test::Memory memory : {test::Memory::registered, test::Memory::adopted}) {
        test::run_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 0, 3000, 2}, memory, false);
        if (::testing::Test::HasFailure()) return world.abort("a test failed");
      }
    }
  });
}

TEST_P(CommunicatorOnGpus, RefusesMemoryThatTheGpuDoesNotReach) {
  const test::FakeGpus gpus;
  PlannedSource source("ring", Bytes{256});
  run_ranks(2, source.source(), on_gpus(gpus, GetParam()), [](Communicator& world) {
    if (world.rank() != 0) return;
    std::vector<float> values(100, 1);
    const auto done = world.all_reduce(values.data(), values.data(), 100, ElementType::float32, ReduceOperation::sum);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("device 'cuda' does not reach the 400 bytes at"), std::string::npos)
        << done.error().message;
    EXPECT_EQ(done.error().help, "let the communicator allocate the buffer, or register it");
  });
}

/// Calls between work that the caller gives its stream itself, without waiting for anything but the last of it.
TEST_P(CommunicatorOnGpus, CallsInTheOrderOfAStream) {
  const test::FakeGpus gpus;
  PlannedSource source("ring", Bytes{256});
  run_ranks(2, source.source(), on_gpus(gpus, GetParam()), [&](Communicator& world) {
    constexpr std::size_t count = 3000;
    constexpr std::size_t bytes = count * sizeof(std::int32_t);
    const DriverApi& api = (*gpus.driver())->api();
    DriverHandle stream = nullptr;
    ASSERT_EQ(api.make_stream(&stream, 1), status_success);
    {
      const test::DeviceMemory memory(world, bytes);
      const auto place = reinterpret_cast<DeviceAddress>(memory.data());
      const std::vector<std::int32_t> ones(count, 1);
      std::array<std::vector<std::int32_t>, 2> seen = {std::vector<std::int32_t>(count),
                                                       std::vector<std::int32_t>(count)};
      auto queue = world.adopt_stream(stream);
      ASSERT_TRUE(queue) << queue.error().message;
      ASSERT_EQ(api.copy(place, reinterpret_cast<DeviceAddress>(ones.data()), bytes, stream), status_success);
      CallArguments arguments{CollectiveKind::all_reduce, memory.data(),       memory.data(), count,
                              ElementType::int32,         ReduceOperation::sum};
      arguments.queue = queue->get();
      std::vector<CallHandle> handles;
      for (std::vector<std::int32_t>& result : seen) {
        auto handle = world.start(arguments);
        ASSERT_TRUE(handle) << handle.error().message;
        handles.push_back(*handle);
        ASSERT_EQ(api.copy(reinterpret_cast<DeviceAddress>(result.data()), place, bytes, stream), status_success);
      }
      ASSERT_EQ(api.await_stream(stream), status_success);
      EXPECT_EQ(seen[0], std::vector<std::int32_t>(count, 2));
      EXPECT_EQ(seen[1], std::vector<std::int32_t>(count, 4));
      for (CallHandle& handle : handles) {
        const auto done = handle.wait();
        EXPECT_TRUE(done) << done.error().message;
      }
      EXPECT_TRUE(world.barrier());
    }
    api.destroy_stream(stream);
  });
}

INSTANTIATE_TEST_SUITE_P(All, CommunicatorOnGpus, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& choice) { return std::string(to_string(choice.param)); });

bool says_kernels(const Communicator& world) {
  std::size_t others = 0;
  for (const PeerTransport& peer : world.transports()) {
    if (peer.carries_out_calls) ++others;
  }
  return others + 1 == world.size();
}

/// A GPU for each rank: its kernel carries out the calls, of all types and shapes one after the other, and where
/// buffers are the host's for once, the executor does.
TEST(KernelsOnGpus, CarryOutCallsWhereEachRankHasAGpu) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "4");
  PlannedSource source("ring", Bytes{1024});
  run_ranks(3, source.source(), on_gpus(gpus, TransportChoice::shm, 4), [](Communicator& world) {
    EXPECT_TRUE(says_kernels(world));
    for (const CollectiveKind kind : all_collective_kinds) {
      for (const std::size_t count : {std::size_t{1}, std::size_t{2000}, std::size_t{30000}, std::size_t{2000}}) {
        test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 1, count, 2});
        if (::testing::Test::HasFailure()) return world.abort("a test failed");
      }
      test::run_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 1, 2000, 2}, test::Memory::registered,
                     false);
      test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, 3, 1, 2000, 2});
    }
    test::run_device_case(world,
                          {CollectiveKind::all_reduce, ElementType::float16, ReduceOperation::avg, 3, 0, 999, 2});
    test::run_device_case(world,
                          {CollectiveKind::reduce_scatter, ElementType::float64, ReduceOperation::max, 3, 0, 999, 2});
  });
}

/// Rank 1 is done with its one byte, and leaves, while rank 0's kernel still copies what it keeps; at its end that one
/// looks whether rank 1 has read its byte.
TEST(KernelsOnGpus, KeepTheirMemoryUntilThoseOfOthersHaveEnded) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "2");
  PlannedSource source("flat", Bytes{1024});
  constexpr std::int64_t kept = 128 << 20;
  constexpr std::array<std::int64_t, 2> shares = {kept, 1};
  run_ranks(2, source.source(), on_gpus(gpus, TransportChoice::shm), [&](Communicator& world) {
    EXPECT_TRUE(says_kernels(world));
    const bool is_root = world.rank() == 0;
    const test::DeviceMemory sent(world, is_root ? kept + 1 : 1);
    const test::DeviceMemory received(world, is_root ? kept : 1);
    const auto done = world.run({.kind = CollectiveKind::scatter,
                                 .send = sent.data(),
                                 .receive = received.data(),
                                 .count = kept + 1,
                                 .type = ElementType::uint8,
                                 .shares = shares});
    EXPECT_TRUE(done) << done.error().message;
  });
}

/// A call of kernels gives each chunk's time at its destination, in the host's time: the GPUs' timers are an hour
/// ahead. Once by mailboxes, once by copies and reductions.
class RecordsOnGpus : public ::testing::TestWithParam<std::size_t> {};

TEST_P(RecordsOnGpus, SayWhenChunksCame) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "4");
  PlannedSource source("ring", Bytes{1024});
  std::mutex mutex;
  std::map<std::tuple<std::uint32_t, TransferId, std::uint32_t>, int> seen;  // By destination.
  std::set<std::tuple<std::uint32_t, TransferId, std::uint32_t>> expected;
  run_ranks(3, source.source(), on_gpus(gpus, TransportChoice::shm, 4), [&](Communicator& world) {
    const std::size_t count = GetParam();
    const test::DeviceMemory memory(world, count * 4);
    const CallArguments arguments{CollectiveKind::all_reduce, memory.data(),       memory.data(), count,
                                  ElementType::int32,         ReduceOperation::sum};
    ASSERT_TRUE(world.run(arguments));
    Recorder recorder;
    world.record(&recorder);
    ASSERT_TRUE(world.barrier());
    recorder.clear();
    const std::int64_t before = now_ns();
    const auto done = world.run(arguments);
    const std::int64_t after = now_ns();
    world.record(nullptr);
    ASSERT_TRUE(done) << done.error().message;
    ASSERT_TRUE(world.run(arguments));  // Not recorded.
    const auto records = recorder.records();
    ASSERT_TRUE(records) << records.error().message;
    const std::int64_t error = recorder.device_clock_error_ns();
    const auto plan = world.schedule_of(arguments);
    ASSERT_TRUE(plan) << plan.error().message;
    const auto layout = Layout::make(*plan->schedule, Bytes{static_cast<std::int64_t>(count) * 4}, 4);
    const auto program = compile(*plan->schedule, *layout, {Bytes{1024}, plan->ahead}, Rank(world.rank()),
                                 [](const Transfer&) { return 0U; });
    ASSERT_TRUE(program) << program.error().message;
    const std::lock_guard lock(mutex);
    for (const Stream& stream : program->streams) {
      for (std::uint32_t i = 0; i < stream.op_count && !stream.is_outgoing; ++i) {
        const Op& op = program->ops[stream.first_op + i];
        expected.insert({world.rank(), op.transfer, op.chunk});
      }
    }
    for (const Record& record : *records) {
      EXPECT_GE(record.begin_ns + error, before);
      EXPECT_LE(record.begin_ns, record.end_ns);
      EXPECT_LE(record.end_ns - error, after);
      EXPECT_NE(record.phase, Phase::send);
      ++seen[{record.rank, record.transfer, record.chunk}];
    }
  });
  EXPECT_GE(expected.size(), 3U * 4U * 4U);
  for (const auto& place : expected) EXPECT_EQ(seen[place], 1);
  EXPECT_EQ(seen.size(), expected.size());
}

INSTANTIATE_TEST_SUITE_P(All, RecordsOnGpus, ::testing::Values(std::size_t{3000}, std::size_t{30000}));

/// The first calls of two communicators at a time, which ranks see entered in any order.
TEST(KernelsOnGpus, CarryOutCallsOfTwoGroupsAtATime) {
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "4");
  PlannedSource source("ring", Bytes{1024});
  run_ranks(3, source.source(), on_gpus(gpus, TransportChoice::shm, 4), [&](Communicator& world) {
    constexpr std::size_t count = 5000;
    const std::array<std::uint32_t, 3> all = {0, 1, 2};
    const auto other = world.split(all, "other", source.source());
    ASSERT_TRUE(other) << other.error().message;
    std::vector<std::int32_t> values(count, static_cast<std::int32_t>(world.rank()) + 1);
    const auto queue = world.make_queue();
    ASSERT_TRUE(queue) << queue.error().message;
    const test::DeviceMemory first(world, count * 4);
    const test::DeviceMemory second(world, count * 4);
    for (int round = 0; round < 5; ++round) {
      (*queue)->copy(first.data(), reinterpret_cast<const std::byte*>(values.data()), count * 4);
      (*queue)->copy(second.data(), reinterpret_cast<const std::byte*>(values.data()), count * 4);
      test::await_all(**queue);
      world.group_begin();
      for (auto& [communicator, data] : {std::pair(&world, first.data()), std::pair(other->get(), second.data())}) {
        ASSERT_TRUE(communicator->run(
            {CollectiveKind::all_reduce, data, data, count, ElementType::int32, ReduceOperation::sum}));
      }
      const auto done = world.group_end();
      ASSERT_TRUE(done) << done.error().message;
      for (const test::DeviceMemory* memory : {&first, &second}) {
        std::vector<std::int32_t> sums(count);
        (*queue)->copy(reinterpret_cast<std::byte*>(sums.data()), memory->data(), count * 4);
        test::await_all(**queue);
        EXPECT_EQ(sums, std::vector<std::int32_t>(count, 6));
      }
    }
  });
}

/// GPUs that do not open each other's memory: it is staged, and the transport says why.
TEST(StagedOnGpus, StagesWhatOthersDoNotOpen) {
  const test::FakeGpus gpus("FAKE_CUDA_PEERS", "0");
  PlannedSource source("ring", Bytes{256});
  run_ranks(2, source.source(), on_gpus(gpus, TransportChoice::shm), [](Communicator& world) {
    if (world.rank() == 0) {
      EXPECT_NE(world.transports()[1].reason.find("device memory is staged: GPU"), std::string::npos)
          << world.transports()[1].reason;
    }
    for (const CollectiveKind kind : all_collective_kinds) {
      test::run_device_case(world, {kind, ElementType::float32, ReduceOperation::sum, 2, 0, 2000, 2});
    }
  });
}

}  // namespace
}  // namespace espalier::engine::cuda
