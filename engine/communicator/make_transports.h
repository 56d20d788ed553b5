#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <memory>
#include <vector>

#include "engine/communicator/job.h"
#include "engine/rendezvous/peers.h"
#include "engine/transport/transport.h"

namespace espalier::engine {

/// The transports that a job may use, the preferred ones first. A new transport is a line here.
std::vector<std::unique_ptr<Transport>> make_transports(rendezvous::ControlPlane& control,
                                                        const std::vector<rendezvous::PeerInfo>& peers,
                                                        const JobOptions& options, bool is_oversubscribed);

/// Whether this build has verbs, and this machine a device with an active port.
bool has_verbs();

}  // namespace espalier::engine
