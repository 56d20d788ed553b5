#pragma once

// Tested by: tests/options/options_test.py

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/collective_flags.h"
#include "cli/flags/condition_flags.h"
#include "cli/flags/inputs.h"
#include "cli/flags/modes.h"
#include "cli/flags/packing_flags.h"
#include "cli/flags/sizes.h"
#include "cli/jobs/chosen_profile.h"
#include "cli/jobs/stop.h"
#include "cli/scenarios/simulate_scenario.h"
#include "forecast/candidate_runs.h"
#include "forecast/ecmp_runs.h"

namespace espalier::cli {

/// What sets the verbs that predict apart from each other, as far as their flags go.
struct PredictingVerb {
  std::string name;                            ///< "simulate".
  std::string does;                            ///< "Run", as its help says it.
  std::string algorithms;                      ///< The value of -a where none is given.
  std::string algorithms_help;                 ///< What -a is for.
  std::string size;                            ///< The one message size where none is given; empty: many sizes.
  std::vector<std::string_view> of_runs;       ///< Options of its own for what is simulated once.
  std::vector<std::string_view> of_scenarios;  ///< Options of its own that a scenario has, too.
  bool compares_plans = false;                 ///< A plan is compared with those of -a.
  bool has_profiles = false;                   ///< --profile is an option of it.
  bool has_scenarios = true;                   ///< --scenario is an option of it.
};

/// How a prediction is made, apart from what is predicted.
struct Prediction {
  std::string type;  ///< Of an element, as nccl-tests prints it.
  std::vector<Bytes> sizes;
  forecast::RunOptions options;
  forecast::EcmpDraws draws;
  std::string gpu;  ///< As Machine::gpu.
};

/// Every flag that a simulated result depends on: what `simulate` predicts with them `explain` explains.
struct PredictionFlags {
  explicit PredictionFlags(PredictingVerb of) : verb(std::move(of)) { sizes.single = verb.size; }

  PredictingVerb verb;
  TopologyFlags input;
  std::string plan_topology;  ///< The network that a plan gets instead of its own.
  CollectiveFlags collective;
  std::string algorithms;  ///< Empty: the verb's.
  PackingFlags packing;
  SizeFlags sizes;
  std::string chunk;       ///< Empty: chosen per schedule and size.
  std::string ahead;       ///< As `chunk`.
  std::uint32_t ecmp = 0;  ///< How often switches' choice of paths is drawn.
  std::string model;       ///< Empty: link, or what the scenario says.
  ConditionFlags conditions;
  ProfileFlags profile;
  ScenarioFlags scenario;

  /// Adds all to a verb.
  void add_to(CLI::App& command);

  /// Why the flags of a scenario do not go together, or nothing; also when nothing is named to be predicted.
  [[nodiscard]] std::optional<Error> find_conflict() const;

  /// The first flag given that means nothing for what was read, or nothing.
  [[nodiscard]] std::optional<Error> find_conflict(const Input& given) const;

  /// The scenario's flags, those of them that others share filled in.
  [[nodiscard]] ScenarioFlags of_scenario() const;

  /// Beside what is given: the machine's profile, and the size of a traffic matrix of bytes where no other is named.
  /// Errors: invalid_input, naming the flag.
  [[nodiscard]] Result<Prediction> resolve(const Input& given) const;

  /// The collective on this topology. Errors: invalid_input when none is named, or what is wrong with it.
  [[nodiscard]] Result<Collective> resolve_collective(const Topology& topology) const;

  /// -a, or what the verb takes without it: under a profile NCCL's and the best. Errors: invalid_input.
  [[nodiscard]] Result<std::vector<std::string>> resolve_algorithms(bool has_profile = false) const;

  /// Whether the plan that was given can be simulated with these flags. Requires: an input with a schedule.
  [[nodiscard]] OrStop<void> check_plan(const Input& given) const;

 private:
  [[nodiscard]] Result<std::vector<Bytes>> resolve_sizes(const Input& given, ElementType element) const;
  [[nodiscard]] Mode mode_of_scenario() const;
  [[nodiscard]] Mode mode_of_topology() const;
  [[nodiscard]] Mode mode_of_plan() const;

  const CLI::App* command_ = nullptr;
};

}  // namespace espalier::cli
