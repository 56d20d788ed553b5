#pragma once

// Tested by: tests/unit/topology/analysis/symmetry_test.cpp

#include <string>
#include <vector>

#include "base/diagnostic.h"
#include "topology/topology.h"

namespace espalier {

/// The part of `find_asymmetry` that compares links with links: T105, T106 and T107.
std::vector<Diagnostic> find_link_asymmetry(const Topology& topology);

/// "gpu0", "gpu0 and gpu1", "gpu0, gpu1, ... and 12 more". Requires: at least one name.
std::string list_names(const std::vector<std::string>& names);

/// A warning with the help that all of them share.
Diagnostic asymmetry(const char* code, std::string message);

}  // namespace espalier
