#pragma once

#include "compare/statistics.h"
#include "python/bind/bindings.h"

namespace espalier::python {

/// count, median, p90, worst and bias, by name.
py::dict summary_of(const compare::ErrorSummary& errors);

/// Comparing runs, writing their traces, simulating under profiles.
void bind_compare(py::module_& module);

}  // namespace espalier::python
