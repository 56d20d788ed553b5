#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/reports/simulation_output.h"
#include "forecast/measured_errors.h"
#include "forecast/software.h"

namespace espalier::cli {

/// The classes that ship with the command; none where their file is missing. Errors: as MeasuredErrors::read.
Result<std::shared_ptr<const forecast::MeasuredErrors>> shipped_errors();

/// Where measurements of NCCL lie beside a simulation's predictions, size by size, as its profile's classes say;
/// `version`: of NCCL, where one
/// is named.
Result<SimulationErrors> find_errors(const Simulation& simulation, const forecast::Software& software,
                                     const std::string& version);

/// "nccl from 1 MiB to 64 MiB: nine in ten measurements at 0.84 to 1.29 of it (20 points)", one for each class; none
/// where nothing is predicted of NCCL under a profile.
std::vector<std::string> errors_sentences(const Simulation& simulation);
/// The same as lines under a table.
std::string errors_text(const Simulation& simulation);

/// {"low", "high", "part", "points", "systems", "held", "outside"} of a result; null where there is none.
nlohmann::ordered_json range_json(const Simulation& simulation, std::size_t result);

}  // namespace espalier::cli
