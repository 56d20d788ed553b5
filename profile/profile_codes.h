#pragma once

// Tested by: tests/unit/profile/read_profile_test.cpp

#include <string_view>

namespace espalier::profile::profile_codes {

/// The codes of the profile reader's own errors; it shares those of the topology reader (docs/topology.md) for YAML and
/// values. Each has a row in docs/profiles.md. A code never changes its meaning.
constexpr std::string_view wrong_version = "F001";
constexpr std::string_view no_algorithm = "F002";
constexpr std::string_view bad_size = "F003";
constexpr std::string_view bad_version = "F004";
constexpr std::string_view bad_generation = "F005";
constexpr std::string_view bad_paths = "F006";

}  // namespace espalier::profile::profile_codes
