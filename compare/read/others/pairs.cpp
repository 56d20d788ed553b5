#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "compare/read/others/line_reader.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

constexpr double mebibyte = 1 << 20;
constexpr double gigabit = 1e9 / 8;
constexpr double usual_depth = 128;

/// The columns of a table of perftest.
struct PerftestTable {
  std::size_t column = 0;
  double unit = 0;  ///< Bytes per second of a rate; 0: the column is microseconds.
};

std::optional<PerftestTable> table_of_perftest(std::string_view header) {
  const auto has = [&](std::string_view part) { return header.find(part) != std::string_view::npos; };
  const std::size_t average_rate = has("BW peak[") ? 3 : 2;  // Behind bytes and iterations; vendors leave the peak out.
  if (has("BW average[Gb/sec]")) return PerftestTable{average_rate, gigabit};
  if (has("BW average[MB/sec]") || has("BW average[MiB/sec]")) return PerftestTable{average_rate, mebibyte};
  const auto titles = nccl_tests::split_words(header);
  for (const std::string_view time : {"t_typical[usec]", "t_avg[usec]"}) {  // With -D the average alone.
    if (const auto found = std::ranges::find(titles, time); found != titles.end()) {
      return PerftestTable{static_cast<std::size_t>(found - titles.begin()), 0};
    }
  }
  return std::nullopt;
}

/// How many messages are under way at once: "TX depth : 128", which may stand beside another setting.
std::optional<double> depth_in(const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i + 3 < words.size(); ++i) {
    if (words[i] != "TX" || words[i + 1] != "depth") continue;
    const auto depth = nccl_tests::parse_decimal(words[i + 3]);
    if (depth && *depth >= 1 && *depth <= 1 << 20) return depth;
  }
  return std::nullopt;
}

}  // namespace

Result<Measurements> read_perftest(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "perftest";
  std::optional<PerftestTable> now;
  bool is_bidirectional = false;
  double depth = usual_depth;
  std::size_t small_rows = 0;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (lines.has(" Test") && (lines.has("BW") || lines.has("Latency"))) {
      is_bidirectional = lines.has("Bidirectional");
      now.reset();
    }
    if (words.empty()) continue;
    depth = depth_in(words).value_or(depth);
    if (words.front() == "#bytes") {
      now = table_of_perftest(lines.line());
      continue;
    }
    if (!now) continue;
    const auto size = nccl_tests::parse_decimal(words.front());
    if (!size) continue;
    const auto value = now->column < words.size() ? nccl_tests::parse_decimal(words[now->column]) : std::nullopt;
    if (!value || !(*value >= 0)) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:{}:1: the row ends before its {}", name, lines.number(),
                                                        now->unit > 0 ? "average bandwidth" : "typical time"));
    }
    const bool is_rate = now->unit > 0, is_both = is_rate && is_bidirectional;
    if (is_rate && *size < smallest_in_stream) {
      ++small_rows;
      continue;
    }
    const double bytes = is_rate ? *size * depth : *size;
    const double seconds = is_rate ? (is_both ? 2 : 1) * bytes / (*value * now->unit) : *value * 1e-6;
    if (!is_measured(bytes, seconds)) continue;
    table.rows.push_back(row_of_pair(is_both ? "send_recv" : "broadcast", bytes, seconds, lines.number()));
  }
  warn_of_small_rows(table, small_rows);
  return with_rows(std::move(table), "perftest printed no row that is read",
                   small_rows > 0 ? "measure messages of 64 KiB and more: ib_write_bw -a or -s 1048576" : "");
}

}  // namespace espalier::compare
