#pragma once

// Tested by: tests/unit/base/printable_test.cpp

#include <string>
#include <string_view>

namespace espalier {

/// Text as it may be shown on a terminal: what would steer the terminal or deceive its reader is written as an escape.
/// Control characters (all but tab and line break) become \x1b or \u009b, direction controls \u202e, line separators
/// \u2028, and bytes that are not UTF-8 \xff. All other text stays as it is.
/// Source: Unicode Standard Annex 9 (direction), ECMA-48 (controls), RFC 3629 (UTF-8).
std::string printable(std::string_view text);

/// As `printable`, and without line breaks and tabs, which become \n and \t: a name within a line or a table's cell.
std::string printable_line(std::string_view text);

/// As many columns as the text has characters: what `printable` would escape becomes a blank each.
std::string printable_excerpt(std::string_view text);

}  // namespace espalier
