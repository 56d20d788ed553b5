#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>

#include "engine/rendezvous/client_handshake.h"
#include "engine/rendezvous/plane_state.h"
#include "engine/rendezvous/wire/messages.h"
#include "engine/rendezvous/wire/poller.h"

namespace espalier::engine::rendezvous {

/// The side of every rank but 0: one connection to the hub. Thread-safe: a background thread reads, callers send.
class Member {
 public:
  using Time = Poller::Time;

  /// Errors: unavailable when descriptors or threads run out.
  static Result<std::unique_ptr<Member>> start(PlaneState& state, Identity identity, HubConnection connection);
  Member(const Member&) = delete;
  Member& operator=(const Member&) = delete;
  ~Member();

  void put(const Put& put);
  void ping(std::uint64_t id);
  /// Sends a failure to the hub, which sends it to all other ranks.
  void report(const RankFailure& failure);
  [[nodiscard]] std::string local_address() const;
  [[nodiscard]] std::string hub_address() const;
  /// Sends goodbye and ends the thread. Takes at most `farewell_time`.
  void leave();

 private:
  Member(PlaneState& state, Identity identity, HubConnection connection);
  void loop();
  // All below require the lock.
  void tick(Time now);
  void fail_for_memory();
  void receive(Time now);
  void handle(const Frame& frame);
  void finish();
  void fail_hub(const std::string& what);
  void send(FrameType type, std::string_view payload = {});
  void after_sending();

  PlaneState& state_;
  const Identity identity_;
  const std::string hub_name_;
  const std::string local_address_;
  const std::string hub_address_;
  mutable std::mutex mutex_;
  Poller poller_;
  FrameLink link_;
  Time last_received_;
  Time next_heartbeat_;
  Time last_tick_;
  bool is_written_ = false;
  bool is_finished_ = false;
  bool hub_has_left_ = false;
  std::optional<Time> closing_until_;
  RankFailure lack_of_memory_;  ///< Made while there was some.
  std::thread thread_;
};

}  // namespace espalier::engine::rendezvous
