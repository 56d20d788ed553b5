#pragma once

// Tested by: tests/options/options_test.py

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "planners/bounds/bound.h"
#include "sim/critical_path/path_times.h"
#include "topology/topology.h"

namespace espalier::cli {

/// What one reason adds to the time that the bound says; all together are the measured time.
struct TimeFactor {
  double seconds = 0;  ///< May be below 0.
  std::string why;     ///< In people's words.
};

/// What links carry under a profile, with the algorithm and protocol that ran.
struct CarriedBytes {
  double bound_seconds = 0;  ///< What no schedule is below at the rates that links reach there.
  double payload = 1;        ///< The part of what links carry that is data.
};

/// One size that was measured, and where its time went.
struct MeasuredCall {
  Bytes size;
  double seconds = 0;
  std::string by;                   ///< What ran; of a table what the profile takes: "nccl/ring/ll".
  std::size_t steps = 0;            ///< Of the path.
  std::vector<sim::PathTime> path;  ///< Most first; sums to the time, of a table to what was predicted.
  std::optional<double> predicted;  ///< Of a table: seconds under the profile.
  std::vector<TimeFactor> factors;  ///< From the bound to what was measured.
};

/// What `explain --measured` found.
struct MeasuredExplanation {
  const Topology* topology = nullptr;
  Collective collective;
  Bound bound;
  std::string file;
  std::string profile;              ///< As shown; empty for a timeline.
  std::vector<MeasuredCall> calls;  ///< By size.
  std::string first_line;           ///< Whether it is as fast as it should be.
  nlohmann::ordered_json verdict;
};

/// Why a call took what it did and not what the bound says: what links reach, what the schedule moves beyond the bound,
/// what its path spent otherwise, and what is not simulated. `bound_seconds` is of its size on nominal links; `carried`
/// only where a profile says it.
std::vector<TimeFactor> factors_of(const MeasuredCall& call, double bound_seconds,
                                   const std::optional<CarriedBytes>& carried);

/// A row per size: the measured time and the parts of it.
Table measured_table(const MeasuredExplanation& explanation);
std::string measured_text(const MeasuredExplanation& explanation);
/// Schema espalier/explain-measured/1.
nlohmann::ordered_json measured_json(const MeasuredExplanation& explanation);

}  // namespace espalier::cli
