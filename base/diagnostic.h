#pragma once

// Tested by: tests/unit/base/diagnostic_test.cpp

#include <string>
#include <vector>

namespace espalier {

enum class Severity { warning, error };

/// A place in a text file. Lines and columns count from 1, columns in bytes; line 0 means the file as a whole.
struct Place {
  std::string file;
  int line = 0;
  int column = 0;
};

/// One finding about an input: a stable code, where it is, what is wrong and what to write instead.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;  ///< Stable, such as "T012"; listed in docs/.
  Place place;
  std::string excerpt;  ///< The offending line of the file, without its newline; empty when there is none.
  int width = 1;        ///< How many columns from `place.column` on are marked.
  std::string message;  ///< The reason, one sentence without a full stop.
  std::string help;     ///< What to write instead; may be empty.
};

/// True when any of them is an error.
bool has_errors(const std::vector<Diagnostic>& diagnostics);

/// The text shown to a user: code, reason, place, the line with a marker under it, help. Ends in a newline.
/// `colour` adds ANSI colours.
std::string render(const Diagnostic& diagnostic, bool colour);

}  // namespace espalier
