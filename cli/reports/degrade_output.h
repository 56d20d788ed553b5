#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "base/units.h"
#include "cli/output/table.h"
#include "planners/damage/degrade.h"

namespace espalier::cli {

/// The failures, worst first.
Table degradation_table(const planners::Degradation& degradation);

/// The table of `topo degrade`, worst failure first, and what breaks the machine.
std::string degradation_text(const planners::Degradation& degradation, const Topology& topology, Bytes size);

/// Schema espalier/degrade/1.
nlohmann::ordered_json degradation_json(const planners::Degradation& degradation, const Topology& topology, Bytes size);

}  // namespace espalier::cli
