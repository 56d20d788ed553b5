// Calls of ranks on several machines: kernels move what stays within one, the executor the rest beside them. On the
// fake driver; the ranks are threads, which their boot ids put on machines.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/communicator/communicator.h"
#include "engine/communicator/make_transports.h"
#include "engine/executor/recorder.h"
#include "tests/support/device_case.h"
#include "tests/support/engine_cases.h"
#include "tests/support/fake_gpus.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine::cuda {
namespace {

using std::chrono::milliseconds;
using test::PlannedSource;

/// On which machine each rank is; TCP is between them.
struct Machines {
  const char* name;
  std::vector<std::uint32_t> of_rank;
};

const std::array all_machines = {Machines{"TwoAndTwo", {0, 0, 1, 1}}, Machines{"ThreeAndOne", {0, 0, 0, 1}},
                                 Machines{"Mixed", {0, 1, 0, 1, 0}}};

/// A fake GPU for each rank.
JobOptions on_machines(const test::FakeGpus& gpus, const Machines& machines, milliseconds timeout) {
  JobOptions options;
  options.timeout = timeout;
  options.make_device = [&gpus, next = std::make_shared<std::atomic<int>>(0)]() -> std::unique_ptr<Device> {
    auto opened = gpus.open(next->fetch_add(1));
    EXPECT_TRUE(opened) << opened.error().message;
    return opened ? std::unique_ptr<Device>(std::move(*opened)) : nullptr;
  };
  options.make_transports = [machines](rendezvous::ControlPlane& control, std::vector<rendezvous::PeerInfo> peers) {
    for (rendezvous::PeerInfo& peer : peers) peer.boot_id = "machine " + std::to_string(machines.of_rank[peer.rank]);
    JobOptions rest;
    rest.rendezvous.secret = "of the data connections";
    return make_transports(control, peers, rest, true);
  };
  return options;
}

/// Until so many ranks have ended their call: their kernels may look into this rank's memory, which in another process
/// would stay as long as they have it open.
void await(const std::atomic<std::uint32_t>& ended, std::uint32_t ranks) {
  while (ended < ranks) std::this_thread::sleep_for(milliseconds(5));
}

class KernelsBesideHosts : public ::testing::TestWithParam<Machines> {
 protected:
  [[nodiscard]] std::uint32_t ranks() const { return static_cast<std::uint32_t>(GetParam().of_rank.size()); }
  void run(ScheduleSource source, const std::function<void(Communicator&)>& body, milliseconds timeout) {
    run_ranks(ranks(), source, on_machines(gpus_, GetParam(), timeout), body);
  }

  /// In the second call the last rank does this instead: on all others it then ends with this message, within `limit`.
  void expect_others_end(const std::function<void(Communicator&)>& instead, const std::string& message,
                         milliseconds timeout, milliseconds limit) {
    PlannedSource source("ring", Bytes{1024});
    std::atomic<std::uint32_t> ended = 0;
    const auto begun = std::chrono::steady_clock::now();
    run(
        source.source(),
        [&](Communicator& world) {
          constexpr std::size_t count = 9000;
          const test::DeviceMemory memory(world, count * 4);
          const CallArguments arguments{CollectiveKind::all_reduce, memory.data(),       memory.data(), count,
                                        ElementType::int32,         ReduceOperation::sum};
          const auto connected = world.run(arguments);
          EXPECT_TRUE(connected) << connected.error().message;
          if (world.rank() + 1 == world.size()) {
            instead(world);
            return await(ended, ranks() - 1);
          }
          const auto done = world.run(arguments);
          EXPECT_FALSE(done);
          const std::string why = done ? "" : done.error().message;
          EXPECT_NE(why.find(message), std::string::npos) << why;
          ++ended;
          await(ended, ranks() - 1);
        },
        timeout);
    EXPECT_EQ(ended, ranks() - 1);
    EXPECT_LT(std::chrono::steady_clock::now() - begun, limit);
  }

  test::FakeGpus gpus_{"FAKE_CUDA_GPUS", "8"};
};

TEST_P(KernelsBesideHosts, CarryOutEveryCollective) {
  for (const char* planner : {"ring", "tree"}) {
    PlannedSource source(planner, Bytes{1024});
    run(
        source.source(),
        [this](Communicator& world) {
          for (const CollectiveKind kind : all_collective_kinds) {
            for (const std::size_t count : {std::size_t{1}, std::size_t{6000}, std::size_t{6000}}) {
              test::run_device_case(world, {kind, ElementType::int32, ReduceOperation::sum, ranks(), 1, count, 2});
              if (::testing::Test::HasFailure()) return world.abort("a test failed");
            }
          }
          for (const ReduceOperation operation : {ReduceOperation::avg, ReduceOperation::max}) {
            test::run_device_case(world,
                                  {CollectiveKind::all_reduce, ElementType::float16, operation, ranks(), 0, 999, 2});
          }
          EXPECT_TRUE(world.barrier());
        },
        milliseconds(20000));
  }
}

/// Chunks within a machine have their times by its GPUs, those between machines by hosts.
TEST_P(KernelsBesideHosts, RecordBothParts) {
  PlannedSource source("ring", Bytes{1024});
  const auto& of_rank = GetParam().of_rank;
  std::mutex mutex;
  std::map<std::tuple<std::uint32_t, TransferId, std::uint32_t>, int> arrivals;
  std::shared_ptr<const Schedule> schedule;
  std::atomic<int> recorded_by_kernels = 0;
  run(
      source.source(),
      [&](Communicator& world) {
        constexpr std::size_t count = 3000;
        const test::DeviceMemory memory(world, count * 4);
        const CallArguments arguments{CollectiveKind::all_reduce, memory.data(),       memory.data(), count,
                                      ElementType::int32,         ReduceOperation::sum};
        Recorder recorder;
        world.record(&recorder);
        const auto done = world.run(arguments);
        world.record(nullptr);
        ASSERT_TRUE(done) << done.error().message;
        const auto records = recorder.records();
        ASSERT_TRUE(records) << records.error().message;
        if (recorder.device_clock_error_ns() > 0) ++recorded_by_kernels;
        const auto plan = world.schedule_of(arguments);
        ASSERT_TRUE(plan) << plan.error().message;
        {
          const std::lock_guard lock(mutex);
          schedule = plan->schedule;
          for (const Record& record : *records) {
            EXPECT_LE(record.begin_ns, record.end_ns);
            if (record.phase != Phase::recv && record.phase != Phase::reduce) continue;
            const std::uint32_t lane = record.rank == own_rank ? world.rank() : record.rank;
            ++arrivals[{lane, record.transfer, record.chunk}];
          }
        }
        EXPECT_TRUE(world.barrier());
      },
      milliseconds(20000));
  ASSERT_TRUE(schedule);
  EXPECT_GT(recorded_by_kernels, 0);  // Some hop stays within a machine.
  std::size_t seen = 0;
  for (std::size_t i = 0; i < schedule->transfers.size(); ++i) {
    const Transfer& transfer = schedule->transfers[i];
    const std::uint32_t from = schedule->src(transfer).value();
    const std::uint32_t to = schedule->dst(transfer).value();
    // A host's reduction is an arrival and a reduction; a rank alone on its machine goes by its host altogether.
    const bool by_host = of_rank[from] != of_rank[to];
    for (const auto& [place, count] : arrivals) {
      if (std::get<1>(place) != TransferId(i)) continue;
      ++seen;
      EXPECT_EQ(std::get<0>(place), to);
      EXPECT_EQ(count, by_host && transfer.action() == Action::reduce ? 2 : 1);
    }
  }
  EXPECT_EQ(seen, arrivals.size());
  EXPECT_GE(seen, schedule->transfers.size());
}

/// One rank fails: all others learn of it in time, whatever they wait for.
TEST_P(KernelsBesideHosts, EndWhenARankGivesUp) {
  const auto give_up = [](Communicator& world) {
    std::this_thread::sleep_for(milliseconds(300));
    world.abort("it has had enough");
  };
  expect_others_end(give_up, "it has had enough", milliseconds(20000), milliseconds(10000));
}

/// One rank does not come: kernels that wait for its bytes stop before the deadline, and say for whom.
TEST_P(KernelsBesideHosts, EndWhenARankHangs) {
  expect_others_end([](Communicator&) {}, "", milliseconds(5000), milliseconds(20000));
}

INSTANTIATE_TEST_SUITE_P(All, KernelsBesideHosts, ::testing::ValuesIn(all_machines),
                         [](const auto& machines) { return std::string(machines.param.name); });

/// A launch or a copy that fails ends the call on all ranks, and on none of them later than the deadline. None is
/// sticky: all ranks share the fake driver here.
class FaultsBesideHosts : public ::testing::TestWithParam<const char*> {};

TEST_P(FaultsBesideHosts, EndTheCallOnAllRanks) {
  setenv("FAKE_CUDA_FAIL", GetParam(), 1);
  const test::FakeGpus gpus("FAKE_CUDA_GPUS", "8");
  unsetenv("FAKE_CUDA_FAIL");
  PlannedSource source("ring", Bytes{1024});
  std::atomic<std::uint32_t> ended = 0;
  const auto begun = std::chrono::steady_clock::now();
  const Machines machines{"", {0, 0, 1, 1}};
  run_ranks(4, source.source(), on_machines(gpus, machines, milliseconds(5000)), [&](Communicator& world) {
    const auto memory = world.allocate(36000, MemorySpace::device);
    ASSERT_TRUE(memory) << memory.error().message;
    const CallArguments arguments{CollectiveKind::all_reduce, *memory, *memory, 9000, ElementType::int32,
                                  ReduceOperation::sum};
    for (int call = 0; call < 20; ++call) {
      if (world.run(arguments)) continue;
      ++ended;
      break;
    }
    await(ended, 4);
  });
  EXPECT_EQ(ended, 4U);
  EXPECT_LT(std::chrono::steady_clock::now() - begun, milliseconds(15000));
}

INSTANTIATE_TEST_SUITE_P(All, FaultsBesideHosts,
                         ::testing::Values("cuLaunchCooperativeKernel:3:2", "cuLaunchCooperativeKernel:10:2",
                                           "cuMemcpyAsync:30:2", "cuLaunchKernel:9:2"));

}  // namespace
}  // namespace espalier::engine::cuda
