#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

#include "engine/check/data_case.h"
#include "engine/communicator/communicator.h"
#include "planners/planner.h"
#include "topology/generate/generate.h"

namespace espalier::test {

/// Plans on fully connected ranks with one planner, or flat where that refuses, once for each collective; for several
/// threads.
class PlannedSource {
 public:
  explicit PlannedSource(std::string planner, Bytes chunk = {}) : planner_(std::move(planner)), chunk_(chunk) {}

  ScheduleSource source() {
    return [this](const Collective& collective, Bytes) -> Result<SourcedSchedule> {
      const std::lock_guard lock(mutex_);
      auto& known = schedules_[{collective.kind, collective.root, collective.rank_count, collective.shares}];
      if (!known) {
        const auto topology = generate_fully_connected({.ranks = collective.rank_count});
        if (!topology) return tl::unexpected(topology.error());
        auto schedule = planners::plan(*topology, collective, *planners::find_planner(planner_));
        if (!schedule) schedule = planners::plan(*topology, collective, *planners::find_planner("flat"));
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
  std::map<std::tuple<CollectiveKind, Rank, std::uint32_t, std::vector<std::int64_t>>, std::shared_ptr<const Schedule>>
      schedules_;
};

/// Of the communicator, of the caller but registered, or of the caller.
enum class Memory : std::uint8_t { registered, adopted, plain };

/// Whole pages of the caller's.
struct Pages {
  explicit Pages(std::size_t least) : bytes((least / size + 1) * size), data(std::aligned_alloc(size, bytes)) {}
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  ~Pages() { std::free(data); }

  static constexpr std::size_t size = 4096;
  std::size_t bytes;
  void* data;
};

/// Runs one collective on known data and checks what comes.
inline void run_case(Communicator& communicator, const engine::DataCase& data, Memory memory, bool in_place) {
  const std::uint32_t rank = communicator.rank();
  const auto element = static_cast<std::size_t>(size_of(data.type));
  const std::size_t send_bytes = data.send_count(rank) * element;
  const std::size_t receive_bytes = data.receive_count(rank) * element;
  // Room for either buffer in place of the other, also on ranks that need only one.
  const Pages pages(send_bytes + receive_bytes + (data.count + 2) * element);
  void* registered = nullptr;
  auto* base = static_cast<std::byte*>(pages.data);
  if (memory == Memory::registered) {
    auto allocated = communicator.allocate(pages.bytes);
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
  engine::fill_send_buffer(data, rank, send);
  if (memory == Memory::adopted) {
    const auto adopted = communicator.register_buffer(pages.data, pages.bytes);
    ASSERT_TRUE(adopted) << adopted.error().message;
  }
  const auto done =
      communicator.run({data.kind, send, receive, data.count, data.type, data.operation, data.root, data.shares});
  ASSERT_TRUE(done) << done.error().message;
  if (memory == Memory::adopted) {
    ASSERT_TRUE(communicator.deregister_buffer(pages.data));
  }
  const engine::CheckResult checked = engine::check_receive_buffer(data, rank, receive);
  EXPECT_EQ(checked.wrong, 0U) << to_string(data.kind) << " " << to_string(data.type) << " "
                               << to_string(data.operation) << " count " << data.count << " rank " << rank
                               << " in place " << in_place << ": element " << checked.first.index << " is "
                               << checked.first.actual << ", not " << checked.first.expected;
  if (!in_place) {
    std::vector<std::byte> untouched(send_bytes);
    engine::fill_send_buffer(data, rank, untouched.data());
    EXPECT_TRUE(send_bytes == 0 || std::memcmp(untouched.data(), send, send_bytes) == 0) << "a send buffer changed";
  }
  communicator.free(registered);
}

}  // namespace espalier::test
