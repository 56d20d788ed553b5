#pragma once

// Tested by: tests/unit/engine/launch/local_job_test.cpp

#include <sys/types.h>

#include <optional>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "engine/rendezvous/environment.h"

namespace espalier::engine::launch {

/// How a process is started.
struct SpawnOptions {
  std::string program;
  std::vector<std::string> arguments;   ///< Without the program's name.
  rendezvous::Environment environment;  ///< All of it.
  bool keeps_output = false;            ///< Standard output stays; otherwise it joins standard error.
  int inherited_fd = -1;                ///< Stays open in the process, under its number.
};

/// A started process: it leads a process group of its own and dies with the thread that started it.
struct Spawned {
  pid_t process = -1;
  FileDescriptor error_pipe;  ///< What it writes to standard error; non-blocking.
};

/// Starts a program. Standard input is /dev/null; all signals are unblocked and have their default.
/// Errors: unavailable when a pipe or process cannot be had, or the program cannot be run.
Result<Spawned> spawn(const SpawnOptions& options);

}  // namespace espalier::engine::launch
