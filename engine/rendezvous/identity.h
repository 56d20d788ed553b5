#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace espalier::engine::rendezvous {

/// A process' rank and job, and the secret that proves them.
struct Identity {
  std::uint32_t rank = 0;
  std::uint32_t world = 1;
  std::string secret;
  std::string job;
  std::string name;  ///< "host NAME, process PID".
  std::chrono::milliseconds timeout{30000};
  bool was_listening = false;  ///< Somebody listened at the rendezvous before this rank began.

  /// Both sides send at least this often.
  [[nodiscard]] std::chrono::milliseconds heartbeat_interval() const {
    return std::clamp(timeout / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(1000));
  }
  /// How long a connection may take to authenticate.
  [[nodiscard]] std::chrono::milliseconds greeting_time() const {
    return std::clamp(timeout / 2, std::chrono::milliseconds(10), std::chrono::milliseconds(5000));
  }
};

/// How long goodbyes may take to get through.
inline constexpr std::chrono::milliseconds farewell_time{500};

}  // namespace espalier::engine::rendezvous
