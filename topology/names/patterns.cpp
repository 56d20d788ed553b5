#include "topology/names/patterns.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include "base/check.h"
#include "topology/names/letters.h"
#include "topology/yaml/read_codes.h"
#include "topology/yaml/read_limits.h"

namespace espalier {
namespace {

constexpr std::size_t max_digits = 9;
constexpr std::string_view range_help =
    "write numbers and ranges such as '[0-7]' or '[0,2,4-7]', or '[*]' for all there are";

tl::unexpected<Problem> refuse(std::string_view whole, std::string_view why) {
  return tl::unexpected(
      Problem{read_codes::bad_range, fmt::format("in '{}' {}", whole.substr(0, 80), why), std::string(range_help)});
}

std::optional<std::int64_t> parse_number(std::string_view text) {
  if (text.empty() || text.size() > max_digits || !std::ranges::all_of(text, is_digit)) return std::nullopt;
  std::int64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b) {
  std::uint64_t product = 0;
  return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

}  // namespace

std::uint64_t NamePattern::Range::size() const {
  return static_cast<std::uint64_t>(first <= last ? last - first : first - last) + 1;
}

std::string NamePattern::Range::name(std::uint64_t i) const {
  const auto step = static_cast<std::int64_t>(i);
  return fmt::format("{:0{}}", first <= last ? first + step : first - step, width);
}

std::uint64_t NamePattern::Part::size() const {
  std::uint64_t size = 0;
  for (const Range& range : ranges) size += range.size();
  return size;
}

std::string NamePattern::Part::name(std::uint64_t i) const {
  for (const Range& range : ranges) {
    if (i < range.size()) return range.name(i);
    i -= range.size();
  }
  ESPALIER_CHECK(false, "an index past the end of a range");
}

bool NamePattern::Part::contains(std::string_view digits) const {
  if (ranges.empty()) return true;
  const auto value = parse_number(digits);
  if (!value) return false;
  return std::ranges::any_of(ranges, [&](const Range& range) {
    const auto [low, high] = std::minmax(range.first, range.last);
    return *value >= low && *value <= high && fmt::format("{:0{}}", *value, range.width) == digits;
  });
}

tl::expected<NamePattern::Part, Problem> NamePattern::parse_bracket(std::string_view whole, std::string_view inside) {
  Part part;
  if (inside == "*") return part;
  while (true) {
    const std::size_t comma = inside.find(',');
    std::string_view item = inside.substr(0, comma);
    while (item.starts_with(' ')) item.remove_prefix(1);
    while (item.ends_with(' ')) item.remove_suffix(1);
    const std::size_t dash = item.find('-');
    const std::string_view low = item.substr(0, dash);
    const auto first = parse_number(low);
    const auto last = dash == std::string_view::npos ? first : parse_number(item.substr(dash + 1));
    if (!first || !last) return refuse(whole, fmt::format("'[{}]' is not a range", inside.substr(0, 40)));
    const bool padded = low.size() > 1 && low.front() == '0';
    part.ranges.push_back({*first, *last, padded ? static_cast<int>(low.size()) : 1});
    if (part.size() > read_limits::range) {
      return refuse(whole,
                    fmt::format("'[{}]' stands for more than {} numbers", inside.substr(0, 40), read_limits::range));
    }
    if (comma == std::string_view::npos) return part;
    inside.remove_prefix(comma + 1);
  }
}

tl::expected<NamePattern, Problem> NamePattern::parse(std::string_view text) {
  if (text.size() > read_limits::name_bytes) {
    return refuse(text, fmt::format("there are more than {} bytes", read_limits::name_bytes));
  }
  NamePattern pattern;
  std::string_view rest = text;
  while (true) {
    const std::size_t open = rest.find_first_of("[]");
    if (open == std::string_view::npos) break;
    if (rest[open] == ']') return refuse(text, "a ']' stands without its '['");
    const std::size_t close = rest.find(']', open);
    if (close == std::string_view::npos) return refuse(text, "a ']' is missing");
    auto part = parse_bracket(text, rest.substr(open + 1, close - open - 1));
    if (!part) return tl::unexpected(part.error());
    part->before = rest.substr(0, open);
    pattern.has_star_ = pattern.has_star_ || part->ranges.empty();
    pattern.parts_.push_back(std::move(*part));
    rest.remove_prefix(close + 1);
  }
  pattern.tail_ = rest;
  if (!pattern.has_star_ && pattern.size() > read_limits::range) {
    return refuse(text, fmt::format("the ranges stand for more than {} names", read_limits::range));
  }
  return pattern;
}

std::uint64_t NamePattern::size() const {
  std::uint64_t size = 1;
  for (const Part& part : parts_) size = saturating_product(size, part.size());
  return size;
}

std::vector<std::string> NamePattern::names() const {
  ESPALIER_CHECK(!has_star_, "a star stands for no names by itself");
  std::vector<std::string> names{""};
  for (const Part& part : parts_) {
    std::vector<std::string> longer;
    longer.reserve(names.size() * part.size());
    for (const std::string& name : names) {
      for (std::uint64_t i = 0; i < part.size(); ++i) longer.push_back(name + part.before + part.name(i));
    }
    names = std::move(longer);
  }
  for (std::string& name : names) name += tail_;
  return names;
}

std::string NamePattern::shape_of(std::string_view name) {
  std::string shape;
  for (std::size_t i = 0; i < name.size(); ++i) {
    if (!is_digit(name[i])) shape += name[i];
    if (is_digit(name[i]) && (i == 0 || !is_digit(name[i - 1]))) shape += '#';
  }
  return shape;
}

std::string NamePattern::shape() const {
  std::string text;
  for (const Part& part : parts_) text += part.before + "0";
  return shape_of(text + tail_);
}

bool NamePattern::matches(std::string_view name) const {
  for (const Part& part : parts_) {
    if (!name.starts_with(part.before)) return false;
    name.remove_prefix(part.before.size());
    const auto* const end = std::ranges::find_if_not(name, is_digit);
    const auto digits = static_cast<std::size_t>(end - name.begin());
    if (digits == 0 || !part.contains(name.substr(0, digits))) return false;
    name.remove_prefix(digits);
  }
  return name == tail_;
}

}  // namespace espalier
