#pragma once

// Tested by: tests/unit/cli/calibration/profile_calibration_test.cpp

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/flags/condition_flags.h"
#include "forecast/software.h"

namespace espalier::cli {

/// --profile: what software adds to the links (docs/profiles.md).
struct ProfileFlags {
  std::string name;
  std::string version;  ///< --nccl-version: without what came later.
  std::string paths;    ///< --paths: "software" or "any".

  void add_to(CLI::App& command);
  /// --profile and --nccl-version alone, for what takes no paths.
  void add_version_to(CLI::App& command);

  /// The profile, of the machine where none was named; null for "ideal" and where neither names one. The others'
  /// --protocol is the profile's then, and what else a profile says itself is refused beside it.
  /// Errors: invalid_input when there is no such profile, naming those there are, or when its file is wrong.
  [[nodiscard]] Result<std::shared_ptr<const forecast::Software>> resolve(const ConditionFlags& conditions,
                                                                          const std::string& of_machine) const;
};

}  // namespace espalier::cli
