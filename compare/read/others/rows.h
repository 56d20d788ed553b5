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

/// The table, or why there is none.
inline Result<Measurements> with_rows(Measurements table, std::string_view what, std::string help = {}) {
  if (!table.rows.empty()) return table;
  return fail(ErrorCode::invalid_input, fmt::format("{}:1:1: {}", table.file, what), std::move(help));
}

}  // namespace espalier::compare
