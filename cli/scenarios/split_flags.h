#pragma once

// Tested by: tests/options/options_test.py

#include <CLI/CLI.hpp>
#include <array>
#include <string>
#include <vector>

#include "base/result.h"
#include "scenario/workload/training.h"

namespace espalier::cli {

/// --split: which parallelisms of a training step are tried.
struct SplitFlags {
  std::vector<std::string> written;  ///< "all", or NAME=VALUES of the parts of a Parallelism.

  void add_to(CLI::App& command);
  [[nodiscard]] bool are_given() const { return !written.empty(); }
};

/// Parallelisms of a model: those that it can be spread by, and those that it cannot, with one reason.
struct Splits {
  std::vector<scenario::Parallelism> possible;
  std::size_t refused = 0;
  std::string why;  ///< Of the first that was refused.
};

/// Errors: invalid_input for what is not NAME=VALUES, and where nothing is left.
Result<Splits> list_splits(const SplitFlags& flags, const scenario::TrainingModel& model);

/// "tensor 2, pipeline 4, data 4, expert 1".
std::string describe(const scenario::Parallelism& parallelism);

}  // namespace espalier::cli
