#include "base/parse_units.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>

namespace espalier {
namespace {

/// A decimal number as written: digits x 10^-decimals.
struct Decimal {
  unsigned __int128 digits = 0;
  int decimals = 0;
};

struct NumberAndUnit {
  Decimal number;
  std::string_view unit;
};

constexpr int max_digits = 24;  // 10^24 times the largest unit still fits 128 bits.

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

/// Splits "12.5 GB/s" into number and unit. Nothing when there is no plain decimal number in front.
std::optional<NumberAndUnit> split(std::string_view text) {
  text = trim(text);
  Decimal number;
  std::size_t i = 0;
  int digit_count = 0;
  bool point = false;
  for (; i < text.size(); ++i) {
    if (text[i] == '.' && !point) {
      point = true;
      continue;
    }
    if (!is_digit(text[i])) break;
    if (number.digits > 0 && ++digit_count > max_digits) return std::nullopt;
    number.digits = number.digits * 10 + static_cast<unsigned>(text[i] - '0');
    if (point && ++number.decimals > max_digits) return std::nullopt;
  }
  if (i == 0 || (point && i == 1) || text[i - 1] == '.') return std::nullopt;
  while (number.decimals > 0 && number.digits % 10 == 0) {
    number.digits /= 10;
    --number.decimals;
  }
  return NumberAndUnit{number, trim(text.substr(i))};
}

enum class Scaled { exact, fraction, overflow };

/// number x multiplier / divisor as a whole number.
Scaled scale(const Decimal& number, std::int64_t multiplier, std::int64_t divisor, std::int64_t& result) {
  unsigned __int128 denominator = static_cast<unsigned __int128>(divisor);
  for (int i = 0; i < number.decimals; ++i) denominator *= 10;
  unsigned __int128 numerator = 0;
  if (__builtin_mul_overflow(number.digits, static_cast<unsigned __int128>(multiplier), &numerator)) {
    return Scaled::overflow;
  }
  if (numerator % denominator != 0) return Scaled::fraction;
  const unsigned __int128 quotient = numerator / denominator;
  if (quotient > static_cast<unsigned __int128>(INT64_MAX)) return Scaled::overflow;
  result = static_cast<std::int64_t>(quotient);
  return Scaled::exact;
}

struct NamedUnit {
  std::string_view name;
  std::int64_t multiplier;
};

constexpr std::int64_t kilo = 1000, mega = 1000 * kilo, giga = 1000 * mega, tera = 1000 * giga;
constexpr std::int64_t kibi = 1024, mebi = 1024 * kibi, gibi = 1024 * mebi, tebi = 1024 * gibi;

constexpr std::array prefixes = {
    NamedUnit{"", 1},     NamedUnit{"k", kilo},  NamedUnit{"K", kilo},  NamedUnit{"M", mega},  NamedUnit{"G", giga},
    NamedUnit{"T", tera}, NamedUnit{"Ki", kibi}, NamedUnit{"Mi", mebi}, NamedUnit{"Gi", gibi}, NamedUnit{"Ti", tebi}};
constexpr std::array time_units = {NamedUnit{"ps", 1},         NamedUnit{"ns", kilo}, NamedUnit{"us", mega},
                                   NamedUnit{"\u00b5s", mega}, NamedUnit{"ms", giga}, NamedUnit{"s", tera}};
constexpr std::array size_units = {
    NamedUnit{"", 1},       NamedUnit{"B", 1},      NamedUnit{"K", kibi},   NamedUnit{"M", mebi},
    NamedUnit{"G", gibi},   NamedUnit{"T", tebi},   NamedUnit{"k", kibi},   NamedUnit{"m", mebi},
    NamedUnit{"g", gibi},   NamedUnit{"Ki", kibi},  NamedUnit{"Mi", mebi},  NamedUnit{"Gi", gibi},
    NamedUnit{"Ti", tebi},  NamedUnit{"KiB", kibi}, NamedUnit{"MiB", mebi}, NamedUnit{"GiB", gibi},
    NamedUnit{"TiB", tebi}, NamedUnit{"kB", kilo},  NamedUnit{"KB", kilo},  NamedUnit{"MB", mega},
    NamedUnit{"GB", giga},  NamedUnit{"TB", tera}};

template <std::size_t n>
std::optional<std::int64_t> multiplier_of(std::string_view name, const std::array<NamedUnit, n>& units) {
  const auto* const found = std::ranges::find(units, name, &NamedUnit::name);
  if (found == units.end()) return std::nullopt;
  return found->multiplier;
}

/// A rate unit such as "Gbit/s": its prefix, and whether it counts bits.
std::optional<std::pair<std::int64_t, bool>> rate_unit(std::string_view unit) {
  struct Suffix {
    std::string_view text;
    bool bits;
  };
  constexpr std::array suffixes = {Suffix{"bit/s", true}, Suffix{"b/s", true}, Suffix{"bps", true},
                                   Suffix{"B/s", false}, Suffix{"Bps", false}};
  for (const Suffix& suffix : suffixes) {
    if (!unit.ends_with(suffix.text)) continue;
    const auto prefix = multiplier_of(unit.substr(0, unit.size() - suffix.text.size()), prefixes);
    if (prefix) return std::pair(*prefix, suffix.bits);
  }
  return std::nullopt;
}

constexpr std::string_view bandwidth_help = "write a number and a unit, such as '25 GB/s' or '200 Gbit/s'";
constexpr std::string_view latency_help = "write a number and a unit, such as '500 ns' or '1.5 us'";
constexpr std::string_view size_help =
    "write a size such as 8, 64K, 1M or 1G (powers of two, as are 1Mi and 1MiB), or 1MB (a million bytes)";

std::string quoted(std::string_view text) {
  constexpr std::size_t longest = 60;
  return "'" + std::string(text.substr(0, longest)) + (text.size() > longest ? "...'" : "'");
}

}  // namespace

Result<Bandwidth> parse_bandwidth(std::string_view text) {
  const auto parts = split(text);
  if (!parts) {
    return fail(ErrorCode::invalid_input, quoted(text) + " is not a bandwidth", std::string(bandwidth_help));
  }
  if (parts->unit.empty()) {
    return fail(ErrorCode::invalid_input, "the bandwidth " + quoted(text) + " has no unit",
                std::string(bandwidth_help));
  }
  const auto unit = rate_unit(parts->unit);
  if (!unit) {
    return fail(ErrorCode::invalid_input, quoted(parts->unit) + " is not a unit of bandwidth",
                std::string(bandwidth_help));
  }
  std::int64_t rate = 0;
  switch (scale(parts->number, unit->first, unit->second ? 8 : 1, rate)) {
    case Scaled::fraction:
      return fail(ErrorCode::invalid_input, quoted(text) + " is not a whole number of bytes per second",
                  "write fewer decimals");
    case Scaled::overflow:
      return fail(ErrorCode::too_large, quoted(text) + " is past the largest bandwidth (9e18 bytes per second)");
    case Scaled::exact: break;
  }
  if (rate == 0) {
    return fail(ErrorCode::invalid_input, "a bandwidth must be above zero", "leave out a link that carries nothing");
  }
  return Bandwidth{rate};
}

namespace {

Result<Picoseconds> parse_time(std::string_view text, Picoseconds most, std::string_view max_text) {
  const auto parts = split(text);
  if (!parts) return fail(ErrorCode::invalid_input, quoted(text) + " is not a time", std::string(latency_help));
  if (parts->unit.empty()) {
    return fail(ErrorCode::invalid_input, "the time " + quoted(text) + " has no unit", std::string(latency_help));
  }
  const auto unit = multiplier_of(parts->unit, time_units);
  if (!unit) {
    return fail(ErrorCode::invalid_input, quoted(parts->unit) + " is not a unit of time", std::string(latency_help));
  }
  std::int64_t time = 0;
  switch (scale(parts->number, *unit, 1, time)) {
    case Scaled::fraction:
      return fail(ErrorCode::invalid_input, quoted(text) + " is not a whole number of picoseconds",
                  "write fewer decimals");
    case Scaled::overflow: time = INT64_MAX; break;
    case Scaled::exact: break;
  }
  if (Picoseconds{time} <= most) return Picoseconds{time};
  return fail(ErrorCode::too_large, quoted(text) + " is past the longest time here (" + std::string(max_text) + ")",
              "check the unit: ps, ns, us, ms or s");
}

}  // namespace

Result<Picoseconds> parse_latency(std::string_view text) { return parse_time(text, max_latency, "1 hour"); }

Result<Picoseconds> parse_duration(std::string_view text) { return parse_time(text, max_duration, "26 days"); }

Result<Bytes> parse_size(std::string_view text) {
  const auto parts = split(text);
  if (!parts) return fail(ErrorCode::invalid_input, quoted(text) + " is not a size", std::string(size_help));
  const auto unit = multiplier_of(parts->unit, size_units);
  if (!unit) {
    return fail(ErrorCode::invalid_input, quoted(parts->unit) + " is not a unit of size", std::string(size_help));
  }
  std::int64_t size = 0;
  const Scaled scaled = scale(parts->number, *unit, 1, size);
  if (scaled == Scaled::fraction) {
    return fail(ErrorCode::invalid_input, quoted(text) + " is not a whole number of bytes", std::string(size_help));
  }
  if (scaled == Scaled::overflow || Bytes{size} > max_message_size) {
    return fail(ErrorCode::too_large, quoted(text) + " is past the largest message size (1 PiB)");
  }
  return Bytes{size};
}

Result<std::int32_t> parse_part(std::string_view text) {
  constexpr std::int64_t million = 1'000'000, ten_thousand = 10'000;
  const std::string help = "write 2% or 0.02, with at most six decimals of the part";
  const auto parts = split(text);
  const bool in_percent = parts && parts->unit == "%";
  if (!parts || !(in_percent || parts->unit.empty())) {
    return fail(ErrorCode::invalid_input, quoted(text) + " is no part: neither a percentage nor a number up to 1",
                help);
  }
  std::int64_t part = 0;
  const Scaled scaled = scale(parts->number, in_percent ? ten_thousand : million, 1, part);
  if (scaled == Scaled::fraction) {
    return fail(ErrorCode::invalid_input, quoted(text) + " is finer than a millionth", help);
  }
  if (scaled == Scaled::overflow || part > million) {
    return fail(ErrorCode::invalid_input, quoted(text) + " is more than the whole", help);
  }
  return static_cast<std::int32_t>(part);
}

}  // namespace espalier
