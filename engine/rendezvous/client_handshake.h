#pragma once

// Tested by: tests/unit/engine/rendezvous/control_plane_test.cpp

#include <chrono>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "engine/rendezvous/identity.h"
#include "engine/rendezvous/wire/link.h"

namespace espalier::engine::rendezvous {

/// A connection to a hub on which both sides have authenticated.
struct HubConnection {
  FrameLink link;
  std::string hub_name;
};

/// Connects to the hub and proves who this process is; tries again until the deadline while nobody listens, or the hub
/// is still busy with a job before. Errors: invalid_input when the hub refuses (another secret, world, version; the
/// rank is taken) or is no rendezvous; unavailable when the deadline passes.
Result<HubConnection> connect_to_hub(const Identity& identity, const std::string& host, std::uint16_t port,
                                     std::chrono::steady_clock::time_point deadline);

}  // namespace espalier::engine::rendezvous
