#pragma once

// Tested by: tests/unit/cli/flags_test.cpp

#include <string>

#include "base/element.h"
#include "base/rational.h"
#include "base/result.h"
#include "base/units.h"
#include "sim/model.h"

namespace espalier::cli {

/// The element type of verbs that ask for none.
inline constexpr ElementType usual_type = ElementType::float32;

/// The value of -s, rounded down to whole elements of the usual type. Errors: invalid_input, naming the flag.
Result<Bytes> parse_message_size(const std::string& text);

/// "1%" or "0.01" in millionths (base/parse_units.h); a bare "1" is neither. Errors: invalid_input, naming the flag.
Result<std::int32_t> parse_part_ppm(const std::string& flag, const std::string& text);

/// "1%" or "0.01" as an exact fraction to a millionth; a bare "1" is neither. Errors: invalid_input, naming the flag,
/// such as "--gap".
Result<Rational> parse_part(const std::string& flag, const std::string& text);

}  // namespace espalier::cli
