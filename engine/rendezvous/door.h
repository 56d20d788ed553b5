#pragma once

#include <functional>
#include <optional>
#include <string>

#include "engine/rendezvous/identity.h"
#include "engine/rendezvous/link.h"
#include "engine/rendezvous/listener.h"
#include "engine/rendezvous/messages.h"
#include "engine/rendezvous/pending_connections.h"
#include "engine/rendezvous/poller.h"

namespace espalier {

/// Where newcomers come in: accepts connections, has them prove who they are, and turns strangers away. A connection
/// costs one descriptor and at most one frame of `largest_greeting` until it has; nothing is read after a refusal. How
/// many there are at once and who goes when there are more: PendingPlaces. Not thread-safe.
class Door {
 public:
  using Time = Poller::Time;
  /// Whether a proven claim may join; the refusal if not.
  using Judge = std::function<std::optional<EntryRefusal>(const Claim&)>;

  /// A newcomer that proved who it is and may join; nothing has been sent to it since its claim.
  struct Guest {
    Claim claim;
    Digest nonce{};  ///< The hub's, of this greeting.
    FrameLink link;
  };

  /// The tokens of its events are this and above.
  static constexpr std::uint64_t first_token = std::uint64_t{1} << 61U;

  Door(Poller& poller, const Identity& identity, Judge judge);

  /// Errors: unavailable when the listener cannot be watched.
  Result<void> open(Listener listener) { return strangers_.open(std::move(listener)); }
  /// Serves an event: accepts and greets, or reads what a stranger said; a guest when it may join.
  std::optional<Guest> handle(std::uint64_t token, Time now);
  /// Drops those whose time is up.
  void expire(Time now) { strangers_.expire(now); }
  [[nodiscard]] std::optional<Time> next_deadline() const { return strangers_.next_deadline(); }
  /// Drops all strangers, to have their memory back.
  void clear() { strangers_.clear(); }
  /// Accepts nobody any more, and drops all strangers.
  void close() { strangers_.close(); }
  /// The last reason why a newcomer was turned away, with its address; empty when none was.
  [[nodiscard]] const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Stranger {
    FrameLink link;
    Digest nonce{};
    bool is_refused = false;  ///< Kept open only until it has read why.

    [[nodiscard]] int fd() const { return link.fd(); }
  };

  static std::optional<Stranger> greet(FileDescriptor fd);
  std::optional<Guest> hear(std::uint64_t token);
  void refuse(std::uint64_t token, Stranger& stranger, const EntryRefusal& refusal);
  std::optional<EntryRefusal> check(const Claim& claim, const Digest& nonce) const;

  Poller& poller_;
  const Identity& identity_;
  Judge judge_;
  PendingConnections<Stranger> strangers_;
  std::string last_refusal_;
};

}  // namespace espalier
