#pragma once

#include <string>

#include "base/result.h"

namespace espalier::cli {

/// "1%" as 0.01; `flag` and the `example` stand in messages.
/// Errors: invalid_input for anything but a number from 0% to 100%.
Result<double> parse_percent(const std::string& flag, const std::string& text, const std::string& example);

}  // namespace espalier::cli
