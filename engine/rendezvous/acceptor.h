#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <functional>
#include <optional>
#include <string>

#include "engine/rendezvous/identity.h"
#include "engine/rendezvous/pending_connections.h"
#include "engine/rendezvous/wire/link.h"
#include "engine/rendezvous/wire/listener.h"
#include "engine/rendezvous/wire/messages.h"
#include "engine/rendezvous/wire/poller.h"

namespace espalier::engine::rendezvous {

/// Rank 0's side of the handshake: accepts connections, has them authenticate, and refuses those that may not join. A
/// connection costs one descriptor and at most one frame of `largest_greeting` until it has authenticated; nothing is
/// read after a refusal. PendingPlaces limits their number and chooses which one to drop. Not thread-safe.
class Acceptor {
 public:
  using Time = Poller::Time;
  /// Whether a claim with a valid code may join; the refusal if not.
  using AdmissionCheck = std::function<std::optional<EntryRefusal>(const Claim&)>;

  /// A connection that authenticated and may join; nothing has been sent to it since its claim.
  struct Authenticated {
    Claim claim;
    Digest nonce{};  ///< The hub's, of this handshake.
    FrameLink link;
  };

  /// The tokens of its events are this and above.
  static constexpr std::uint64_t first_token = std::uint64_t{1} << 61U;

  Acceptor(Poller& poller, const Identity& identity, AdmissionCheck admission_check);

  /// Errors: unavailable when the listener cannot be watched.
  Result<void> open(Listener listener) { return pending_.open(std::move(listener)); }
  /// Serves an event: accepts and greets, or reads what a connection sent; the authenticated one that may join.
  std::optional<Authenticated> handle(std::uint64_t token, Time now);
  /// Drops connections past their deadline.
  void expire(Time now) { pending_.expire(now); }
  [[nodiscard]] std::optional<Time> next_deadline() const { return pending_.next_deadline(); }
  /// Drops all pending connections, to free their memory.
  void clear() { pending_.clear(); }
  /// Accepts no more connections, and drops all pending ones.
  void close() { pending_.close(); }
  /// Why the last connection was refused, with its address; empty when none was.
  [[nodiscard]] const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Pending {
    FrameLink link;
    Digest nonce{};
    bool is_refused = false;  ///< Kept open only until the peer has read the refusal.

    [[nodiscard]] int fd() const { return link.fd(); }
  };

  static std::optional<Pending> greet(FileDescriptor fd);
  std::optional<Authenticated> receive(std::uint64_t token);
  void refuse(std::uint64_t token, Pending& pending, const EntryRefusal& refusal);
  std::optional<EntryRefusal> check(const Claim& claim, const Digest& nonce) const;

  Poller& poller_;
  const Identity& identity_;
  AdmissionCheck admission_check_;
  PendingConnections<Pending> pending_;
  std::string last_refusal_;
};

}  // namespace espalier::engine::rendezvous
