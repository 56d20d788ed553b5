#include "base/diagnostic.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace espalier {
namespace {

constexpr std::size_t longest_shown_line = 160;

std::string paint(std::string_view text, std::string_view ansi, bool colour) {
  return colour ? fmt::format("\x1b[{}m{}\x1b[0m", ansi, text) : std::string(text);
}

/// The part of the excerpt around the marked column that is shown, with tabs and control characters as blanks.
struct ShownLine {
  std::string text;
  std::size_t marker = 0;  ///< Characters before the marked ones.
  std::size_t width = 1;   ///< Marked characters.
};

bool continues_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) == 0x80U; }

std::size_t count_characters(std::string_view text) {
  return text.size() - static_cast<std::size_t>(std::ranges::count_if(text, continues_character));
}

ShownLine shown_line(const Diagnostic& diagnostic) {
  const std::string_view line = diagnostic.excerpt;
  const auto column = static_cast<std::size_t>(std::max(diagnostic.place.column, 1)) - 1;
  std::size_t begin = column > longest_shown_line - 40 ? column - (longest_shown_line - 40) : 0;
  begin = std::min(begin, line.size());
  std::size_t end = std::min(begin + longest_shown_line, line.size());
  while (begin < line.size() && continues_character(line[begin])) ++begin;
  while (end < line.size() && continues_character(line[end])) ++end;
  ShownLine shown;
  const std::size_t marked = std::clamp(column, begin, end);
  shown.marker = count_characters(line.substr(begin, marked - begin));
  shown.width = std::max<std::size_t>(
      1, count_characters(line.substr(marked, std::min(end - marked, static_cast<std::size_t>(diagnostic.width)))));
  shown.text = printable_excerpt(line.substr(begin, end - begin));
  return shown;
}

}  // namespace

bool has_errors(const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics, [](const Diagnostic& d) { return d.severity == Severity::error; });
}

std::string render(const Diagnostic& diagnostic, bool colour) {
  const bool is_error = diagnostic.severity == Severity::error;
  const std::string label = fmt::format("{}[{}]", is_error ? "error" : "warning", diagnostic.code);
  std::string text =
      paint(label, is_error ? "1;31" : "1;33", colour) + ": " + printable_line(diagnostic.message) + "\n";
  const Place& place = diagnostic.place;
  if (place.line > 0) {
    text += fmt::format("  --> {}:{}:{}\n", printable_line(place.file), place.line, place.column);
  } else if (!place.file.empty()) {
    text += fmt::format("  --> {}\n", printable_line(place.file));
  }
  const std::string number = std::to_string(place.line);
  const std::string margin(number.size(), ' ');
  if (place.line > 0 && !diagnostic.excerpt.empty()) {
    const ShownLine line = shown_line(diagnostic);
    const std::string marker(line.width, '^');
    text += fmt::format(" {} |\n {} | {}\n {} | {}{}\n", margin, number, line.text, margin,
                        std::string(line.marker, ' '), paint(marker, is_error ? "31" : "33", colour));
  }
  if (!diagnostic.help.empty()) text += fmt::format(" {} = help: {}\n", margin, printable_line(diagnostic.help));
  return text;
}

}  // namespace espalier
