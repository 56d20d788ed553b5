#pragma once

// Tested by: tests/unit/nccl_plugins/profiler/profiler_test.cpp

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "nccl_plugins/nccl_types.h"
#include "nccl_plugins/profiler/interface.h"

namespace espalier::nccl_plugins::profiler {

class EventRecorder;

/// One thing that happened. Times are of CLOCK_MONOTONIC in nanoseconds, 0 where they were not reached.
struct Event {
  EventRecorder* owner = nullptr;
  const Event* parent = nullptr;  ///< Of a step its operation, of operations and channels their call.
  std::int64_t begin = 0;
  std::int64_t moving = 0;   ///< Of a sending step: when its bytes went out; what is before is waiting.
  std::int64_t arrived = 0;  ///< Of a receiving step: when its bytes were there.
  std::int64_t end = 0;
  std::uint64_t call = 0;  ///< The same on all ranks of one call.
  std::int64_t bytes = 0;  ///< Of a call S, where its type is known.
  std::uint32_t type = 0;
  std::int32_t rank = 0, peer = -1, step = 0;
  std::uint16_t channel = 0;
  bool is_send = false;
  std::array<char, 16> function = {}, way = {};  ///< "AllReduce", "ring/simple"; of calls.
};

/// A call as the descriptors of all versions tell it.
struct CallStart {
  const char* function = nullptr;
  std::uint64_t sequence = 0;
  std::size_t count = 0;
  const char *type = nullptr, *algorithm = nullptr, *protocol = nullptr;
  int peer = -1;
};

/// The events of one rank of one communicator, in the order in which they began. Any threads; no locks, and no
/// allocation after it was made: what does not fit is counted and left out.
class EventRecorder {
 public:
  /// Null where there is no memory. `only_call`: the number of the call that is kept, or -1 for all.
  static EventRecorder* make(std::size_t max_events, std::int64_t only_call);
  static void destroy(EventRecorder* recorder);
  EventRecorder(const EventRecorder&) = delete;
  EventRecorder& operator=(const EventRecorder&) = delete;

  // Where it belongs; versions before 4 tell with the first call.
  std::uint64_t communicator = 0;
  int ranks = 0;
  int rank = -1;
  Logger logger = nullptr;

  /// Null where it is left out.
  Event* start_call(EventType type, int of_rank, const CallStart& call);
  static Event* start_operation(const Event* call, int of_rank, const ProxyOperation& operation);
  static Event* start_step(const Event* operation, int step);
  static Event* start_channel(const Event* call, std::uint8_t channel);
  static void set_state(Event& event, int state);
  static void stop(Event& event);

  [[nodiscard]] std::size_t count() const;
  [[nodiscard]] std::size_t dropped() const { return dropped_.load(std::memory_order_relaxed); }
  [[nodiscard]] const Event& operator[](std::size_t index) const { return events_[index]; }

 private:
  EventRecorder(Event* events, std::size_t max_events, std::int64_t only_call)
      : events_(events), max_events_(max_events), only_call_(only_call) {}
  ~EventRecorder() = default;
  Event* take();

  static constexpr std::size_t peers_counted = 2048;
  Event* events_;
  std::size_t max_events_;
  std::int64_t only_call_;
  std::atomic<std::size_t> next_ = 0, dropped_ = 0;
  std::atomic<std::int64_t> calls_ = 0;
  std::array<std::atomic<std::uint32_t>, 2 * peers_counted> messages_ = {};  ///< By peer and direction.
};

/// CLOCK_MONOTONIC in nanoseconds.
std::int64_t monotonic_ns();

}  // namespace espalier::nccl_plugins::profiler
