#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>

#include "cli/flags/condition_flags.h"
#include "profile/profile.h"

namespace espalier::cli {

/// A profile that was chosen: its values, and how calls are started.
struct ChosenProfile {
  std::string shown;  ///< "nccl-hopper", "nccl-hopper/one-process".
  profile::Profile profile;
  Picoseconds launch;
  std::optional<sim::Protocol> protocol;  ///< --protocol, then the only one.
};

/// --profile: what software adds to the links (docs/profiles.md).
struct ProfileFlags {
  std::string name;

  void add_to(CLI::App& command);

  /// The profile, null for "ideal" and where none was named. The others' --protocol is the profile's then, and what
  /// else a profile says itself is refused beside it.
  /// Errors: invalid_input when there is no such profile, naming those there are, or when its file is wrong.
  [[nodiscard]] Result<std::shared_ptr<const ChosenProfile>> resolve(const ConditionFlags& conditions) const;
};

}  // namespace espalier::cli
