#pragma once

#include <chrono>
#include <string>

#include "base/result.h"
#include "engine/launch/detect_launch.h"
#include "engine/rendezvous/control_plane.h"

namespace espalier::engine::launch {

/// How the process joins the job that it was launched for: as which rank, where, and on which socket where it inherited
/// one. Errors: invalid_input where that is no listening socket.
Result<rendezvous::Options> join_options(const LaunchInfo& launch, std::string secret,
                                         std::chrono::milliseconds timeout);

}  // namespace espalier::engine::launch
