#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/measured/error_ranges.h"
#include "cli/output/table.h"
#include "planners/tuning/regions.h"

namespace espalier::cli {

/// Everything that `tune` found, ready to be shown.
struct Tuning {
  const Topology* topology = nullptr;
  Collective collective;
  Bound bound;
  std::string type;  ///< Element type.
  std::vector<planners::Region> regions;
  std::vector<planners::Refusal> refused;
  std::string profile;  ///< As shown; empty without one.
  CallErrors errors;    ///< Of the sizes that were tried first.
};

/// `has_ranges`: with what is known of errors at the ends of regions, where a profile counts.
Table tuning_table(const Tuning& tuning, bool has_ranges);
std::string tuning_text(const Tuning& tuning);
/// Schema espalier/tune/1.
nlohmann::ordered_json tuning_json(const Tuning& tuning);

}  // namespace espalier::cli
