#include "compare/read/implied_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "compare/read/nccl_tests_line.h"

namespace espalier::compare {
namespace nccl_tests {
namespace {

constexpr std::uint32_t unlimited = std::numeric_limits<std::uint32_t>::max();

struct Interval {
  double low = 0;
  double high = 0;
};

/// What was rounded to the printed number.
std::optional<Interval> before_rounding(std::string_view word) {
  const auto value = parse_decimal(word);
  if (!value || *value < 0 || word.find_first_of("eE") != std::string_view::npos) return std::nullopt;
  const std::size_t point = word.find('.');
  const auto decimals = point == std::string_view::npos ? 0 : static_cast<int>(word.size() - point - 1);
  const double half = 0.5 * std::pow(10.0, -decimals);
  return Interval{*value - half, *value + half};
}

/// The factor of infinitely many ranks; nothing for collectives whose factor is 1 for any number.
std::optional<double> factor_limit(std::string_view collective) {
  if (collective == "all_reduce") return 2;
  constexpr std::array shards = {"all_gather", "reduce_scatter", "all_to_all", "gather", "scatter"};
  if (std::ranges::find(shards, collective) != shards.end()) return 1;
  return std::nullopt;
}

/// factor = limit x (n-1)/n, so n = limit / (limit - factor).
double ranks_of(double factor, double limit) {
  return factor >= limit ? std::numeric_limits<double>::infinity() : limit / (limit - factor);
}

}  // namespace

bool are_of_all_reduce(const std::vector<PrintedRates>& rows) {
  return std::ranges::any_of(rows, [](const PrintedRates& row) {
    const auto algbw = before_rounding(row.algbw), busbw = before_rounding(row.busbw);
    return algbw && busbw && algbw->low > 0 && busbw->low > algbw->high;
  });
}

std::optional<RankRange> implied_ranks(std::string_view collective, const std::vector<PrintedRates>& rows) {
  const auto limit = factor_limit(collective);
  if (!limit) return std::nullopt;
  double least = 1, most = std::numeric_limits<double>::infinity();
  for (const PrintedRates& row : rows) {
    const auto algbw = before_rounding(row.algbw), busbw = before_rounding(row.busbw);
    if (!algbw || !busbw || algbw->low <= 0) continue;
    least = std::max(least, ranks_of(std::max(busbw->low, 0.0) / algbw->high, *limit));
    most = std::min(most, ranks_of(busbw->high / algbw->low, *limit));
  }
  constexpr double slack = 1e-6;  // Of these divisions.
  const double low = std::ceil(least - slack), high = std::floor(most + slack);
  if (low > high || low > unlimited || (low <= 1 && std::isinf(most))) return std::nullopt;
  return RankRange{static_cast<std::uint32_t>(low), high >= unlimited ? unlimited : static_cast<std::uint32_t>(high)};
}

}  // namespace nccl_tests

bool may_be_of(const Measurement& row, std::size_t ranks) {
  return row.ranks != 0 ? row.ranks == ranks : row.implied_ranks.allows(ranks);
}

std::string describe_ranks(const Measurement& row) {
  if (row.ranks != 0) return std::to_string(row.ranks);
  const RankRange& range = row.implied_ranks;
  if (range.most == 0) return {};
  if (range.most == nccl_tests::unlimited) return fmt::format("at least {}", range.least);
  return fmt::format("{} to {}", range.least, range.most);
}

}  // namespace espalier::compare
