#pragma once

// Tested by: tests/unit/sweep/guarded/guarded_sweep_test.cpp

#include <sys/types.h>

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sweep/run_sweep.h"

namespace espalier::sweep {

/// What runs the keys of units: run_sweep.
using RunUnits = std::function<Result<void>(const Spec&, const std::vector<Unit>&, unsigned, const OnRow&)>;

/// A sweep in processes of its own, so that a bug of ours, which ends its process at a failed check, costs the rows
/// that meet it and no others. What was being run when a worker ended is run again, unit by unit and then key by key; a
/// key that ends its process alone is a row whose reason begins with "internal error". What workers say on standard
/// error stands there, too. Under a sanitizer all is run in this process, whose end is to be seen.
class GuardedSweep {
 public:
  /// Starts it. Requires: no other threads here, as it forks; spec and units outlive it.
  GuardedSweep(const Spec& spec, const std::vector<Unit>& units, unsigned threads, RunUnits run = run_sweep);
  ~GuardedSweep();
  GuardedSweep(const GuardedSweep&) = delete;
  GuardedSweep& operator=(const GuardedSweep&) = delete;

  /// Hands over every row, as run_sweep does, until all are done. Called once. Errors: those of `on_row`;
  /// unavailable where no process can be started.
  Result<void> read(const OnRow& on_row);

 private:
  const Spec& spec_;
  const std::vector<Unit>& units_;
  unsigned threads_;
  RunUnits run_;
  pid_t supervisor_ = -1;
  int rows_ = -1;  ///< The end of a pipe that rows are read from.
};

}  // namespace espalier::sweep
