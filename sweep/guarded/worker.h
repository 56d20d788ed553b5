#pragma once

// Tested by: tests/unit/sweep/guarded/guarded_items_test.cpp

#include <sys/types.h>

#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"

// Processes of our own that do work and write lines, so that a bug of ours, which ends its process at a failed check,
// costs the work that meets it and no other.
namespace espalier::sweep {

/// False under a sanitizer: the end of the process is to be seen there.
bool may_use_workers();

struct Worker {
  pid_t process = -1;
  int lines = -1;  ///< The end of a pipe that its lines are read from.
};

/// Runs `work`, which gets the pipe's other end, in a process of its own; it ends when this one does. Requires: no
/// other threads here. Errors: unavailable where no process can be started.
Result<Worker> start_worker(const std::function<bool(int lines)>& work);

/// Waits; whether it ended as it should.
bool wait_for(pid_t process);

Result<void> write_whole(int file, std::string_view text);

/// Hands over whole lines, some at a time, until the pipe's other end is closed. Errors: those of `on_lines`.
Result<void> read_lines_of(int file, const std::function<Result<void>(std::string_view lines)>& on_lines);

/// What became of a worker.
struct WorkerEnd {
  bool is_done = false;     ///< Its work is done.
  bool is_stopped = false;  ///< It could not be started, or its lines were refused.
  std::string said;         ///< Of an internal error; else that its process ended.
};

/// Starts a worker and reads all that it writes; what it says on standard error is passed on.
WorkerEnd run_worker(const std::function<bool(int lines)>& work,
                     const std::function<Result<void>(std::string_view lines)>& on_lines);

}  // namespace espalier::sweep
