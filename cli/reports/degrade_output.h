#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"
#include "cli/output/table.h"
#include "forecast/degrade.h"

namespace espalier::cli {

/// The failures, worst first.
Table degradation_table(const forecast::Degradation& degradation);

/// `profile`: as shown; empty without one. The table of `topo degrade`, worst failure first, and what breaks the
/// machine.
std::string degradation_text(const forecast::Degradation& degradation, const Topology& topology, Bytes size,
                             const std::string& profile);

/// Schema espalier/degrade/1.
nlohmann::ordered_json degradation_json(const forecast::Degradation& degradation, const Topology& topology, Bytes size,
                                        const std::string& profile);

}  // namespace espalier::cli
