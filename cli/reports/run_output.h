#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "engine/communicator/transport_choice.h"
#include "engine/measure/measure.h"
#include "schedule/bound.h"

namespace espalier::cli {

/// One measured size.
struct RunResult {
  engine::DataCase data;
  Bytes size;
  std::string algorithm;  ///< The planner that made the schedule.
  Pacing pacing;
  engine::RunMeasurement measurement;
};

/// What `run` measures, as it is shown.
struct RunOutput {
  std::string topology;
  Collective collective;
  ElementType type = ElementType::float32;
  ReduceOperation operation = ReduceOperation::sum;
  std::optional<Rational> bound;  ///< Time per byte; nothing where it is not known.
  std::vector<std::string> rank_names;
  std::vector<PeerTransport> transports;  ///< From rank 0.
  engine::MeasureOptions options;
  std::vector<RunResult> results;

  [[nodiscard]] std::uint64_t wrong() const;
};

/// The lines before the rows, one row, and the lines after them, in the form of nccl-tests.
std::string run_header(const RunOutput& run);
std::string run_row(const RunOutput& run, const RunResult& result);
std::string run_footer(const RunOutput& run);

/// The rows alone, for --csv; cells of what was not measured are empty.
Table run_table(const RunOutput& run);

/// A document espalier/results/1.
nlohmann::ordered_json run_json(const RunOutput& run);

}  // namespace espalier::cli
