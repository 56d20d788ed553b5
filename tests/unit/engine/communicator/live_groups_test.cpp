// Groups that live at the same time, calls on the job's thread beside the program's own, and waits that end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <numeric>

#include "engine/communicator/prepared_call.h"
#include "engine/shm/shared_memory.h"
#include "tests/support/engine_cases.h"
#include "tests/support/late_device.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

using test::PlannedSource;

JobOptions options_of(TransportChoice transport) {
  JobOptions options;
  options.transport = transport;
  options.timeout = std::chrono::milliseconds(10000);
  return options;
}

class LiveGroups : public ::testing::TestWithParam<TransportChoice> {};

/// Two groups of one name and the same members are two groups: a launch of calls on A, B and A runs those of A one
/// after the other, in whichever order a rank notes the groups.
TEST_P(LiveGroups, OfOneNameAreLaunchedApart) {
  PlannedSource source("flat");
  run_ranks(2, source.source(), options_of(GetParam()), [&](Communicator& world) {
    const std::vector<std::uint32_t> all = {0, 1};
    auto a = world.split(all, "same", source.source());
    auto b = world.split(all, "same", source.source());
    ASSERT_TRUE(a && b);
    for (std::int64_t round = 1; round <= 20; ++round) {
      // Of A's calls the second reads what the first wrote: 1 + 1 = 2, 2 + 2 = 4.
      std::int64_t first = 1;
      std::int64_t second = 0;
      std::int64_t other = round;
      const auto call = [](Communicator& group, std::int64_t& from, std::int64_t& to) {
        return group.all_reduce(&from, &to, 1, ElementType::int64, ReduceOperation::sum);
      };
      world.group_begin();
      if (world.rank() == 0) {
        EXPECT_TRUE(call(**a, first, first));
        EXPECT_TRUE(call(**b, other, other));
        EXPECT_TRUE(call(**a, first, second));
      } else {
        EXPECT_TRUE(call(**b, other, other));
        EXPECT_TRUE(call(**a, first, first));
        EXPECT_TRUE(call(**a, first, second));
      }
      const auto launched = world.group_end();
      ASSERT_TRUE(launched) << launched.error().message;
      EXPECT_EQ(first, 2);
      EXPECT_EQ(second, 4);
      EXPECT_EQ(other, 2 * round);
    }
  });
}

/// What a program asks of a communicator while a call that it started runs on the job's thread.
TEST_P(LiveGroups, AskForSchedulesAndRecordBesideAStartedCall) {
  PlannedSource source("flat");
  run_ranks(2, source.source(), options_of(GetParam()), [&](Communicator& world) {
    constexpr std::size_t count = 20000;
    std::vector<float> data(count, 1);
    engine::Recorder recorder;
    for (std::size_t round = 1; round <= 30; ++round) {
      const CallArguments arguments{CollectiveKind::all_reduce, data.data(), data.data(), count - round};
      auto handle = world.start(arguments);
      ASSERT_TRUE(handle);
      // Of a shape of its own, so that it is prepared now.
      const auto schedule = world.schedule_of({CollectiveKind::all_gather, nullptr, nullptr, 2 * round});
      ASSERT_TRUE(schedule) << schedule.error().message;
      world.record(round % 2 == 0 ? &recorder : nullptr);
      const auto ended = handle->wait();
      ASSERT_TRUE(ended) << ended.error().message;
    }
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, LiveGroups, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

/// Takes divisions and never ends one; all else it does at once.
class StuckQueue final : public engine::DeviceQueue {
 public:
  StuckQueue(engine::Device& device, std::unique_ptr<engine::DeviceQueue> host)
      : DeviceQueue(device), host_(std::move(host)) {}
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override { host_->copy(to, from, bytes); }
  void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
              std::span<const void* const> sources, std::size_t element_count) override {
    host_->reduce(type, operation, targets, first, sources, element_count);
  }
  void divide(ElementType, void*, std::size_t, std::uint32_t) override { note_given(); }
  std::uint64_t hold() override { return host_->hold(); }
  void release(std::uint64_t ticket) override { host_->release(ticket); }
  void drain(std::chrono::milliseconds) override { note_done(mark()); }

 private:
  std::uint64_t look() override { return 0; }
  std::unique_ptr<engine::DeviceQueue> host_;
};

class StuckDevice final : public engine::Device {
 public:
  [[nodiscard]] std::string_view name() const override { return "stuck"; }
  Result<std::unique_ptr<engine::DeviceQueue>> make_queue() override {
    auto host = host_.make_queue();
    if (!host) return host;
    return std::make_unique<StuckQueue>(*this, std::move(*host));
  }
  Result<std::byte*> allocate(std::int64_t bytes, engine::MemorySpace space) override {
    return host_.allocate(bytes, space);
  }
  void release(std::byte* data, std::int64_t bytes) override { host_.release(data, bytes); }

 private:
  engine::HostDevice host_;
};

TEST(Waits, ForADeviceThatDividesEndWithTheTimeout) {
  PlannedSource source("flat");
  JobOptions options = options_of(TransportChoice::shm);
  options.timeout = std::chrono::milliseconds(300);
  options.make_device = [] { return std::make_unique<StuckDevice>(); };
  run_ranks(2, source.source(), std::move(options), [&](Communicator& world) {
    float value = 1;
    const auto done = world.all_reduce(&value, &value, 1, ElementType::float32, ReduceOperation::avg);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("did not finish its work within 0.3 s"), std::string::npos)
        << done.error().message;
  });
}

/// Of two transfers from one rank to another over one or the other of two links.
Schedule schedule_over(LinkId link) {
  Schedule schedule(*make_collective(CollectiveKind::broadcast, 2, Rank(0)), "two links", "test");
  schedule.units = 1;
  schedule.slices.push_back({0, 1, {}, {}});
  const std::array links = {link};
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), links), SliceId(0), 1, Action::copy, ChannelId(0));
  return schedule;
}

/// Routes decide over which connection of an address file the bytes go, so ranks have to agree on them.
TEST(HashOfASchedule, KnowsItsRoutes) {
  EXPECT_EQ(engine::hash_of(schedule_over(LinkId(0))), engine::hash_of(schedule_over(LinkId(0))));
  EXPECT_NE(engine::hash_of(schedule_over(LinkId(0))), engine::hash_of(schedule_over(LinkId(1))));
  // The same transfers with their routes numbered in another order take other connections.
  Schedule numbered = schedule_over(LinkId(0));
  Schedule renumbered(numbered.collective, "two links", "test");
  renumbered.units = 1;
  renumbered.slices = numbered.slices;
  renumbered.add_route(Rank(1), Rank(0), {});
  const std::array links = {LinkId(0)};
  renumbered.add_transfer(renumbered.add_route(Rank(0), Rank(1), links), SliceId(0), 1, Action::copy, ChannelId(0));
  numbered.add_route(Rank(1), Rank(0), {});
  EXPECT_NE(engine::hash_of(numbered), engine::hash_of(renumbered));
}

TEST(SharedMemory, CannotBeMadeShorter) {
  auto memory = engine::SharedMemory::create("test", 1 << 16);
  ASSERT_TRUE(memory) << memory.error().message;
  EXPECT_NE(ftruncate(memory->fd(), 4096), 0);
  EXPECT_NE(ftruncate(memory->fd(), 1 << 20), 0);
  EXPECT_NE(fcntl(memory->fd(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  memory->data()[(1 << 16) - 1] = std::byte{7};
  const auto mapped = engine::SharedMemory::open(getpid(), memory->fd(), 1 << 16);
  ASSERT_TRUE(mapped) << mapped.error().message;
  EXPECT_EQ(mapped->data()[(1 << 16) - 1], std::byte{7});
}

TEST(SharedMemory, ThatCouldBeMadeShorterIsNotMapped) {
  const FileDescriptor unsealed(memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  ASSERT_EQ(ftruncate(unsealed.get(), 8192), 0);
  EXPECT_FALSE(engine::SharedMemory::open(getpid(), unsealed.get(), 8192));
  ASSERT_EQ(fcntl(unsealed.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
  EXPECT_TRUE(engine::SharedMemory::open(getpid(), unsealed.get(), 8192));
  EXPECT_FALSE(engine::SharedMemory::open(getpid(), unsealed.get(), 16384));  // Shorter than was said.
}

}  // namespace
}  // namespace espalier::engine
