#pragma once

// Tested by: tests/faults/unauthenticated_test.cpp

#include <cerrno>
#include <map>
#include <optional>
#include <utility>

#include "engine/rendezvous/names.h"
#include "engine/rendezvous/pending_places.h"
#include "engine/rendezvous/wire/listener.h"
#include "engine/rendezvous/wire/poller.h"

namespace espalier::engine::rendezvous {

/// A listening socket and the connections from it that have not authenticated yet, kept by the rules of PendingPlaces.
/// What is known of each is a `Connection`, whose fd() is its socket. Not thread-safe.
template <class Connection>
class PendingConnections {
 public:
  using Time = Poller::Time;
  static constexpr std::uint64_t listener_token = std::uint64_t{1} << 62U;
  /// The tokens of pending connections begin here.
  static constexpr std::uint64_t first_token = std::uint64_t{1} << 61U;

  PendingConnections(Poller& poller, std::size_t places, std::chrono::milliseconds longest_stay)
      : poller_(poller), places_(places, longest_stay) {}

  /// Errors: unavailable when the listener cannot be watched.
  Result<void> open(Listener listener) {
    listener_ = std::move(listener);
    if (poller_.watch(listener_.fd.get(), listener_token, false)) return {};
    return fail(ErrorCode::unavailable, "cannot watch the listening socket: " + errno_text(errno));
  }

  /// Accepts waiting connections, a limited number at a time. `greet` makes a Connection of a FileDescriptor, or
  /// nothing.
  template <class Greet>
  void accept(Time now, const Greet& greet) {
    constexpr int max_at_once = 64;
    for (int i = 0; i < max_at_once && listener_.fd.is_open(); ++i) {
      Accepted accepted = accept_from(listener_.fd.get());
      if (!accepted.fd.is_open()) {
        if (accepted.error == EAGAIN || accepted.error == EWOULDBLOCK) {
          lacks_files_since_.reset();
        } else {
          find_room(now);
        }
        return;
      }
      lacks_files_since_.reset();
      const std::uint64_t token = next_token_++;
      const auto admission = places_.admit(token, accepted.source, now);
      if (admission.evicted) close(*admission.evicted);
      if (!admission.is_admitted) continue;
      std::optional<Connection> connection = greet(std::move(accepted.fd));
      if (connection && poller_.watch(connection->fd(), token, false)) {
        connections_.emplace(token, std::move(*connection));
      } else {
        places_.remove(token);
      }
    }
  }

  /// Null when it was dropped meanwhile.
  [[nodiscard]] Connection* find(std::uint64_t token) {
    const auto at = connections_.find(token);
    return at == connections_.end() ? nullptr : &at->second;
  }
  /// It has authenticated: gives it up, still watched. Requires: find(token).
  Connection take(std::uint64_t token) {
    places_.remove(token);
    return std::move(connections_.extract(token).mapped());
  }
  void drop(std::uint64_t token) {
    places_.remove(token);
    close(token);
  }
  /// Drops all.
  void clear() {
    while (!connections_.empty()) close(connections_.begin()->first);
    places_.clear();
  }

  /// Drops connections past their deadline.
  void expire(Time now) {
    while (const auto token = places_.expired(now)) drop(*token);
    if (paused_until_ && *paused_until_ <= now && listener_.fd.is_open()) {
      paused_until_.reset();
      poller_.watch(listener_.fd.get(), listener_token, false);
    }
  }
  /// When `expire` has something to do next.
  [[nodiscard]] std::optional<Time> next_deadline() const {
    const auto first = places_.next_deadline();
    return first && paused_until_ ? std::min(*first, *paused_until_) : first ? first : paused_until_;
  }
  /// Since when accepting has failed for want of descriptors or memory; none while it works.
  [[nodiscard]] std::optional<Time> lacks_files_since() const { return lacks_files_since_; }

  /// Accepts no more connections, and drops all pending ones.
  void close() {
    clear();
    if (!listener_.fd.is_open()) return;
    poller_.forget(listener_.fd.get());
    listener_.fd.reset();
    paused_until_.reset();
  }

 private:
  void close(std::uint64_t token) {
    const auto at = connections_.find(token);
    if (at == connections_.end()) return;
    poller_.forget(at->second.fd());
    connections_.erase(at);
  }
  /// Out of descriptors or memory: the socket would stay readable, so accepting pauses for a while.
  void find_room(Time now) {
    constexpr std::chrono::milliseconds pause{50};
    if (const auto evicted = places_.evict(now)) return close(*evicted);
    if (!lacks_files_since_) lacks_files_since_ = now;
    poller_.forget(listener_.fd.get());
    paused_until_ = now + pause;
  }

  Poller& poller_;
  PendingPlaces places_;
  Listener listener_;
  std::optional<Time> paused_until_;  ///< Accepting nothing until then.
  std::optional<Time> lacks_files_since_;
  std::map<std::uint64_t, Connection> connections_;  ///< By token.
  std::uint64_t next_token_ = first_token;
};

}  // namespace espalier::engine::rendezvous
