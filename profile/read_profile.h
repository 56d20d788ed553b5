#pragma once

// Tested by: tests/unit/profile/read_profile_test.cpp

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "profile/profile.h"

namespace espalier::profile {

/// A profile, or what is wrong with its file; never both.
struct ProfileReading {
  std::optional<Profile> profile;
  std::vector<Diagnostic> diagnostics;
};

/// Reads the YAML form (docs/profiles.md). Whatever is wrong is in the diagnostics, with line and column.
ProfileReading read_profile_file(const std::filesystem::path& path);
ProfileReading read_profile_text(std::string_view text, const std::string& name_for_messages);

}  // namespace espalier::profile
