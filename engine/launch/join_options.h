#pragma once

// Tested by: tests/unit/engine/launch/join_options_test.cpp

#include <chrono>
#include <string>

#include "engine/launch/detect_launch.h"
#include "engine/rendezvous/control_plane.h"

namespace espalier::engine::launch {

/// How the process joins the job that it was launched for: as which rank and where. Its first job gets the listening
/// socket that it inherited; later ones listen by themselves.
rendezvous::Options join_options(const LaunchInfo& launch, std::string secret, std::chrono::milliseconds timeout);

}  // namespace espalier::engine::launch
