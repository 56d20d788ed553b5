#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>

#include "cli/output/table.h"
#include "compare/stragglers.h"
#include "topology/topology.h"

namespace espalier::cli {

/// A row per rank, who costs most first.
Table stragglers_table(const compare::Stragglers& found, const Topology& machine);
std::string stragglers_text(const compare::Stragglers& found, const Topology& machine);
/// "espalier/stragglers/1" (docs/diagnose.md).
nlohmann::ordered_json stragglers_json(const compare::Stragglers& found, const Topology& machine);

}  // namespace espalier::cli
