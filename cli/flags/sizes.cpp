#include "cli/flags/sizes.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <span>

#include "base/parse_units.h"
#include "schedule/chunking.h"
#include "sweep/spec_values.h"

namespace espalier::cli {
namespace {

constexpr std::size_t max_sizes = 1000;

tl::unexpected<Error> bad_flag(std::string_view flag, const Error& error) {
  return fail(error.code, std::string(flag) + ": " + error.message, error.help);
}

Result<Bytes> parse_whole_size(std::string_view flag, const std::string& text, ElementType type) {
  const auto size = parse_size(text);
  if (!size) return bad_flag(flag, size.error());
  const std::int64_t element_size = size_of(type);
  return Bytes{size->count / element_size * element_size};
}

/// The next size of the sweep; the end of the sweep when it would pass 1 PiB.
std::int64_t next_size(std::int64_t size, double factor, std::int64_t step) {
  const double grown = step > 0 ? static_cast<double>(size + step) : static_cast<double>(size) * factor;
  if (grown > static_cast<double>(max_message_size.count)) return max_message_size.count + 1;
  return step > 0 ? size + step : static_cast<std::int64_t>(grown);
}

}  // namespace

void SizeFlags::add_to(CLI::App& command) {
  const auto add = [&](const char* flag, std::string& value, const char* help, const std::string& shown) {
    return command.add_option(flag, value, help)->option_text(shown);
  };
  CLI::Option* const from = add("-b,--minbytes", begin, "Smallest size", "SIZE (" + begin + ")");
  CLI::Option* const to = add("-e,--maxbytes", end, "Largest size", "SIZE (" + end + ")");
  CLI::Option* const by = add("-f,--stepfactor", factor, "Factor between sizes", "FACTOR (" + factor + ")");
  CLI::Option* const in_steps = add("-i,--stepbytes", step, "Step between sizes, instead of a factor", "SIZE");
  in_steps->excludes(by);
  add_one_to(command)
      ->description(
          "Exactly these sizes, comma-separated: 8, 64K, 1M or 1G (powers of two, as are 1Mi and 1MiB), 1MB (a "
          "million bytes)")
      ->option_text("SIZES")
      ->excludes(from, to, by, in_steps);
}

CLI::Option* SizeFlags::add_one_to(CLI::App& command) {
  command.add_option("-d,--datatype", type, "Element type: int8, half, bfloat16, float, double, ...")
      ->option_text("TYPE (" + type + ")");
  return command
      .add_option("-s,--size", single,
                  "Exactly this size: 8, 64K, 1M or 1G (powers of two, as are 1Mi and 1MiB), 1MB (a million bytes)")
      ->option_text(single.empty() ? "SIZE" : "SIZE (" + single + ")");
}

Result<std::vector<Bytes>> parse_sizes(const SizeFlags& flags, ElementType type) {
  if (!flags.single.empty()) {
    auto sizes = sweep::parse_size_list(flags.single, size_of(type));
    if (!sizes) return bad_flag("-s", sizes.error());
    std::ranges::sort(*sizes);
    sizes->erase(std::unique(sizes->begin(), sizes->end()), sizes->end());
    return sizes;
  }
  const auto begin = parse_whole_size("-b", flags.begin, type);
  if (!begin) return tl::unexpected(begin.error());
  const auto end = parse_whole_size("-e", flags.end, type);
  if (!end) return tl::unexpected(end.error());
  if (*begin > *end) {
    return fail(ErrorCode::invalid_input, "-b " + flags.begin + " is larger than -e " + flags.end);
  }
  double factor = 0;
  const auto [rest, status] = std::from_chars(flags.factor.data(), flags.factor.data() + flags.factor.size(), factor);
  if (status != std::errc() || *rest != '\0' || !std::isfinite(factor) || factor <= 1.0) {
    return fail(ErrorCode::invalid_input, "-f: '" + flags.factor + "' is not a factor above 1", "write -f 2");
  }
  Bytes step;
  if (!flags.step.empty()) {
    const auto parsed = parse_whole_size("-i", flags.step, type);
    if (!parsed) return tl::unexpected(parsed.error());
    if (parsed->count == 0) return fail(ErrorCode::invalid_input, "-i: a step is at least one element");
    step = *parsed;
  }
  if (begin->count == 0 && step.count == 0 && end->count > 0) {
    return fail(ErrorCode::invalid_input, "-b 0 cannot be multiplied up to -e " + flags.end,
                "use -i, or begin above 0");
  }
  const std::int64_t element_size = size_of(type);
  std::vector<Bytes> sizes;
  for (std::int64_t size = begin->count; size <= end->count;) {
    const Bytes whole{size / element_size * element_size};
    if (sizes.empty() || sizes.back() != whole) sizes.push_back(whole);
    if (sizes.size() > max_sizes) {
      return fail(ErrorCode::invalid_input, "the sweep has more than " + std::to_string(max_sizes) + " sizes",
                  "use a larger -f or -i");
    }
    const std::int64_t next = std::max(next_size(size, factor, step.count), size + 1);
    // The largest size is one of them, wherever the steps before it lead.
    size = size < end->count ? std::min(next, end->count) : next;
  }
  return sizes;
}

Result<Bytes> parse_one_size(const SizeFlags& flags, ElementType type) {
  const auto sizes = parse_sizes(flags, type);
  if (!sizes) return tl::unexpected(sizes.error());
  if (sizes->size() == 1) return sizes->front();
  return fail(ErrorCode::invalid_input, "-s: " + flags.single + " are several sizes", "name one, such as -s 64M");
}

bool names_size(const CLI::App& command) {
  return std::ranges::any_of(std::span(size_options).first(5), [&](std::string_view option) {
    const CLI::Option* const known = command.get_option_no_throw(std::string(option));
    return known != nullptr && known->count() > 0;
  });
}

Bytes whole_elements(Bytes size, ElementType type) {
  const std::int64_t element_size = size_of(type);
  return {(size.count + element_size - 1) / element_size * element_size};
}

Result<std::optional<std::uint32_t>> parse_ahead(const std::string& text) {
  if (text.empty()) return std::optional<std::uint32_t>();
  std::uint32_t rounds = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), rounds);
  if (status == std::errc() && end == text.data() + text.size() && rounds <= max_ahead) return std::optional(rounds);
  return fail(ErrorCode::invalid_input,
              fmt::format("--ahead: '{}' is not a number of rounds up to {}", text, max_ahead),
              "write such as 8, or 0 for any number");
}

}  // namespace espalier::cli
