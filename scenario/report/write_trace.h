#pragma once

// Tested by: tests/golden/console_test.py

#include <iosfwd>

#include "base/result.h"
#include "scenario/report/report.h"

namespace espalier::scenario {

/// Writes what each rank did when as Chrome trace JSON, which ui.perfetto.dev opens: a process per rank, a thread per
/// stream, a slice per task; of calls, how many bytes and how much slower than alone. Times in microseconds, exact to
/// the picosecond. Of `every` tasks only one is written, and the header says so. Requires: the report of this job.
/// Errors: unavailable when the stream does not take it all.
Result<void> write_trace(std::ostream& out, const Job& job, const Topology& topology, const JobReport& report,
                         std::uint32_t every = 1);

}  // namespace espalier::scenario
