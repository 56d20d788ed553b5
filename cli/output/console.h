#pragma once

// Tested by: tests/unit/cli/output/progress_test.cpp

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/diagnostic.h"
#include "base/result.h"
#include "base/units.h"
#include "cli/output/exit_code.h"

namespace espalier::cli {

/// How long work is shown on standard error.
enum class ProgressStyle { none, lines, bar };

enum class ColourChoice { automatic, always, never };

/// Where the command writes: data to standard output, everything said about it to standard error. Nothing throws: what
/// standard output did not take is remembered for the exit code, what standard error did not take is given up.
/// What is printed for people cannot steer their terminal (base/printable.h).
class Console {
 public:
  ColourChoice colour_choice = ColourChoice::automatic;
  bool json = false;   ///< One versioned document on standard output instead of text.
  bool csv = false;    ///< The table alone, as CSV, on standard output instead of text.
  bool quiet = false;  ///< Neither warnings nor progress.
  /// The most bytes of an input, and of what its compressed parts unpack to (--max-input).
  Bytes max_input{std::int64_t{512} << 20U};

  /// Writes text or a JSON document.
  void print(std::string_view text) const;
  /// Writes bytes that are to arrive as they are: printable only where standard output is a terminal.
  void print_bytes(std::string_view bytes) const;
  /// Errors: unavailable when standard output has not taken all that was printed.
  [[nodiscard]] Result<void> check_output() const;

  /// Writes diagnostics to standard error; with `quiet` only errors.
  void show(const std::vector<Diagnostic>& diagnostics) const;
  /// "warning: ..." and "note: ..." on standard error, unless quiet.
  void warn(std::string_view text) const;
  void note(std::string_view text) const;
  /// Writes to standard error as it is: for text that carries colours or moves the cursor.
  static void write_error(std::string_view text);
  /// Shows an error and returns the exit code that belongs to it.
  [[nodiscard]] ExitCode refuse(const Error& error) const;
  /// Shows an error of the command line itself.
  [[nodiscard]] ExitCode refuse_usage(const Error& error) const;

  /// Whether text on standard error may carry colours (NO_COLOR, CLICOLOR_FORCE, TERM=dumb and a terminal decide).
  [[nodiscard]] bool colours_errors() const;
  /// A bar where standard error is a terminal, lines where it is not; none when quiet or where CI is set, whose logs
  /// are to be the same every time.
  [[nodiscard]] ProgressStyle progress_style() const;

 private:
  /// The number of the first error of standard output; copies of a console share it.
  std::shared_ptr<int> output_error_ = std::make_shared<int>(0);
};

}  // namespace espalier::cli
