#pragma once

#include <sys/epoll.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/result.h"
#include "engine/rendezvous/file_descriptor.h"

namespace espalier {

/// An epoll instance with an eventfd to wake it. `wake` and `watch` may be called from any thread.
class Poller {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// What `wait` saw: the token given to `watch`.
  struct Event {
    std::uint64_t token = 0;
    bool can_read = false;  ///< Data, an end or an error.
    bool can_write = false;
  };

  /// Errors: unavailable when descriptors run out.
  Result<void> open();
  /// Begins or changes watching; false when the system refuses.
  bool watch(int fd, std::uint64_t token, bool for_writing);
  void forget(int fd);
  /// Returns from `wait` at once; wakes are not events.
  void wake();
  /// Waits until something happens or the time comes.
  std::vector<Event> wait(std::optional<Time> until);

 private:
  FileDescriptor epoll_;
  FileDescriptor wake_;
};

}  // namespace espalier
