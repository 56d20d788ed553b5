#include "schedule/timeline/decimal_time.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace espalier {
namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();

/// The number behind "e", cut off where it decides anyway.
std::int64_t parse_exponent(std::string_view digits) {
  const bool negative = digits.starts_with('-');
  if (negative || digits.starts_with('+')) digits.remove_prefix(1);
  constexpr std::int64_t enough = 1000;
  std::int64_t value = 0;
  for (const char digit : digits) value = std::min(value * 10 + (digit - '0'), enough);
  return negative ? -value : value;
}

/// value x 10^exponent, when that is whole and fits.
std::optional<std::int64_t> scale(std::int64_t value, std::int64_t exponent) {
  if (value == 0) return 0;
  for (; exponent < 0; ++exponent) {
    if (value % 10 != 0) return std::nullopt;
    value /= 10;
  }
  for (; exponent > 0; --exponent) {
    if (value > largest / 10) return std::nullopt;
    value *= 10;
  }
  return value;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789+-.eE") == std::string_view::npos;
}

}  // namespace

char* put_microseconds(char* place, Picoseconds time) {
  constexpr std::uint64_t per_microsecond = 1'000'000;
  const auto bits = static_cast<std::uint64_t>(time.count);
  const std::uint64_t magnitude = time.count < 0 ? 0 - bits : bits;
  if (time.count < 0) *place++ = '-';
  place = std::to_chars(place, place + longest_microseconds, magnitude / per_microsecond).ptr;
  std::uint64_t rest = magnitude % per_microsecond;
  if (rest == 0) return place;
  std::size_t digits = 6;
  for (; rest % 10 == 0; rest /= 10) --digits;
  *place++ = '.';
  for (std::size_t i = digits; i-- > 0; rest /= 10) place[i] = static_cast<char>('0' + rest % 10);
  return place + digits;
}

std::string format_microseconds(Picoseconds time) {
  std::array<char, longest_microseconds> text{};
  return {text.data(), put_microseconds(text.data(), time)};
}

std::optional<Picoseconds> parse_microseconds(std::string_view text) {
  if (!is_number(text)) return std::nullopt;
  const bool negative = text.starts_with('-');
  if (negative) text.remove_prefix(1);
  std::int64_t exponent = 6;
  if (const std::size_t mark = text.find_first_of("eE"); mark != std::string_view::npos) {
    exponent += parse_exponent(text.substr(mark + 1));
    text = text.substr(0, mark);
  }
  if (const std::size_t point = text.find('.'); point != std::string_view::npos) {
    while (text.ends_with('0')) text.remove_suffix(1);
    exponent -= static_cast<std::int64_t>(text.size() - point - 1);
  }
  std::int64_t value = 0;
  for (const char c : text) {
    if (c == '.') continue;
    if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, c - '0', &value)) {
      return std::nullopt;
    }
  }
  const std::optional<std::int64_t> scaled = scale(value, exponent);
  if (!scaled) return std::nullopt;
  return Picoseconds{negative ? -*scaled : *scaled};
}

}  // namespace espalier
