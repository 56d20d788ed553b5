#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "planners/bounds/bound.h"
#include "sim/critical_path/path_times.h"
#include "topology/topology.h"

namespace espalier::cli {

/// One size that was measured, and where its time went.
struct MeasuredCall {
  Bytes size;
  double seconds = 0;
  std::string by;                   ///< What ran; of a table what the profile takes: "nccl/ring/ll".
  std::size_t steps = 0;            ///< Of the path.
  std::vector<sim::PathTime> path;  ///< Most first; sums to the time, of a table to what was predicted.
  std::optional<double> predicted;  ///< Of a table: seconds under the profile.
};

/// What `explain --measured` found.
struct MeasuredExplanation {
  const Topology* topology = nullptr;
  Collective collective;
  Bound bound;
  std::string file;
  std::string profile;              ///< As shown; empty for a timeline.
  std::vector<MeasuredCall> calls;  ///< By size.
};

/// A row per size: the measured time and the parts of it.
Table measured_table(const MeasuredExplanation& explanation);
std::string measured_text(const MeasuredExplanation& explanation);
/// Schema espalier/explain-measured/1.
nlohmann::ordered_json measured_json(const MeasuredExplanation& explanation);

}  // namespace espalier::cli
