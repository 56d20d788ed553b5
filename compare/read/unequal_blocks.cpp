#include <fmt/format.h>

#include <algorithm>

#include "compare/read/nccl_tests.h"
#include "schedule/collective.h"
#include "schedule/traffic/traffic_matrix.h"

namespace espalier::compare {

Result<void> give_unequal_blocks(Measurements& measurements, const std::set<std::uint32_t>& runs,
                                 const std::string& traffic) {
  const auto is_of = [&](const Measurement& row) { return runs.contains(row.run); };
  const auto first = std::ranges::find_if(measurements.rows, is_of);
  if (first == measurements.rows.end()) return {};
  const std::string where = fmt::format("{}:{}", measurements.file, first->line);
  const std::uint32_t ranks = first->ranks;
  if (!std::ranges::all_of(measurements.rows, is_of)) {
    measurements.warnings.push_back(
        fmt::format("{}: the rows of alltoallv_perf are left out, as others are beside them: read them alone", where));
    std::erase_if(measurements.rows, is_of);
    return {};
  }
  const auto is_like = [&](const Measurement& row) { return row.ranks == ranks; };
  if (ranks < 2 || ranks > max_matrix_ranks || !std::ranges::all_of(measurements.rows, is_like)) {
    return fail(ErrorCode::invalid_input, where + ": rows of alltoallv_perf, and not of how many ranks",
                "keep the lines \"# Rank ...\" of each run, and a file for each number of ranks");
  }
  auto matrix = load_traffic(traffic, ranks);
  if (!matrix) return tl::unexpected(matrix.error());
  auto collective = make_collective(CollectiveKind::all_to_all, ranks, std::nullopt, std::move(matrix->blocks));
  if (!collective) return tl::unexpected(collective.error());
  measurements.shares = std::move(collective->shares);
  return {};
}

}  // namespace espalier::compare
