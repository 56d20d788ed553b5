#pragma once

// Tested by: tests/options/options_test.py

#include <optional>
#include <string>
#include <vector>

#include "cli/flags/inputs.h"
#include "cli/jobs/stop.h"
#include "cli/measured/error_ranges.h"
#include "cli/output/console.h"
#include "cli/scenarios/simulate_scenario.h"
#include "schedule/bound.h"
#include "schedule/collective.h"

namespace espalier::cli {

/// What is asked of every design.
struct DesignQuestions {
  std::vector<CollectiveKind> collectives;
  std::vector<Bytes> sizes;
  std::vector<std::string> algorithms;
  std::string algorithm;   ///< Under which name the fastest of them is asked for.
  bool fails = true;       ///< What single failures cost the first collective.
  ScenarioFlags scenario;  ///< No file: none.
  ProfileFlags profile;    ///< Names none: that of each machine.
};

/// A collective at one size.
struct DesignRun {
  Bytes size;
  double seconds = 0;
  double busbw = 0;
  double of_bound = 0;
  std::string by;
};

struct DesignCollective {
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::optional<double> bound_busbw;  ///< Nothing where nothing has to move.
  std::vector<DesignRun> runs;        ///< By size.
  CallErrors errors;                  ///< Nothing without a profile.
};

/// What single failures of cables and forwarding nodes do to a collective's bound.
struct DesignFailures {
  std::size_t all = 0;
  std::size_t harmless = 0;
  std::size_t cut_off = 0;
  std::string worst;  ///< Of those that cut nobody off, the one that costs most; empty: none costs anything.
  double loss = 0;    ///< Its part of the bound.
};

struct DesignScenario {
  std::string name;
  Picoseconds elapsed;
  double compute = 0;  ///< Parts of the time, in the mean over ranks.
  double exposed = 0;
  double waiting = 0;
  double idle = 0;
  std::optional<double> tokens_per_second;
  std::optional<double> model_flops_utilisation;
  std::optional<scenario::TrainingFigures> training;  ///< It says what is known of errors.
};

struct Design {
  std::string name;  ///< As it was given.
  std::size_t ranks = 0;
  std::size_t links = 0;
  std::string profile;  ///< Empty: links alone.
  std::vector<DesignCollective> collectives;
  std::optional<DesignFailures> failures;
  std::optional<DesignScenario> scenario;
};

/// Plans and simulates everything that is asked, on one design.
OrStop<Design> examine_design(const Console& console, const TopologyFlags& flags, const DesignQuestions& questions);

}  // namespace espalier::cli
