#pragma once

// Tested by: tests/fuzz/fuzz_flags.cpp

#include <string_view>

#include "base/result.h"
#include "base/units.h"

namespace espalier::scenario {

/// Floating point operations per second; exact.
struct FlopRate {
  std::int64_t per_second = 0;
  friend constexpr auto operator<=>(const FlopRate&, const FlopRate&) = default;
};

/// "989 TFLOP/s", "1.5 PFLOP/s", "312 TFLOPS": prefixes k M G T P, exact.
/// Errors: invalid_input, with what to write instead.
Result<FlopRate> parse_flop_rate(std::string_view text);

}  // namespace espalier::scenario
