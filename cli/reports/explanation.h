#pragma once

// Tested by: tests/options/options_test.py

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/output/table.h"
#include "forecast/run_limits.h"
#include "planners/bounds/bound_prices.h"
#include "planners/chooser.h"
#include "planners/explain/class_loads.h"
#include "planners/explain/cut_proof.h"
#include "planners/explain/more_cables.h"
#include "planners/tuning/nccl_likeness.h"
#include "sim/core/utilisation.h"

namespace espalier::cli {

/// Everything that `explain` found, ready to be shown.
struct Explanation {
  const Topology* topology = nullptr;
  std::shared_ptr<const Schedule> schedule;        ///< forecast::described_schedule.
  const planners::Candidate* candidate = nullptr;  ///< Whose it is.
  Bytes size;
  std::string type;  ///< Of an element.
  sim::Circumstances circumstances;
  Bound bound;
  std::vector<planners::BoundPrice> prices;  ///< What proves the bound where no cut does.
  std::optional<planners::CutProof> proof;
  Loads loads;
  std::vector<planners::ClassLoad> classes;
  planners::TravelShape shape;
  forecast::RunLimits limits;
  std::vector<sim::CriticalShare> critical;
  std::string profile;                  ///< As shown, with the protocol; empty without one.
  std::string why;                      ///< Under a profile: what NCCL chose it by.
  std::string label;                    ///< What the schedule is called among the trials.
  std::vector<planners::Trial> trials;  ///< What it was compared with, fastest first.
  std::vector<planners::MoreCables> more;
};

/// What each single change would save, all of them, for --csv.
Table improvements_table(const Explanation& explanation);
std::string explanation_text(const Explanation& explanation);
/// Schema espalier/explain/1.
nlohmann::ordered_json explanation_json(const Explanation& explanation);

}  // namespace espalier::cli
