#pragma once

// Tested by: tests/unit/engine/launch/shared_secret_test.cpp

#include <string>

#include "base/result.h"
#include "engine/launch/detect_launch.h"

namespace espalier::engine::launch {

/// A job's secret.
struct SharedSecret {
  std::string text;
  std::string path;  ///< To be removed by rank 0 once all ranks have joined; empty where it was given.
};

/// The secret of the job that this process was started for, where nobody gave it one: the first rank to come writes a
/// random one to a file, and all read it. Only this user can reach the file (mode 0600 in a folder of mode 0700, in
/// XDG_RUNTIME_DIR or /tmp), and only children of one launcher find the same: it is named after the launcher's process
/// and that process's start. What launchers that are gone have left is removed.
/// Requires: launch.is_one_machine.
/// Errors: unavailable when the file cannot be had; invalid_input when others could have written it.
Result<SharedSecret> share_secret(const LaunchInfo& launch, const rendezvous::Environment& environment);

/// The secret in a file, where one is named, or in the environment; else, where a launcher has all ranks on this
/// machine, one that they share. Errors: those of share_secret, read_secret_file and find_secret.
Result<SharedSecret> secret_of(const LaunchInfo& launch, const rendezvous::Environment& environment,
                               const std::string& file = "");

}  // namespace espalier::engine::launch
