#pragma once

#include <string>

#include "base/result.h"
#include "engine/launch/detect_launch.h"

namespace espalier::engine::launch {

/// A secret that the ranks of one launcher on one machine make for themselves.
struct SharedSecret {
  std::string text;
  std::string path;  ///< To be removed by rank 0 once all ranks have joined.
};

/// The secret of the job that this process was started for, where nobody gave it one: the first rank to come writes a
/// random one to a file, and all read it. Only this user can reach the file (mode 0600 in a folder of mode 0700, in
/// XDG_RUNTIME_DIR or /tmp), and only children of one launcher find the same: it is named after the launcher's process
/// and that process's start. What launchers that are gone have left is removed.
/// Requires: launch.is_one_machine.
/// Errors: unavailable when the file cannot be had; invalid_input when others could have written it.
Result<SharedSecret> share_secret(const LaunchInfo& launch, const rendezvous::Environment& environment);

}  // namespace espalier::engine::launch
