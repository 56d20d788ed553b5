#include "base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

namespace espalier {
namespace {

constexpr std::size_t longest_shown_line = 160;

std::string paint(std::string_view text, std::string_view ansi, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", ansi, text) : std::string(text);
}

/// The part of the excerpt around the marked column that is shown, with tabs and control characters as blanks.
struct ShownLine {
  std::string text;
  std::size_t marker = 0;
};

ShownLine shown_line(const Diagnostic& diagnostic) {
  const auto column = static_cast<std::size_t>(std::max(diagnostic.place.column, 1)) - 1;
  const std::size_t begin = column > longest_shown_line - 40 ? column - (longest_shown_line - 40) : 0;
  std::string text = begin < diagnostic.excerpt.size() ? diagnostic.excerpt.substr(begin, longest_shown_line) : "";
  for (char& letter : text) {
    if (static_cast<unsigned char>(letter) < 0x20 || letter == 0x7F) letter = ' ';
  }
  return {text, column - begin};
}

}  // namespace

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics, [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string render(const Diagnostic& diagnostic, bool colour) {
  const bool is_error = diagnostic.severity == Severity::error;
  const std::string label = fmt::format("{}[{}]", is_error ? "error" : "warning", diagnostic.code);
  std::string text = paint(label, is_error ? "1;31" : "1;33", colour) + ": " + diagnostic.message + "\n";
  const Place& place = diagnostic.place;
  if (place.line > 0) {
    text += fmt::format("  --> {}:{}:{}\n", place.file, place.line, place.column);
  } else if (!place.file.empty()) {
    text += fmt::format("  --> {}\n", place.file);
  }
  const std::string number = std::to_string(place.line);
  const std::string margin(number.size(), ' ');
  if (place.line > 0 && !diagnostic.excerpt.empty()) {
    const ShownLine line = shown_line(diagnostic);
    const auto room = static_cast<int>(longest_shown_line - std::min(longest_shown_line - 1, line.marker));
    const std::string marker(static_cast<std::size_t>(std::clamp(diagnostic.width, 1, room)), '^');
    text += fmt::format(" {} |\n {} | {}\n {} | {}{}\n", margin, number, line.text, margin,
                        std::string(line.marker, ' '), paint(marker, is_error ? "31" : "33", colour));
  }
  if (!diagnostic.help.empty()) text += fmt::format(" {} = help: {}\n", margin, diagnostic.help);
  return text;
}

}  // namespace espalier
