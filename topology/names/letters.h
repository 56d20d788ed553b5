#pragma once

// Tested by: tests/unit/topology/analysis/describe_test.cpp

namespace espalier {

/// ASCII, whatever the locale.
constexpr bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

}  // namespace espalier
