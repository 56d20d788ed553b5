#include "engine/communicator/communicator.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <mutex>

#include "engine/check/data_case.h"
#include "planners/planner.h"
#include "tests/support/local_ranks.h"
#include "topology/generate.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;

/// Plans on fully connected ranks with one planner, or flat where that refuses, once for each collective. Thread-safe.
class PlannedSource {
 public:
  explicit PlannedSource(std::string planner, Bytes chunk = {}) : planner_(std::move(planner)), chunk_(chunk) {}

  ScheduleSource source() {
    return [this](const Collective& collective, Bytes) -> Result<SourcedSchedule> {
      const std::lock_guard lock(mutex_);
      auto& known = schedules_[{collective.kind, collective.root, collective.rank_count}];
      if (!known) {
        const auto topology = generate_fully_connected({.ranks = collective.rank_count});
        if (!topology) return tl::unexpected(topology.error());
        auto schedule = plan(*topology, collective, *find_planner(planner_));
        if (!schedule) schedule = plan(*topology, collective, *find_planner("flat"));
        if (!schedule) return tl::unexpected(schedule.error());
        known = std::make_shared<Schedule>(std::move(*schedule));
      }
      return SourcedSchedule{known, chunk_};
    };
  }

 private:
  std::string planner_;
  Bytes chunk_;
  std::mutex mutex_;
  std::map<std::tuple<CollectiveKind, Rank, std::uint32_t>, std::shared_ptr<const Schedule>> schedules_;
};

enum class Memory : std::uint8_t { registered, plain };

/// Runs one collective on known data and checks what comes.
void run_case(Communicator& communicator, const DataCase& data, Memory memory, bool in_place) {
  const std::uint32_t rank = communicator.rank();
  const auto element = static_cast<std::size_t>(size_of(data.type));
  const std::size_t send_bytes = data.send_count(rank) * element;
  const std::size_t receive_bytes = data.receive_count(rank) * element;
  // Room for either buffer in place of the other, also on ranks that need only one.
  std::vector<std::byte> plain(send_bytes + receive_bytes + (data.count + 2) * element);
  void* registered = nullptr;
  std::byte* base = plain.data();
  if (memory == Memory::registered) {
    auto allocated = communicator.allocate(plain.size());
    ASSERT_TRUE(allocated) << allocated.error().message;
    registered = *allocated;
    base = static_cast<std::byte*>(registered);
  }
  std::byte* receive = base;
  std::byte* send = base + receive_bytes;
  const auto shift = data.in_place_shift(rank);
  if (in_place) {
    if (!shift) return communicator.free(registered);
    if (*shift < 0) {
      send = base;
      receive = base - *shift * static_cast<std::ptrdiff_t>(element);
    } else {
      send = base + *shift * static_cast<std::ptrdiff_t>(element);
    }
  }
  fill_send_buffer(data, rank, send);
  const auto done = communicator.run({data.kind, send, receive, data.count, data.type, data.operation, data.root});
  ASSERT_TRUE(done) << done.error().message;
  const CheckResult checked = check_receive_buffer(data, rank, receive);
  EXPECT_EQ(checked.wrong, 0U) << to_string(data.kind) << " " << to_string(data.type) << " "
                               << to_string(data.operation) << " count " << data.count << " rank " << rank
                               << " in place " << in_place << ": element " << checked.first.index << " is "
                               << checked.first.actual << ", not " << checked.first.expected;
  if (!in_place) {
    std::vector<std::byte> untouched(send_bytes);
    fill_send_buffer(data, rank, untouched.data());
    EXPECT_TRUE(send_bytes == 0 || std::memcmp(untouched.data(), send, send_bytes) == 0) << "a send buffer changed";
  }
  communicator.free(registered);
}

void run_all_kinds(Communicator& communicator, Memory memory) {
  for (const CollectiveKind kind : all_collective_kinds) {
    for (const std::size_t count : {std::size_t{0}, std::size_t{1}, std::size_t{1000}, std::size_t{50021}}) {
      for (const bool in_place : {false, true}) {
        DataCase data{kind, ElementType::float32, ReduceOperation::sum, communicator.size(), 0, count, count};
        if (has_root(kind)) data.root = communicator.size() - 1;
        run_case(communicator, data, memory, in_place);
      }
    }
  }
}

struct Setting {
  const char* planner;
  std::uint32_t ranks;
  TransportChoice transport;
  Memory memory;
};

class EveryCollective : public ::testing::TestWithParam<Setting> {};

TEST_P(EveryCollective, GivesWhatItPromises) {
  const Setting& setting = GetParam();
  PlannedSource source(setting.planner, Bytes{16384});
  JobOptions options;
  options.transport = setting.transport;
  run_ranks(setting.ranks, source.source(), std::move(options),
            [&](Communicator& communicator) { run_all_kinds(communicator, setting.memory); });
}

INSTANTIATE_TEST_SUITE_P(Settings, EveryCollective,
                         ::testing::Values(Setting{"flat", 1, TransportChoice::shm, Memory::plain},
                                           Setting{"flat", 2, TransportChoice::shm, Memory::registered},
                                           Setting{"flat", 4, TransportChoice::shm, Memory::registered},
                                           Setting{"flat", 4, TransportChoice::shm, Memory::plain},
                                           Setting{"flat", 3, TransportChoice::tcp, Memory::plain},
                                           Setting{"ring", 4, TransportChoice::shm, Memory::registered},
                                           Setting{"ring", 3, TransportChoice::shm, Memory::plain},
                                           Setting{"ring", 4, TransportChoice::tcp, Memory::registered},
                                           Setting{"tree", 5, TransportChoice::shm, Memory::registered},
                                           Setting{"tree", 5, TransportChoice::tcp, Memory::plain},
                                           Setting{"packing", 4, TransportChoice::shm, Memory::registered},
                                           Setting{"packing", 4, TransportChoice::shm, Memory::plain},
                                           Setting{"packing", 4, TransportChoice::tcp, Memory::plain}),
                         [](const auto& setting) {
                           return std::string(setting.param.planner) + std::to_string(setting.param.ranks) +
                                  std::string(to_string(setting.param.transport)) +
                                  (setting.param.memory == Memory::registered ? "Registered" : "Plain");
                         });

}  // namespace
}  // namespace espalier
