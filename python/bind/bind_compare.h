#pragma once

// Tested by: python/tests/behaviour.py

#include "compare/statistics.h"
#include "forecast/software.h"
#include "python/bind/bindings.h"

namespace espalier::python {

/// count, median, p90, worst and bias, by name.
py::dict summary_of(const compare::ErrorSummary& errors);

/// The software of the profile in a file, with calls launched so. Errors: of the file, or the launch.
std::shared_ptr<const forecast::Software> software_of(const std::string& path, const std::string& launch);

/// Comparing runs, writing their traces, simulating under profiles.
void bind_compare(py::module_& module);

}  // namespace espalier::python
