#pragma once

#include "compare/statistics.h"
#include "forecast/profiled_runs.h"
#include "python/bind/bindings.h"

namespace espalier::python {

/// count, median, p90, worst and bias, by name.
py::dict summary_of(const compare::ErrorSummary& errors);

/// How runs under the profile in a file go, with calls launched so. Errors: of the file, or the launch.
forecast::ProfiledRuns::Options profiled_options(const std::string& path, const std::string& launch);

/// Comparing runs, writing their traces, simulating under profiles.
void bind_compare(py::module_& module);

}  // namespace espalier::python
