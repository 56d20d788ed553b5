#include "topology/import/lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace espalier {

std::vector<Word> TextLine::words() const {
  std::vector<Word> words;
  constexpr std::string_view blanks = " \t";
  for (std::size_t at = text.find_first_not_of(blanks); at != std::string_view::npos;) {
    const std::size_t end = std::min(text.find_first_of(blanks, at), text.size());
    words.push_back({text.substr(at, end - at), static_cast<int>(at) + 1});
    at = text.find_first_not_of(blanks, end);
  }
  return words;
}

std::vector<TextLine> lines_of(std::string_view text) {
  std::vector<TextLine> lines;
  int number = 1;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    if (line.ends_with('\r')) line.remove_suffix(1);
    lines.push_back({line, number++});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

std::string with_plain_blanks(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_unbreakable = text.substr(i, 2) == "\xc2\xa0";
    plain += is_unbreakable ? ' ' : text[i];
    i += is_unbreakable ? 1 : 0;
  }
  return plain;
}

std::string without_escapes(std::string_view text) {
  std::string plain;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\x1b' || i + 1 >= text.size() || text[i + 1] != '[') {
      plain += text[i];
      continue;
    }
    i += 2;
    while (i < text.size() && (text[i] < '@' || text[i] > '~')) ++i;
  }
  return plain;
}

namespace {
constexpr std::size_t longest_label = 200;
}  // namespace

std::string_view without_stream_tag(std::string_view line) {
  for (const std::string_view tag : {"]<stdout>:", "]<stderr>:"}) {
    const std::size_t at = line.substr(0, longest_label).find(tag);
    if (at != std::string_view::npos) return line.substr(at + tag.size());
  }
  return line;
}

std::string_view without_label(std::string_view line) {
  if (const std::string_view rest = without_stream_tag(line); rest.size() < line.size()) return rest;
  const std::size_t first = line.find_first_not_of(" \t");
  if (first == std::string_view::npos || line[first] != '[') return line;
  const std::size_t end = line.substr(0, longest_label).find(']', first);
  if (end == std::string_view::npos) return line;
  line.remove_prefix(end + 1);
  if (line.starts_with(':')) line.remove_prefix(1);
  return line;
}

std::optional<double> decimal_number(std::string_view word) {
  std::string plain(word.substr(0, word.find_first_not_of("0123456789.,")));
  if (const std::size_t comma = plain.find(','); comma != std::string::npos) plain[comma] = '.';
  double value = 0;
  const auto parsed = std::from_chars(plain.data(), plain.data() + plain.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != plain.data() + plain.size()) return std::nullopt;
  return value;
}

std::string listed(const std::vector<std::string>& names) {
  constexpr std::size_t most = 4;
  const std::size_t shown = names.size() > most ? most - 1 : names.size();
  std::string text;
  for (std::size_t i = 0; i < shown; ++i) {
    const bool is_last = i + 1 == names.size();
    text += (i == 0 ? "" : is_last ? " and " : ", ") + names[i];
  }
  if (shown < names.size()) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

tl::unexpected<Error> fail_at(const std::string& file, int line, int column, const std::string& message,
                              const std::string& help) {
  return fail(ErrorCode::invalid_input, fmt::format("{}:{}:{}: {}", file, line, column, message), help);
}

std::optional<std::int64_t> whole_number(std::string_view digits) {
  constexpr std::size_t max_digits = 18;
  if (digits.empty() || digits.size() > max_digits) return std::nullopt;
  std::int64_t value = 0;
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || value < 0) return std::nullopt;
  return value;
}

std::optional<std::int64_t> number_behind(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return whole_number(text.substr(prefix.size()));
}

std::string cited(std::string_view text) {
  constexpr std::size_t longest = 60;
  return fmt::format("'{}'", text.substr(0, longest));
}

}  // namespace espalier
