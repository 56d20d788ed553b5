#pragma once

#include <span>
#include <string>
#include <string_view>

namespace espalier {

/// "did you mean 'bandwidth'?" when a known name is near enough to what was written, else "known are a, b, c".
std::string suggest(std::string_view written, std::span<const std::string_view> known);

}  // namespace espalier
