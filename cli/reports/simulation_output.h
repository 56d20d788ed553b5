#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "forecast/answer.h"
#include "forecast/ecmp_runs.h"
#include "forecast/measured_errors.h"

namespace espalier::cli {

/// What is known of errors of predictions at each size of a simulation; nothing without a profile.
struct SimulationErrors {
  std::shared_ptr<const forecast::MeasuredErrors> classes;
  std::vector<forecast::ErrorRange> by_size;  ///< They point into `classes`.
};

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
  SimulationErrors errors;
};

Table simulation_table(const Simulation& simulation);
std::string simulation_text(const Simulation& simulation);
nlohmann::ordered_json simulation_json(const Simulation& simulation);

/// The critical path in time order: as a table, and as [{begin, end, queued, transfer, chunk, where}].
Table critical_path_table(const forecast::CandidateRun& result, const Topology& topology);
std::string critical_path_text(const forecast::CandidateRun& result, const Topology& topology);
nlohmann::ordered_json critical_path_json(const forecast::CandidateRun& result, const Topology& topology);

}  // namespace espalier::cli
