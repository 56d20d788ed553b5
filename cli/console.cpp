#include "cli/console.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "base/check.h"

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
  std::fputs(render(diagnostic, colour).c_str(), stderr);
}

}  // namespace

void Console::print(std::string_view text) const { std::fwrite(text.data(), 1, text.size(), stdout); }

void Console::show(const std::vector<Diagnostic>& diagnostics) const {
  for (const Diagnostic& diagnostic : diagnostics) {
    if (quiet && diagnostic.severity == Severity::warning) continue;
    std::fputs(render(diagnostic, colours_errors()).c_str(), stderr);
  }
}

void Console::warn(std::string_view text) const {
  if (!quiet) fmt::print(stderr, "{}: {}\n", colours_errors() ? "\x1b[1;33mwarning\x1b[0m" : "warning", text);
}

void Console::note(std::string_view text) const {
  if (!quiet) fmt::print(stderr, "{}\n", text);
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

bool Console::draws_progress() const { return !quiet && !is_set("CI") && isatty(STDERR_FILENO) != 0; }

}  // namespace espalier::cli
