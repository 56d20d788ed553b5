#include "cli/output/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>

#include "base/check.h"
#include "base/error_text.h"
#include "base/printable.h"
#include "cli/output/write_all.h"

namespace espalier::cli {
namespace {

/// A variable that is set and not empty, as NO_COLOR asks to be read.
bool is_set(const char* variable) {
  const char* value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

std::string_view code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::invalid_input: return "E100";
    case ErrorCode::infeasible: return "E200";
    case ErrorCode::unsupported: return "E300";
    case ErrorCode::too_large: return "E400";
    case ErrorCode::unavailable: return "E500";
  }
  ESPALIER_CHECK(false, "an error code without a number");
}

ExitCode exit_code_of(ErrorCode code) {
  return code == ErrorCode::unsupported ? ExitCode::wrong_usage : ExitCode::check_failed;
}

void show_error(const Error& error, bool colour) {
  Diagnostic diagnostic;
  diagnostic.code = code_of(error.code);
  diagnostic.message = error.message;
  diagnostic.help = error.help;
  Console::write_error(render(diagnostic, colour));
}

}  // namespace

void Console::print(std::string_view text) const {
  const int error = write_all(STDOUT_FILENO, printable(text));
  if (*output_error_ == 0) *output_error_ = error;
}

void Console::print_bytes(std::string_view bytes) const {
  if (isatty(STDOUT_FILENO) != 0) return print(bytes);
  const int error = write_all(STDOUT_FILENO, bytes);
  if (*output_error_ == 0) *output_error_ = error;
}

Result<void> Console::check_output() const {
  if (*output_error_ == 0) return {};
  return fail(ErrorCode::unavailable, "cannot write standard output: " + error_text(*output_error_),
              "what was printed is not complete");
}

void Console::write_error(std::string_view text) { static_cast<void>(write_all(STDERR_FILENO, text)); }

void Console::show(const std::vector<Diagnostic>& diagnostics) const {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (quiet && diagnostic.severity == Severity::warning) continue;
    write_error(render(diagnostic, colours_errors()));
  }
}

void Console::warn(std::string_view text) const {
  if (quiet) return;
  write_error(fmt::format("{}: {}\n", colours_errors() ? "\x1b[1;33mwarning\x1b[0m" : "warning", printable(text)));
}

void Console::note(std::string_view text) const {
  if (!quiet) write_error(printable(text) + "\n");
}

ExitCode Console::refuse(const Error& error) const {
  show_error(error, colours_errors());
  return exit_code_of(error.code);
}

ExitCode Console::refuse_usage(const Error& error) const {
  show_error(error, colours_errors());
  return ExitCode::wrong_usage;
}

bool Console::colours_errors() const {
  if (colour_choice != ColourChoice::automatic) return colour_choice == ColourChoice::always;
  if (is_set("NO_COLOR")) return false;
  if (is_set("CLICOLOR_FORCE")) return true;
  const char* terminal = std::getenv("TERM");
  return isatty(STDERR_FILENO) != 0 && terminal != nullptr && std::string_view(terminal) != "dumb";
}

ProgressStyle Console::progress_style() const {
  if (quiet || is_set("CI")) return ProgressStyle::none;
  return isatty(STDERR_FILENO) != 0 ? ProgressStyle::bar : ProgressStyle::lines;
}

}  // namespace espalier::cli
