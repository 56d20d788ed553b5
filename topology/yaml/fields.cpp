#include "topology/yaml/fields.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/parse_units.h"
#include "base/suggest.h"
#include "topology/yaml/read_codes.h"

namespace espalier {

namespace {

struct Form {
  std::string_view key;
  std::string_view what;
  std::string_view use;
};

constexpr std::array forms = {
    Form{"espalier", "a topology", "give it as the machine: espalier simulate FILE COLLECTIVE"},
    Form{"espalier_scenario", "a scenario", "give it with --scenario: espalier simulate --scenario FILE"},
    Form{"espalier_profile", "a profile", "give it with --profile FILE, beside a machine"}};

}  // namespace

bool is_of_another_form(Value root, std::string_view key, Findings& findings) {
  if (!root.is_map() || root.find(key)) return false;
  const auto other = std::ranges::find_if(forms, [&](const Form& form) { return bool(root.find(form.key)); });
  if (other == forms.end()) return false;
  const auto asked = std::ranges::find(forms, key, &Form::key);
  findings.error(root.mark(),
                 {read_codes::another_form, fmt::format("this is {}, and {} is asked for", other->what, asked->what),
                  std::string(other->use)});
  return true;
}

Fields::Fields(Value map, std::string_view what, std::span<const std::string_view> known,
               const Environment& environment, Findings& findings)
    : map_(map), what_(what), environment_(environment), findings_(findings) {
  if (!map.is_map()) {
    error(map.mark(), {read_codes::wrong_type, fmt::format("{} must be a map, not {}", what, describe(map.kind())),
                       "write keys and values, such as {key: value}"});
    return;
  }
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::string_view key = map.key(i).text();
    if (!map.key(i).is_scalar() || std::ranges::find(known, key) != known.end()) continue;
    const bool is_merge = key == "<<";
    error(map.key(i).mark(),
          {read_codes::unknown_key, fmt::format("{} has no key '{}'", what, key.substr(0, 60)),
           is_merge ? "merge keys are not read; give links a 'class', or groups a 'count'" : suggest(key, known)});
  }
}

Mark Fields::mark_of(std::string_view key) const {
  const Value value = find(key);
  return value ? value.mark() : map_.mark();
}

std::optional<std::string> read_text(Value value, std::string_view what, const Environment& environment,
                                     Findings& findings) {
  if (!value.is_scalar()) {
    findings.error(value.mark(),
                   {read_codes::wrong_type, fmt::format("{} must be a text, not {}", what, describe(value.kind())),
                    value.is_list() ? "put a name with brackets in quotes: \"gpu[0-7]\"" : "write one word or number"});
    return std::nullopt;
  }
  if (value.text().find('$') == std::string_view::npos) return std::string(value.text());
  auto text = substitute(value.text(), environment);
  if (!text) {
    findings.error(value.mark(), text.error());
    return std::nullopt;
  }
  return *std::move(text);
}

std::optional<std::string> Fields::text(std::string_view key) const {
  const Value value = find(key);
  if (!value) return std::nullopt;
  return read_text(value, fmt::format("'{}'", key), environment_, findings_);
}

std::optional<bool> Fields::boolean(std::string_view key) const {
  const auto written = text(key);
  if (!written) return std::nullopt;
  if (*written == "true" || *written == "True" || *written == "TRUE") return true;
  if (*written == "false" || *written == "False" || *written == "FALSE") return false;
  error(mark_of(key),
        {read_codes::bad_boolean, fmt::format("'{}' is neither true nor false: '{}'", key, written->substr(0, 60)),
         "write true or false"});
  return std::nullopt;
}

std::optional<std::int64_t> Fields::integer(std::string_view key, std::int64_t low, std::int64_t high) const {
  const auto written = text(key);
  if (!written) return std::nullopt;
  std::int64_t value = 0;
  const char* const end = written->data() + written->size();
  const auto [parsed, failed] = std::from_chars(written->data(), end, value);
  if (failed == std::errc() && parsed == end && value >= low && value <= high) return value;
  error(mark_of(key),
        {read_codes::bad_integer,
         fmt::format("'{}' is not a whole number from {} to {}: '{}'", key, low, high, written->substr(0, 60)),
         fmt::format("write a number such as '{}: {}'", key, std::max<std::int64_t>(low, 1))});
  return std::nullopt;
}

std::optional<Bandwidth> Fields::bandwidth(std::string_view key) const {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto parsed = parse_bandwidth(*written);
  if (parsed) return *parsed;
  error(mark_of(key), {read_codes::bad_bandwidth, parsed.error().message, parsed.error().help});
  return std::nullopt;
}

std::optional<Picoseconds> Fields::latency(std::string_view key) const { return time(key, parse_latency); }

std::optional<Picoseconds> Fields::duration(std::string_view key) const { return time(key, parse_duration); }

std::optional<Picoseconds> Fields::time(std::string_view key, Result<Picoseconds> (*parse)(std::string_view)) const {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const auto parsed = parse(*written);
  if (parsed) return *parsed;
  error(mark_of(key), {read_codes::bad_time, parsed.error().message, parsed.error().help});
  return std::nullopt;
}

std::optional<std::int32_t> Fields::millionths(std::string_view key) const {
  const auto written = text(key);
  if (!written) return std::nullopt;
  const std::string_view number = *written;
  const std::size_t point = std::min(number.find('.'), number.size());
  const std::string_view whole = number.substr(0, point);
  const std::string_view decimals = number.substr(std::min(point + 1, number.size()));
  const auto all_digits = [](std::string_view digits) {
    return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
  };
  std::int32_t value = -1;
  if ((whole == "0" || whole == "1") && decimals.size() <= 6 && all_digits(decimals) && !number.ends_with('.')) {
    std::string digits(whole);
    digits += decimals;
    digits.append(6 - decimals.size(), '0');
    std::from_chars(digits.data(), digits.data() + digits.size(), value);
  }
  if (value > 0 && value <= 1'000'000) return value;
  error(mark_of(key),
        {read_codes::bad_efficiency, fmt::format("'{}' is not above 0 and at most 1: '{}'", key, number.substr(0, 60)),
         "write the reachable part of the rate with at most six decimals, such as 0.92"});
  return std::nullopt;
}

void Fields::missing(std::string_view key, std::string_view help) const {
  error(map_.mark(), {read_codes::missing_key, fmt::format("{} needs the key '{}'", what_, key), std::string(help)});
}

}  // namespace espalier
