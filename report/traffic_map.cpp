#include "report/traffic_map.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/format_units.h"
#include "report/html_text.h"

namespace espalier::report {
namespace {

constexpr std::size_t max_traffic_cells = 64;  ///< Of a side.
constexpr std::size_t max_traffic_lines = 32;  ///< Ranks.

/// The bytes of a share of the matrix at the largest size of the report.
double bytes_per_share(const PlanReport& report) {
  std::int64_t size = 0;
  for (const FastestAt& fastest : report.fastest) size = std::max(size, fastest.size.count);
  return static_cast<double>(size) / static_cast<double>(report.collective.largest_line());
}

std::string range_name(const Topology& topology, std::size_t begin, std::size_t end) {
  const std::string first = topology.rank_name(Rank(begin));
  return end - begin == 1 ? first : fmt::format("{} to {}", first, topology.rank_name(Rank(end - 1)));
}

std::string bytes_text(double bytes) { return format_size(Bytes{static_cast<std::int64_t>(bytes)}); }

}  // namespace

std::string traffic_map(const PlanReport& report) {
  const Collective& collective = report.collective;
  if (!collective.has_matrix()) return {};
  const std::size_t ranks = collective.rank_count;
  const std::size_t of_cell = (ranks + max_traffic_cells - 1) / max_traffic_cells;
  const std::size_t cells = (ranks + of_cell - 1) / of_cell;
  std::vector<std::int64_t> sums(cells * cells, 0);
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      sums[from / of_cell * cells + to / of_cell] += collective.block(Rank(from), Rank(to));
    }
  }
  const auto most = static_cast<double>(*std::ranges::max_element(sums));
  const double each = bytes_per_share(report);
  constexpr std::size_t side = 12;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {0}\" width=\"{0}\" height=\"{0}\" role=\"img\" "
      "aria-label=\"Bytes from each rank to each\">\n",
      cells * side + 2);
  for (std::size_t i = 0; i < sums.size(); ++i) {
    const std::size_t from = i / cells * of_cell;
    const std::size_t to = i % cells * of_cell;
    svg += fmt::format(
        "<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" fill=\"#1f6fb4\" fill-opacity=\"{:.3f}\" stroke=\"#888\" "
        "stroke-width=\"0.3\"><title>{}: {}</title></rect>\n",
        i % cells * side + 1, i / cells * side + 1, side, side, static_cast<double>(sums[i]) / most,
        in_html(range_name(*report.topology, from, std::min(ranks, from + of_cell)) + " to " +
                range_name(*report.topology, to, std::min(ranks, to + of_cell))),
        bytes_text(static_cast<double>(sums[i]) * each));
  }
  return svg + "</svg>\n";
}

ReportTable traffic_table(const PlanReport& report) {
  const Collective& collective = report.collective;
  const std::size_t ranks = collective.rank_count;
  std::vector<std::int64_t> sent(ranks), received(ranks);
  for (std::size_t from = 0; from < ranks; ++from) {
    for (std::size_t to = 0; to < ranks; ++to) {
      sent[from] += collective.block(Rank(from), Rank(to));
      received[to] += collective.block(Rank(from), Rank(to));
    }
  }
  std::vector<std::size_t> order(ranks);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::stable_sort(order, std::greater<>(),
                           [&](std::size_t rank) { return std::max(sent[rank], received[rank]); });
  order.resize(std::min(ranks, max_traffic_lines));
  const double each = bytes_per_share(report);
  const double mean = static_cast<double>(collective.share_sum()) / static_cast<double>(ranks);
  ReportTable table{"traffic-lines",
                    ranks > max_traffic_lines ? "Ranks that send or receive the most" : "What ranks send and receive",
                    {{"rank"}, {"sends", true}, {"sends / mean", true}, {"receives", true}, {"receives / mean", true}},
                    {}};
  for (const std::size_t rank : order) {
    const auto times = [&](std::int64_t line) { return fmt::format("{:.2f}", static_cast<double>(line) / mean); };
    table.rows.push_back({report.topology->rank_name(Rank(rank)), bytes_text(static_cast<double>(sent[rank]) * each),
                          times(sent[rank]), bytes_text(static_cast<double>(received[rank]) * each),
                          times(received[rank])});
  }
  return table;
}

}  // namespace espalier::report
