#include "forecast/measured_errors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "base/format_units.h"
#include "forecast/question.h"
#include "profile/profile.h"

namespace espalier::forecast {
namespace {

constexpr std::string_view header =
    "profile,collective,machines,min_size,max_size,max_ranks,min_version,max_version,points,low,median,high,held,"
    "systems,gpus";
constexpr std::size_t column_count = 15;

using Cells = std::array<std::string_view, column_count>;

std::optional<Cells> cells_of(std::string_view line) {
  Cells cells;
  for (std::size_t i = 0; i < column_count; ++i) {
    const std::size_t comma = line.find(',');
    if ((comma == std::string_view::npos) != (i + 1 == column_count)) return std::nullopt;
    cells[i] = line.substr(0, comma);
    line.remove_prefix(comma == std::string_view::npos ? line.size() : comma + 1);
  }
  return cells;
}

template <class Number>
bool read_number(std::string_view text, Number& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

bool read_version(std::string_view text, std::uint32_t& version) {
  if (text.empty()) return true;
  const auto number = profile::version_number(text);
  if (number) version = *number;
  return number.has_value();
}

std::optional<ErrorClass> class_of(std::string_view line) {
  const auto cells = cells_of(line);
  if (!cells) return std::nullopt;
  const auto& [profile, collective, machines, min_size, max_size, ranks, from, to, points, low, median, high, held,
               systems, gpus] = *cells;

  ErrorClass read;
  read.profile = profile;
  read.gpus = gpus;
  const auto kind = parse_collective(collective);
  if (!kind || (machines != "one" && machines != "several")) return std::nullopt;
  read.collective = *kind;
  read.is_of_several = machines == "several";
  double part = 0;
  const bool are_numbers = read_number(min_size, read.min_size.count) && read_number(max_size, read.max_size.count) &&
                           read_number(ranks, read.max_ranks) && read_version(from, read.min_version) &&
                           read_version(to, read.max_version) && read_number(points, read.points) &&
                           read_number(low, read.low) && read_number(median, read.median) &&
                           read_number(high, read.high) && read_number(systems, read.systems);
  if (!are_numbers || (!held.empty() && !read_number(held, part))) return std::nullopt;
  if (!held.empty()) read.held = part;
  const bool is_range = read.low > 0 && read.low <= read.high && std::isfinite(read.high) && part >= 0 && part <= 1 &&
                        read.min_size.count > 0 && read.min_size <= read.max_size;
  return is_range ? std::optional(std::move(read)) : std::nullopt;
}

/// By how much a size lies outside of a class, as a factor.
double distance(const ErrorClass& of, Bytes size) {
  const auto at = static_cast<double>(std::max<std::int64_t>(size.count, 1));
  return std::max({1.0, static_cast<double>(of.min_size.count) / at, at / static_cast<double>(of.max_size.count)});
}

/// Whether machines with such GPUs were measured; true where the machine does not say.
bool has_gpu(const ErrorClass& of, std::string_view gpu) {
  if (gpu.empty() || of.gpus.empty()) return true;
  std::string_view rest = of.gpus;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (gpu.starts_with(rest.substr(0, end))) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

std::string reason_of(const ErrorClass& of, const Predicted& what) {
  if (!has_gpu(of, what.gpu)) {
    std::string gpus = of.gpus;
    std::ranges::replace(gpus, ' ', '/');
    return fmt::format("measured on {}, not on {}", gpus, what.gpu);
  }
  if (what.ranks > of.max_ranks) return fmt::format("measured on up to {} ranks", of.max_ranks);
  if (what.version && of.min_version > 0 && (*what.version < of.min_version || *what.version > of.max_version)) {
    return fmt::format("measured with NCCL {} to {}", profile::version_text(of.min_version),
                       profile::version_text(of.max_version));
  }
  constexpr double beside = 4;  // Sizes were measured in steps of up to as much.
  if (distance(of, what.size) < beside) return {};
  return fmt::format("measured from {} to {}", format_size(of.min_size), format_size(of.max_size));
}

}  // namespace

Result<MeasuredErrors> MeasuredErrors::read(std::string_view text) {
  MeasuredErrors errors;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (number == 1 && line == header) continue;
    auto read = number == 1 ? std::nullopt : class_of(line);
    if (!read) {
      return fail(ErrorCode::invalid_input, fmt::format("line {} is no class of errors", number),
                  "write the file anew with tests/accuracy/errors.py --record");
    }
    errors.classes_.push_back(*std::move(read));
  }
  return errors;
}

ErrorRange MeasuredErrors::find(const Predicted& what) const {
  if (what.profile.empty()) return {nullptr, "links alone were simulated"};
  if (!is_nccl_algorithm(what.algorithm)) {
    return {nullptr, "of NCCL's own algorithms alone there are measurements"};
  }
  ErrorRange found;
  double nearest = std::numeric_limits<double>::infinity();
  for (const ErrorClass& each : classes_) {
    const bool is_alike =
        each.profile == what.profile && each.collective == what.collective && each.is_of_several == (what.machines > 1);
    if (!is_alike || distance(each, what.size) >= nearest) continue;
    nearest = distance(each, what.size);
    found.of = &each;
  }
  found.outside = found.of != nullptr
                      ? reason_of(*found.of, what)
                      : fmt::format("no {} on {} was measured under {}", to_string(what.collective),
                                    what.machines > 1 ? "several machines" : "one machine", what.profile);
  return found;
}

}  // namespace espalier::forecast
