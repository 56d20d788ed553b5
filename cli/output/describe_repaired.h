#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "planners/chooser.h"

namespace espalier::cli {

/// A line that says what was done to a plan after a failure, and that its times are not simulated; empty where nothing
/// was.
std::string repaired_text(const planners::Candidate& candidate);
std::optional<nlohmann::ordered_json> repaired_json(const planners::Candidate& candidate);

}  // namespace espalier::cli
