#pragma once

// Tested by: tests/unit/base/diagnostic_test.cpp

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace espalier {

/// The known name that a slip of the fingers would turn into what was written; nothing when none is near enough.
std::optional<std::string_view> find_nearest(std::string_view written, std::span<const std::string_view> known);

/// "did you mean 'bandwidth'?" when a known name is near enough to what was written, else "known are a, b, c".
std::string suggest(std::string_view written, std::span<const std::string_view> known);

}  // namespace espalier
