#include "base/printable.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace espalier {
namespace {

/// The next character of a text, or a byte that begins none.
struct Character {
  std::uint32_t code = 0;
  std::size_t length = 1;
  bool is_valid = true;
};

Character next_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text.front());
  if (first < 0x80) return {first, 1, true};
  const std::size_t length = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  const Character invalid{first, 1, false};
  if (first < 0xC2 || first > 0xF4 || text.size() < length) return invalid;
  std::uint32_t code = first & (0x7FU >> length);
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xC0U) != 0x80U) return invalid;
    code = (code << 6U) | (byte & 0x3FU);
  }
  constexpr std::uint32_t first_of_three = 0x800, first_of_four = 0x10000, last = 0x10FFFF;
  const bool is_overlong = (length == 3 && code < first_of_three) || (length == 4 && code < first_of_four);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  if (is_overlong || is_surrogate || code > last) return invalid;
  return {code, length, true};
}

bool is_unsafe(const Character& character) {
  const std::uint32_t code = character.code;
  if (!character.is_valid) return true;
  const bool is_control = code < 0x20 || (code >= 0x7F && code <= 0x9F);
  const bool is_direction = code == 0x061C || code == 0x200E || code == 0x200F || (code >= 0x202A && code <= 0x202E) ||
                            (code >= 0x2066 && code <= 0x2069);
  const bool is_separator = code == 0x2028 || code == 0x2029;
  return is_control || is_direction || is_separator;
}

std::string escape_of(const Character& character) {
  if (character.is_valid && character.code == '\n') return "\\n";
  if (character.is_valid && character.code == '\t') return "\\t";
  const bool is_byte = !character.is_valid || character.code < 0x80;
  return is_byte ? fmt::format("\\x{:02x}", character.code) : fmt::format("\\u{:04x}", character.code);
}

/// The text with what `replace` gives for every unsafe character.
template <class Replace>
std::string replace_unsafe(std::string_view text, bool keeps_layout, const Replace& replace) {
  std::string shown;
  shown.reserve(text.size());
  while (!text.empty()) {
    const Character character = next_character(text);
    const bool is_layout = keeps_layout && (character.code == '\n' || character.code == '\t');
    if (is_unsafe(character) && !is_layout) {
      shown += replace(character);
    } else {
      shown += text.substr(0, character.length);
    }
    text.remove_prefix(character.length);
  }
  return shown;
}

}  // namespace

std::string printable(std::string_view text) { return replace_unsafe(text, true, escape_of); }

std::string printable_line(std::string_view text) { return replace_unsafe(text, false, escape_of); }

std::string printable_excerpt(std::string_view text) {
  return replace_unsafe(text, false, [](const Character&) { return std::string(" "); });
}

}  // namespace espalier
