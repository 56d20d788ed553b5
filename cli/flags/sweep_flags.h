#pragma once

// Tested by: tests/fuzz/fuzz_sweep_spec.cpp

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/flags/inputs.h"
#include "cli/jobs/stop.h"
#include "sweep/spec.h"

namespace espalier::cli {

/// All combinations of parameters' values: {"boxes=2", "rails=4"}, ... Errors: invalid_input.
Result<std::vector<std::vector<std::string>>> combine_parameters(const std::vector<std::string>& parameters);

/// What is swept, as flags or a file write it: lists parted by commas, empty where nothing was said.
struct SweepFlags {
  std::vector<std::string> topologies;
  std::vector<std::string> parameters;  ///< NAME=VALUES: all combinations of their values.
  std::string collectives;
  std::string root;
  std::string algorithms;
  std::string type;
  std::string sizes;
  std::string begin, end, factor, step;  ///< Instead of `sizes`, as nccl-tests has them.
  std::string chunks;
  std::string models;
  std::string profiles;  ///< Empty: each machine's own.
  std::string protocols;
  std::string copy_engines;
  std::vector<std::string> matrices;
  std::vector<std::string> without;
  std::vector<std::string> slow;
  std::string failures;
  std::string jitters;
  std::string seeds;
  std::vector<std::string> scenarios;  ///< Files or shipped scenarios, instead of collectives.
  std::vector<std::string> splits;     ///< Of them, as SplitFlags has them; only a file's.
  std::string file;                    ///< A YAML file with the same lists; flags go before it.

  void add_to(CLI::App& command);

  /// Takes from the file what no flag has said. Errors: those of reading it; invalid_input with file:line.
  Result<void> read_file(const Console& console);
  /// As `read_file`, for its text; `file` names it in errors.
  Result<void> read_text(const std::string& text);

  /// What a sweep over scenarios has no use for and the file says; nothing when there is no such value.
  [[nodiscard]] std::optional<Error> find_beside_scenarios() const;

  /// The values with the usual ones where nothing was said; reads the topologies.
  OrStop<sweep::Spec> resolve(const Console& console) const;

 private:
  [[nodiscard]] std::optional<Error> find_idle_list(const sweep::Spec& spec) const;
};

}  // namespace espalier::cli
