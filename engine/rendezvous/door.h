#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/rendezvous/identity.h"
#include "engine/rendezvous/link.h"
#include "engine/rendezvous/listener.h"
#include "engine/rendezvous/messages.h"
#include "engine/rendezvous/poller.h"

namespace espalier {

/// Where newcomers come in: accepts connections, has them prove who they are, and turns strangers away. A connection
/// that says nothing, or anything but a valid claim, costs one descriptor until its deadline and nothing else; past
/// `most_strangers` at once the oldest go. Not thread-safe.
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

  static constexpr std::uint64_t listener_token = std::uint64_t{1} << 62U;
  static constexpr std::uint64_t stranger_token = std::uint64_t{1} << 61U;

  Door(Poller& poller, const Identity& identity, Judge judge);

  /// Errors: unavailable when the listener cannot be watched.
  Result<void> open(Listener listener);
  /// Accepts whoever waits, and greets.
  void accept(Time now);
  /// Reads what a stranger said; a guest when it may join. Requires: a token of `stranger_token` and above.
  std::optional<Guest> hear(std::uint64_t token);
  /// Drops those whose time is up.
  void expire(Time now);
  [[nodiscard]] std::optional<Time> next_deadline() const;
  /// Accepts nobody any more, and drops all strangers.
  void close();
  /// The last reason why a newcomer was turned away, with its address; empty when none was.
  [[nodiscard]] const std::string& last_refusal() const { return last_refusal_; }

 private:
  struct Stranger {
    FrameLink link;
    Digest nonce{};
    Time deadline;
    bool is_refused = false;  ///< Kept open only until it has read why.
  };
  using Strangers = std::map<std::uint64_t, Stranger>;

  void greet(FileDescriptor fd, Time now);
  void refuse(Stranger& stranger, const EntryRefusal& refusal);
  std::optional<EntryRefusal> check(const Claim& claim, const Digest& nonce) const;
  void drop(Strangers::iterator at);

  Poller& poller_;
  const Identity& identity_;
  Judge judge_;
  Listener listener_;
  std::optional<Time> deaf_until_;  ///< Out of descriptors: not listening until then.
  Strangers strangers_;             ///< By token, oldest first.
  std::uint64_t next_token_ = stranger_token;
  std::string last_refusal_;
};

}  // namespace espalier
