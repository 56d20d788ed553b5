#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"
#include "cli/exit_code.h"

namespace espalier::cli {

enum class ColourChoice { automatic, always, never };

/// Where the command writes: data to standard output, everything said about it to standard error.
class Console {
 public:
  ColourChoice colour_choice = ColourChoice::automatic;
  bool json = false;   ///< One versioned document on standard output instead of text.
  bool quiet = false;  ///< Neither warnings nor progress.

  /// Writes data.
  void print(std::string_view text) const;

  /// Writes diagnostics to standard error; with `quiet` only errors.
  void show(const std::vector<Diagnostic>& diagnostics) const;
  /// "warning: ..." and "note: ..." on standard error, unless quiet.
  void warn(std::string_view text) const;
  void note(std::string_view text) const;
  /// Shows an error and returns the exit code that belongs to it.
  [[nodiscard]] ExitCode refuse(const Error& error) const;
  /// Shows an error of the command line itself.
  [[nodiscard]] ExitCode refuse_usage(const Error& error) const;

  /// Whether text on standard error may carry colours (NO_COLOR, CLICOLOR_FORCE, TERM=dumb and a terminal decide).
  [[nodiscard]] bool colours_errors() const;
  /// Whether progress may be drawn: standard error is a terminal and nobody asked for quiet.
  [[nodiscard]] bool draws_progress() const;
};

}  // namespace espalier::cli
