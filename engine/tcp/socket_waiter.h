#pragma once

// Tested by: tests/unit/engine/verbs/verbs_transport_test.cpp

#include <chrono>

#include "base/file_descriptor.h"
#include "base/result.h"

namespace espalier::engine {

/// Sleeps until one of many sockets can be read or written again. Whoever watches has tried all of them before a sleep,
/// so changes are what counts (edge-triggered epoll).
class SocketWaiter {
 public:
  /// `also` is another descriptor whose being readable ends a sleep.
  static Result<SocketWaiter> create(int also);

  Result<void> watch(int socket);
  /// Whether any socket was ever watched; closing one ends its watch.
  [[nodiscard]] bool watches_any() const { return watches_any_; }

  void sleep(std::chrono::nanoseconds longest);

 private:
  FileDescriptor epoll_;
  bool watches_any_ = false;
};

}  // namespace espalier::engine
