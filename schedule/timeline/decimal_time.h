#pragma once

// Tested by: tests/unit/schedule/timeline/decimal_time_test.cpp

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/units.h"

namespace espalier {

/// A time as decimal microseconds, exact: "1", "0.5", "-12.000001".
std::string format_microseconds(Picoseconds time);

/// The same text, written to `place`; gives its end. Requires: room for `longest_microseconds` letters.
char* put_microseconds(char* place, Picoseconds time);
inline constexpr std::size_t longest_microseconds = 21;  // "-9223372036854.775808"

/// The inverse, for any JSON number ("2e-06"); nothing when it is not a whole number of picoseconds below 2^63.
std::optional<Picoseconds> parse_microseconds(std::string_view text);

}  // namespace espalier
