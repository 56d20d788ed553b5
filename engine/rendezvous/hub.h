#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/rendezvous/acceptor.h"
#include "engine/rendezvous/exchange_table.h"
#include "engine/rendezvous/plane_state.h"

namespace espalier::engine::rendezvous {

/// Rank 0's side of the control plane: authenticates ranks, gathers exchanges, broadcasts failures, answers pings.
/// Thread-safe: a background thread reads, callers put and send under the same lock.
class Hub {
 public:
  using Time = Poller::Time;

  /// Errors: unavailable when descriptors or threads run out.
  static Result<std::unique_ptr<Hub>> start(PlaneState& state, Identity identity, Listener listener);
  Hub(const Hub&) = delete;
  Hub& operator=(const Hub&) = delete;
  ~Hub();

  /// Rank 0's own part of an exchange.
  void put(Put put);
  /// Sends a failure to all members and closes the acceptor.
  void report(const RankFailure& failure);
  /// The ranks that have not joined yet.
  [[nodiscard]] std::vector<std::uint32_t> missing() const;
  /// Acceptor::last_refusal.
  [[nodiscard]] std::string last_refusal() const;
  /// The address of this machine that the first member connected to.
  [[nodiscard]] std::string local_address() const;
  /// Sends goodbye to all and ends the thread. Takes at most `farewell_time`.
  void leave();

 private:
  struct Member {
    FrameLink link;
    std::string name;
    Time last_received;
    bool has_joined = false;
    bool has_left = false;
    bool is_written = false;   ///< Watched for writing.
    bool is_finished = false;  ///< Nothing more is sent.
  };

  Hub(PlaneState& state, Identity identity);
  // All below require the lock, but for loop.
  void loop();
  void handle(const Poller::Event& event, Time now);
  void tick(Time now);
  [[nodiscard]] bool is_over(Time now) const;
  void fail_for_memory();
  [[nodiscard]] Time next_time() const;
  void welcome(Acceptor::Authenticated authenticated, Time now);
  std::optional<EntryRefusal> check_admission(const Claim& claim) const;
  void receive(std::uint32_t rank, Time now);
  void handle(std::uint32_t rank, const Frame& frame);
  void handle_goodbye(std::uint32_t rank);
  void drop(std::uint32_t rank);
  void answer(const std::vector<ExchangeTable::Answer>& answers);
  void fail(std::uint32_t rank, const std::string& what);
  void broadcast(const RankFailure& failure);
  void after_sending(std::uint32_t rank);
  void check_silence(Time now, bool was_away);

  PlaneState& state_;
  const Identity identity_;
  mutable std::mutex mutex_;
  Poller poller_;
  Acceptor acceptor_;
  std::vector<Member> members_;  ///< By rank; rank 0's is unused.
  ExchangeTable table_;
  std::uint32_t joined_ = 1;
  Time next_heartbeat_;
  Time last_tick_;
  std::optional<Time> closing_until_;
  RankFailure lack_of_memory_;  ///< Made while there was some.
  std::thread thread_;
};

}  // namespace espalier::engine::rendezvous
