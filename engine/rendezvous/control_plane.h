#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/rendezvous/wire/listener.h"

namespace espalier::engine::rendezvous {

/// Largest blob that one member gives to an exchange, in bytes.
inline constexpr std::size_t largest_blob = std::size_t{16} << 20U;
/// Largest sum of the blobs of one exchange, in bytes.
inline constexpr std::size_t largest_exchange = std::size_t{64} << 20U;
/// Most ranks of one job.
inline constexpr std::uint32_t max_ranks = 65536;

/// Where a process joins its job, and as which rank.
struct Options {
  std::string host;        ///< Rank 0's machine: a name, an IPv4 or an IPv6 address.
  std::uint16_t port = 0;  ///< Ignored by a rank 0 that brings its `listener`.
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string secret;  ///< Shared by the job's ranks (engine/rendezvous/secret.h); never sent.
  /// How long joining may take, and how long a member may be silent before it counts as lost.
  std::chrono::milliseconds timeout{30000};
  std::string job = {};  ///< Tells jobs on one port apart; at most 128 bytes.
  /// Whether somebody listened there before any rank began: if nobody does any more, rank 0 is gone, not late.
  bool was_listening = false;
  Listener listener = {};  ///< Rank 0 only: a socket that listens already; without it, host:port.
  /// Rank 0 only: told before it waits for others what its user should know of where it listens. May be none.
  std::function<void(const std::string&)> on_notice = {};
};

/// Why the job failed: the rank to blame as far as known, and what happened to it.
struct RankFailure {
  std::uint32_t rank = 0;
  std::string reason;  ///< Names the rank's host and process where they are known.
};

/// How this rank's CLOCK_MONOTONIC relates to rank 0's: rank 0's time is local time + offset, give or take the error.
struct ClockOffset {
  std::int64_t offset_ns = 0;
  std::int64_t error_ns = 0;  ///< Half of the shortest round trip: a hard bound, not an estimate.
};

/// A job's control plane: every rank is connected to rank 0, which forwards exchanges and failures.
/// A background thread in each process keeps it going while the caller computes.
///
/// Thread-safe. Invariants:
/// 1. All ranks joined: `join` returns a plane only when the whole world is there.
/// 2. The first failure stays: once `failure` has a value it never changes, and every later call fails with it.
/// 3. A rank that closes without goodbye, or is silent for longer than the timeout, fails the job on all others.
/// 4. A rank that left with goodbye has not failed; an exchange that needs it is refused.
class ControlPlane {
 public:
  /// Joins the other ranks. Rank 0 listens; the others connect, and try again until the deadline.
  /// Both sides prove that they know the secret (HMAC-SHA256 over fresh nonces, version, job, rank and world).
  /// Errors: invalid_input for options out of range, another secret, a rank that is taken, or a world of another size;
  /// unavailable when the deadline passes, naming the missing ranks, or when host:port cannot be had.
  static Result<std::unique_ptr<ControlPlane>> join(Options options);

  ControlPlane(const ControlPlane&) = delete;
  ControlPlane& operator=(const ControlPlane&) = delete;
  /// Leaves, as `leave`; after a failure it only closes.
  ~ControlPlane();

  [[nodiscard]] std::uint32_t rank() const noexcept;
  [[nodiscard]] std::uint32_t world() const noexcept;
  /// The address of this machine that the rendezvous goes over; empty in a world of one.
  [[nodiscard]] std::string local_address() const;
  /// The address of rank 0's machine that it goes over; empty on rank 0.
  [[nodiscard]] std::string hub_address() const;

  /// Every member gives a blob, and each gets all of them, in the order of `members`.
  /// Members must agree on `tag` and `members`; exchanges that differ in either may run at once, the same one again
  /// only after it returned. A member that comes too late starts a new exchange: after a timeout, agree anew or abort.
  /// Requires: this rank is one of `members`, which are distinct and below world().
  /// Errors: unavailable when the deadline passes (naming the ranks that did not come), a member has left, or the job
  /// failed; too_large past `largest_blob` or `largest_exchange`; invalid_input when the same exchange is already
  /// waiting.
  Result<std::vector<std::string>> exchange(std::string_view tag, std::span<const std::uint32_t> members,
                                            std::string_view blob, std::chrono::milliseconds timeout);
  /// An exchange of nothing: returns when all members came.
  Result<void> barrier(std::string_view tag, std::span<const std::uint32_t> members, std::chrono::milliseconds timeout);

  /// One relaxed atomic load, for hot wait loops.
  [[nodiscard]] bool has_failed() const noexcept;
  [[nodiscard]] std::optional<RankFailure> failure() const;
  /// The failure as an error: unavailable, "rank 3: ...". Requires: has_failed().
  [[nodiscard]] Error failure_error() const;
  /// Becomes and stays readable when the job fails; for poll and epoll, never to be read or closed.
  [[nodiscard]] int failure_fd() const noexcept;

  /// Fails the job on every rank, with this rank to blame. Returns at once; after a failure it does nothing.
  void abort(std::string_view reason);
  /// Fails the job on every rank, with `rank` to blame as seen from here (a data connection that broke).
  void blame(std::uint32_t rank, std::string_view reason);

  /// Measures this rank's clock against rank 0's by round trips, until `rounds` are done or the time is up.
  /// The shortest counts. Rank 0's own offset is zero.
  /// Errors: unavailable when not one round trip was done in time, or the job failed.
  Result<ClockOffset> estimate_clock(std::chrono::milliseconds timeout, int rounds = 64);

  /// Leaves with goodbye: the other ranks do not count this as a failure, and this rank no longer learns of theirs.
  /// Rank 0's leaving ends the plane for all without failing them; put a barrier before it where that matters.
  /// Waits at most half a second for goodbyes to get through. Does nothing the second time.
  void leave();

 private:
  class Impl;
  explicit ControlPlane(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace espalier::engine::rendezvous
