#pragma once

// Tested by: tests/unit/engine/communicator/agreement_test.cpp

#include <chrono>
#include <span>
#include <string>

#include "base/result.h"
#include "engine/rendezvous/control_plane.h"

namespace espalier::engine {

/// What all ranks of a job must have alike: a name as users know it, and this rank's value.
struct Setting {
  std::string name;
  std::string value;
};

/// Compares the settings of all ranks, which need not have the same names. Collective over the whole world.
/// Errors: invalid_input, the same on all ranks: the first rank that differs from rank 0, the setting and both values;
/// those of ControlPlane::exchange. Cost: one exchange of 8 bytes where all agree.
Result<void> agree_on(rendezvous::ControlPlane& plane, std::span<const Setting> settings,
                      std::chrono::milliseconds timeout);

}  // namespace espalier::engine
