#pragma once

// Tested by: tests/unit/topology/yaml/read_topology_test.cpp

#include <filesystem>
#include <string>
#include <string_view>
#include <tl/expected.hpp>

#include "topology/yaml/findings.h"

namespace espalier {

/// The text of a file. Errors: cannot_read, file_too_large (found before anything is read).
tl::expected<std::string, Problem> load_text(const std::filesystem::path& path);

/// Where a text stops being UTF-8 without control characters, and why.
struct BadText {
  Mark mark;
  Problem problem;
};

/// Errors: file_too_large, not_text. `mark.source` of the result is zero.
tl::expected<void, BadText> check_text(std::string_view text);

}  // namespace espalier
