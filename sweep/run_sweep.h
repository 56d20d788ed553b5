#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <functional>
#include <string>
#include <vector>

#include "base/result.h"
#include "sweep/row.h"
#include "sweep/spec.h"

namespace espalier::sweep {

/// Takes a row as soon as it is known; never two at once. An error ends the sweep.
using OnRow = std::function<Result<void>(Row)>;

/// Runs all keys of the units on `threads` threads, each plan made once. Rows come in no order; which they are and what
/// is in them does not depend on the number of threads, wall clock aside. What cannot be planned or simulated becomes a
/// row with the reason. Planning and simulating of different units go on at the same time; at most one unit per thread
/// is open.
/// Requires: units of this spec; at least one thread.
/// Errors: those of `on_row`.
Result<void> run_sweep(const Spec& spec, const std::vector<Unit>& units, unsigned threads, const OnRow& on_row);

/// How many rows the units have.
std::uint64_t count_rows(const std::vector<Unit>& units);

/// Leaves out what has a row already. Requires: rows sorted by their keys.
void leave_out(std::vector<Unit>& units, const std::vector<Row>& rows);

}  // namespace espalier::sweep
