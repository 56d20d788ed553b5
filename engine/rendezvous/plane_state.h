#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/rendezvous/control_plane.h"

namespace espalier::engine::rendezvous {

/// What callers wait for, set by the background thread: answers, that all ranks have joined, a failure, the end.
/// Thread-safe; holds no lock while it calls anything, so that it may be called under any other lock.
class PlaneState {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// A round trip to the hub.
  struct Pong {
    std::int64_t hub_time_ns = 0;
    std::int64_t arrival_ns = 0;
  };
  using Answer = std::variant<std::monostate, Result<std::vector<std::string>>, Pong>;

  /// Errors: unavailable when no eventfd can be had.
  Result<void> open();

  [[nodiscard]] bool has_failed() const noexcept { return has_failed_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::optional<RankFailure> failure() const;
  [[nodiscard]] int failure_fd() const noexcept { return failure_fd_.get(); }
  /// Records the failure and wakes all callers; false after an earlier failure or the end.
  bool fail(RankFailure failure);
  /// Ends the plane without a failure: callers that wait, or come later, get `why`.
  void end(std::string why);
  /// All ranks have joined.
  void complete();
  /// Waits for `complete`: true; false when the time is up. Errors: the failure, the end.
  Result<bool> wait_complete(Time deadline);

  /// A number under which an answer will be delivered.
  std::uint64_t expect();
  /// Delivers it; a number that nobody waits for is ignored.
  void deliver(std::uint64_t id, Answer answer);
  /// Waits for it; monostate when the time is up. The number is used up. Errors: the failure, the end.
  Result<Answer> await(std::uint64_t id, Time deadline);

 private:
  [[nodiscard]] std::optional<Error> failure_or_end() const;  ///< Requires: the lock.

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> has_failed_{false};
  FileDescriptor failure_fd_;
  std::optional<RankFailure> failure_;
  std::optional<std::string> end_;
  bool is_complete_ = false;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Answer> answers_;
};

/// "rank 3: it died", as an error.
Error failure_error(const RankFailure& failure);

/// CLOCK_MONOTONIC in nanoseconds.
std::int64_t monotonic_ns();

}  // namespace espalier::engine::rendezvous
