#include <fmt/format.h>

#include <optional>

#include "compare/read/others/line_reader.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

constexpr double mebibyte = 1 << 20;
constexpr double gigabit = 1e9 / 8;
constexpr double gigabyte = 1e9;

/// The columns of a table of perftest.
struct PerftestTable {
  std::size_t column = 0;
  double unit = 0;  ///< Bytes per second of a rate; 0: the column is microseconds.
};

std::optional<PerftestTable> table_of_perftest(std::string_view header) {
  const auto has = [&](std::string_view part) { return header.find(part) != std::string_view::npos; };
  constexpr std::size_t average_rate = 3, typical_time = 4;  // bytes, iterations, then these.
  if (has("BW average[Gb/sec]")) return PerftestTable{average_rate, gigabit};
  if (has("BW average[MB/sec]") || has("BW average[MiB/sec]")) return PerftestTable{average_rate, mebibyte};
  if (has("t_typical[usec]")) return PerftestTable{typical_time, 0};
  if (has("t_avg[usec]")) return PerftestTable{2, 0};  // With -D: bytes, iterations, average.
  return std::nullopt;
}

Measurement row_of_pair(const std::string& collective, double bytes, double seconds, std::size_t line) {
  Measurement row;
  row.collective = collective;
  row.ranks = 2;
  row.size = {static_cast<std::int64_t>(bytes)};
  row.seconds = seconds;
  row.line = line;
  return row;
}

}  // namespace

Result<Measurements> read_perftest(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "perftest";
  std::optional<PerftestTable> now;
  bool is_bidirectional = false;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (lines.has(" Test") && (lines.has("BW") || lines.has("Latency"))) {
      is_bidirectional = lines.has("Bidirectional");
      now.reset();
    }
    if (words.empty()) continue;
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
    const double moved = is_bidirectional && now->unit > 0 ? 2 * *size : *size;
    const double seconds = now->unit > 0 ? moved / (*value * now->unit) : *value * 1e-6;
    if (!is_measured(*size, seconds)) continue;
    table.rows.push_back(
        row_of_pair(is_bidirectional && now->unit > 0 ? "send_recv" : "broadcast", *size, seconds, lines.number()));
  }
  return with_rows(std::move(table), "perftest printed no row that is read");
}

Result<Measurements> read_nvbandwidth(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "nvbandwidth";
  double bytes = 512 * mebibyte;
  bool is_pairs = false, is_reversed = false, is_both = false;
  std::vector<std::uint32_t> columns;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (words.empty()) {
      columns.clear();
      continue;
    }
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      if (words[i] != "--bufferSize" && words[i] != "-b") continue;
      if (const auto size = nccl_tests::parse_decimal(words[i + 1]); size && *size >= 1 && *size <= 1 << 20) {
        bytes = *size * mebibyte;
      }
    }
    if (lines.has("Running ")) is_both = lines.has("bidirectional");
    if (lines.has("bandwidth (GB/s)") || lines.has("latency")) {
      is_pairs = lines.has("memcpy CE GPU(row)") && lines.has("GPU(column)");
      is_reversed = lines.has("<-");
      columns.clear();
      continue;
    }
    if (!is_pairs || is_both) continue;
    const auto first = nccl_tests::parse_decimal(words.front());
    if (!first || *first < 0 || *first > 1e6) continue;
    if (columns.empty()) {
      for (const std::string_view word : words) {
        const auto number = nccl_tests::parse_decimal(word);
        if (!number || *number < 0 || *number > 1e6) {
          return fail(ErrorCode::invalid_input,
                      fmt::format("{}:{}:1: '{}' is not the number of a GPU", name, lines.number(), word));
        }
        columns.push_back(static_cast<std::uint32_t>(*number));
      }
      continue;
    }
    if (words.size() != columns.size() + 1) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:{}:1: the row has {} rates, its matrix {} columns", name,
                                                        lines.number(), words.size() - 1, columns.size()));
    }
    const auto from = static_cast<std::uint32_t>(*first);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const auto rate = nccl_tests::parse_decimal(words[i + 1]);  // Nothing for N/A.
      if (columns[i] == from || !rate || !(*rate > 0)) continue;
      const double seconds = bytes / (*rate * gigabyte);
      if (!is_measured(bytes, seconds)) continue;
      Measurement row = row_of_pair("broadcast", bytes, seconds, lines.number());
      row.members = is_reversed ? std::vector{columns[i], from} : std::vector{from, columns[i]};
      table.rows.push_back(std::move(row));
    }
  }
  return with_rows(std::move(table), "nvbandwidth printed no matrix of GPU pairs by copy engines",
                   "run nvbandwidth -t device_to_device_memcpy_read_ce");
}

}  // namespace espalier::compare
