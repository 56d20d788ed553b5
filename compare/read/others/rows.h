#pragma once

// Tested by: tests/unit/compare/read/others_test.cpp

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "compare/read/measurements.h"

namespace espalier::compare {

/// Whether a size and a time can stand in a row.
inline bool is_measured(double bytes, double seconds) {
  constexpr double longest = 1e9;
  return bytes >= 1 && bytes <= static_cast<double>(max_message_size.count) && seconds > 0 && seconds <= longest;
}

/// A row of a transfer between two ranks.
inline Measurement row_of_pair(const std::string& collective, double bytes, double seconds, std::size_t line) {
  Measurement row;
  row.collective = collective;
  row.ranks = 2;
  row.size = {static_cast<std::int64_t>(bytes)};
  row.seconds = seconds;
  row.line = line;
  return row;
}

/// What a collective's S is, where a tool counts bytes of one rank.
inline bool counts_shards(std::string_view collective) {
  return collective == "all_gather" || collective == "reduce_scatter" || collective == "all_to_all" ||
         collective == "gather" || collective == "scatter";
}

/// Rows of calls, a median for each collective, number of ranks and size.
class CallTable {
 public:
  void add(const std::string& collective, std::uint32_t ranks, std::int64_t size, double seconds, std::size_t line) {
    Calls& calls = calls_[{collective, ranks, size}];
    if (calls.seconds.empty()) calls.line = line;
    calls.seconds.push_back(seconds);
  }
  [[nodiscard]] std::vector<Measurement> rows() const {
    std::vector<Measurement> rows;
    for (const auto& [key, calls] : calls_) {
      Measurement row;
      std::tie(row.collective, row.ranks, row.size.count) = key;
      std::vector<double> sorted = calls.seconds;
      std::ranges::sort(sorted);
      row.seconds = sorted[sorted.size() / 2];
      row.min_seconds = sorted.front();
      row.line = calls.line;
      rows.push_back(std::move(row));
    }
    return rows;
  }

 private:
  struct Calls {
    std::vector<double> seconds;
    std::size_t line = 0;
  };
  std::map<std::tuple<std::string, std::uint32_t, std::int64_t>, Calls> calls_;
};

/// Bandwidth tests have many messages under way at once: what they say is how long the stream of them takes. Of smaller
/// ones it is how fast an adapter starts messages.
inline constexpr double smallest_in_stream = 64 << 10;

/// Says how many rows of a bandwidth test were left out as their messages are small.
inline void warn_of_small_rows(Measurements& table, std::size_t count) {
  if (count == 0) return;
  table.warnings.push_back(
      fmt::format("{}: {} of less than 64 KiB left out, whose bandwidth is that of starting messages", table.file,
                  count == 1 ? "a row" : fmt::format("{} rows", count)));
}

/// The table, or why there is none.
inline Result<Measurements> with_rows(Measurements table, std::string_view what, std::string help = {}) {
  if (!table.rows.empty()) return table;
  return fail(ErrorCode::invalid_input, fmt::format("{}:1:1: {}", table.file, what), std::move(help));
}

}  // namespace espalier::compare
