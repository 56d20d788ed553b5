#pragma once

// Tested by: tests/unit/profile/read_profile_test.cpp

#include <span>
#include <string>

#include "profile/profile.h"

namespace espalier::profile {

/// The profile as YAML that read_profile_text reads; `comments` are lines that stand before it, without "# ". Times and
/// rates have three and four digits.
std::string profile_yaml(const Profile& profile, std::span<const std::string> comments);

}  // namespace espalier::profile
