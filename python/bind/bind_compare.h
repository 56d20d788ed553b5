#pragma once

#include "python/bind/bindings.h"

namespace espalier::python {

/// Comparing runs, writing their traces, simulating under profiles.
void bind_compare(py::module_& module);

}  // namespace espalier::python
