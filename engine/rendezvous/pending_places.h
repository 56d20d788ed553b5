#pragma once

// Tested by: tests/unit/engine/rendezvous/pending_places_test.cpp

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>

namespace espalier::engine::rendezvous {

/// Who may stay among connections that have not authenticated yet. Pure bookkeeping: no sockets, time is an argument.
/// Not thread-safe.
///
/// 1. At most `places` connections stay at once, each for at most `longest_stay`.
/// 2. When all places are taken, the source address that holds the most gives way to one that holds fewer: its oldest
///    connection goes. A flood from one address therefore never keeps other addresses out.
/// 3. Where that would only trade places among equals (a flood from the address of genuine ranks, or from many), every
///    connection has `min_stay` to authenticate; while nobody has had that, the new connection is turned away. It may
///    come again, and at most `places` are admitted per `min_stay`.
class PendingPlaces {
 public:
  using Id = std::uint64_t;
  using Time = std::chrono::steady_clock::time_point;
  /// Several round trips between any two machines of a job, and time to be scheduled.
  static constexpr std::chrono::milliseconds min_stay{200};

  PendingPlaces(std::size_t places, std::chrono::milliseconds longest_stay)
      : places_(places), longest_stay_(longest_stay) {}

  struct Admission {
    bool is_admitted = false;
    std::optional<Id> evicted;  ///< Who goes for it; has been removed.
  };
  /// A connection comes. Requires: an id greater than all before.
  Admission admit(Id id, const std::string& source, Time now);
  /// Removes somebody who has had `min_stay`, if there is one, for want of descriptors.
  std::optional<Id> evict(Time now);
  void remove(Id id);
  void clear();
  /// The oldest connection, once its time is up.
  [[nodiscard]] std::optional<Id> expired(Time now) const;
  /// When `expired` has somebody next.
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  struct Place {
    std::string source;
    Time since;
  };
  using BySource = std::map<std::string, std::set<Id>>;
  /// The source with the most connections; of several the one whose oldest is the oldest. Requires: there is one.
  [[nodiscard]] BySource::const_iterator largest_source() const;

  std::size_t places_;
  std::chrono::milliseconds longest_stay_;
  std::map<Id, Place> all_;  ///< Oldest first.
  BySource by_source_;       ///< Without empty sets.
};

/// Places for connections that have not authenticated: room for those that are due at once and some more, but never
/// more than a quarter of the descriptors that this process may have.
std::size_t pending_places_for(std::size_t due);

}  // namespace espalier::engine::rendezvous
