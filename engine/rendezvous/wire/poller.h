#pragma once

// Tested by: tests/faults/unauthenticated_test.cpp

#include <sys/epoll.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>
#include <span>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace espalier::engine::rendezvous {

/// An epoll instance with an eventfd to wake it. `wake` and `watch` may be called from any thread.
class Poller {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// What `wait` saw at the descriptor with this token of `watch`.
  struct Event {
    std::uint64_t token = 0;
    bool can_read = false;  ///< Data, an end or an error.
    bool can_write = false;
  };

  /// Errors: unavailable when descriptors run out.
  Result<void> open();
  /// Begins or changes watching; false when the system refuses.
  bool watch(int fd, std::uint64_t token, bool for_writing);
  /// The same, but only for the end of the connection: what comes before it stays unread.
  bool watch_end(int fd, std::uint64_t token);
  void forget(int fd);
  /// Returns from `wait` at once; wakes are not events.
  void wake();
  /// Waits until something happens or the time comes. The events are good until the next wait. Allocates nothing.
  std::span<const Event> wait(std::optional<Time> until);

 private:
  bool change(int fd, std::uint64_t token, std::uint32_t events);

  static constexpr std::size_t max_events = 64;
  std::array<Event, max_events> events_{};
  FileDescriptor epoll_;
  FileDescriptor wake_;
};

}  // namespace espalier::engine::rendezvous
