#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/measured/error_ranges.h"
#include "cli/output/table.h"
#include "forecast/answer.h"
#include "forecast/ecmp_runs.h"

namespace espalier::cli {

/// Everything that `simulate` found, ready to be shown.
struct Simulation : forecast::Answer {
  const Topology* topology = nullptr;
  Collective collective;
  Bound bound;
  sim::ModelKind model = sim::ModelKind::link;
  sim::Circumstances circumstances;
  forecast::EcmpDraws draws;  ///< None: routes are as planned.
  std::string profile;        ///< As shown; empty without one.
  std::string type;           ///< Element type.
  std::int64_t element_size = 4;
  std::vector<Bytes> sizes;
  CallErrors errors;
};

/// `has_ranges`: with columns of what is known of errors, where a profile counts.
Table simulation_table(const Simulation& simulation, bool has_ranges);
std::string simulation_text(const Simulation& simulation);
nlohmann::ordered_json simulation_json(const Simulation& simulation);

/// The critical path in time order: as a table, and as [{begin, end, queued, transfer, chunk, where}].
Table critical_path_table(const forecast::CandidateRun& result, const Topology& topology);
std::string critical_path_text(const forecast::CandidateRun& result, const Topology& topology);
nlohmann::ordered_json critical_path_json(const forecast::CandidateRun& result, const Topology& topology);

}  // namespace espalier::cli
