#pragma once

#include <string>
#include <vector>

#include "cli/console.h"
#include "planners/chooser.h"

namespace espalier::cli {

/// Splits "ring,tree,auto" and checks each name; "all" stands for every planner.
/// Errors: invalid_input, with the nearest name.
Result<std::vector<std::string>> parse_algorithms(const std::string& text);

/// The planners that these algorithms need: those named, or all when "auto" is among them.
std::vector<Planner> planners_for(const std::vector<std::string>& algorithms);

/// Plans with a progress bar.
Result<Candidates> plan_candidates(const Console& console, const Topology& topology, const Collective& collective,
                                   const std::vector<std::string>& algorithms);

/// The text of -a's help: the planners' names.
std::string algorithm_names();

}  // namespace espalier::cli
