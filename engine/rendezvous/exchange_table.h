#pragma once

// Tested by: tests/unit/engine/rendezvous/exchange_table_test.cpp

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "engine/rendezvous/wire/messages.h"

namespace espalier::engine::rendezvous {

/// What the members of an exchange brought, in their order, or why it failed.
using Blobs = Result<std::vector<std::string>>;

/// The exchanges that the hub is gathering. Pure bookkeeping: no sockets, time is an argument. Not thread-safe.
class ExchangeTable {
 public:
  using Time = std::chrono::steady_clock::time_point;

  /// The answer to members that wait: the same for all of them.
  struct Answer {
    std::vector<std::pair<std::uint32_t, std::uint64_t>> to;  ///< Rank and its own id of the exchange.
    std::shared_ptr<const Blobs> blobs;
  };

  explicit ExchangeTable(std::uint32_t world) : world_(world) {}

  /// Takes one member's part; the answer when it was the last, or could not be taken.
  std::optional<Answer> put(std::uint32_t rank, Put put, Time now);
  /// Answers for the members whose time is up: who did not come.
  std::vector<Answer> expire(Time now);
  /// Everybody gets so much more time.
  void postpone(Time::duration time);
  /// The rank will not come any more: answers for all that wait for it, now; later exchanges with it are refused.
  std::vector<Answer> leave(std::uint32_t rank);
  /// When `expire` has something to do next.
  [[nodiscard]] std::optional<Time> next_deadline() const;

 private:
  struct Part {
    std::uint64_t id = 0;
    Time deadline;
    std::chrono::milliseconds timeout{0};
    std::string blob;
  };
  struct Exchange {
    std::map<std::uint32_t, Part> parts;  ///< By rank.
    std::size_t size = 0;                 ///< Of all blobs.
  };
  using Key = std::pair<std::string, std::vector<std::uint32_t>>;

  std::optional<Error> refuse(std::uint32_t rank, const Put& put) const;
  Answer finish(const Key& key, Exchange exchange) const;
  std::uint32_t world_;
  std::map<Key, Exchange> exchanges_;
  std::set<std::uint32_t> left_;
};

}  // namespace espalier::engine::rendezvous
