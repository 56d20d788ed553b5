#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "compare/read/others/line_reader.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

constexpr double microsecond_of_mpi = 1e-6;
constexpr double megabyte_of_mpi = 1e6;

std::string collective_of_mpi(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 9> names = {{{"Allreduce", "all_reduce"},
                                                                                   {"Allgather", "all_gather"},
                                                                                   {"Alltoall", "all_to_all"},
                                                                                   {"Bcast", "broadcast"},
                                                                                   {"Broadcast", "broadcast"},
                                                                                   {"Reduce_scatter", "reduce_scatter"},
                                                                                   {"Reduce", "reduce"},
                                                                                   {"Gather", "gather"},
                                                                                   {"Scatter", "scatter"}}};
  for (const auto& [theirs, ours] : names) {
    if (theirs == name) return std::string(ours);
  }
  return {};
}

constexpr double messages_in_window = 64;  // Of osu_bw and osu_bibw, where -W does not say another number.

/// What the sizes of a table count, and how a column becomes a time.
struct MpiTable {
  std::string collective;
  bool is_rate = false;           ///< The column is MB/s, of a window of messages that are under way together.
  double transfers = 1;           ///< Sizes that a rate or time is of: both directions count in a bidirectional one.
  bool counts_each_rank = false;  ///< Sizes are of one rank; S has the ranks' together.
  bool is_pair = false;           ///< Between two ranks.
};

/// "# OSU MPI-CUDA Allreduce Latency Test v7.0": what stands between the library and the version.
std::optional<MpiTable> table_of_osu(std::string_view title) {
  const auto has = [&](std::string_view part) { return title.find(part) != std::string_view::npos; };
  if (has("Non-blocking") || has("Multiple Bandwidth") || has("Persistent")) return std::nullopt;
  if (has("Bi-Directional Bandwidth")) return MpiTable{"send_recv", true, 2, false, true};
  for (const std::string_view word : nccl_tests::split_words(title)) {
    const std::string collective = collective_of_mpi(word);
    if (collective.empty() || !has("Latency")) continue;
    return MpiTable{collective, false, 1, counts_shards(collective) && collective != "reduce_scatter"};
  }
  if (has("Bandwidth Test")) return MpiTable{"broadcast", true, 1, false, true};
  if (has("Latency Test")) return MpiTable{"broadcast", false, 1, false, true};
  return std::nullopt;
}

/// The number behind -n or -np of a command line.
std::uint32_t ranks_in_command(const std::vector<std::string_view>& words) {
  for (std::size_t i = 0; i + 1 < words.size(); ++i) {
    if (words[i] != "-n" && words[i] != "-np" && words[i] != "--ntasks") continue;
    const auto count = nccl_tests::parse_decimal(words[i + 1]);
    constexpr double max_count = 1 << 20;
    if (count && *count >= 1 && *count <= max_count) return static_cast<std::uint32_t>(*count);
  }
  return 0;
}

tl::unexpected<Error> refuse_row(std::string_view name, std::size_t line, std::string_view what) {
  return fail(ErrorCode::invalid_input, fmt::format("{}:{}:1: {}", name, line, what));
}

/// Adds a row of a table. `column`: microseconds, or MB/s.
void add_row(Measurements& table, const MpiTable& of, std::uint32_t ranks, double size, double column,
             std::size_t line) {
  Measurement row;
  row.collective = of.collective;
  row.ranks = of.is_pair ? 2 : ranks;
  const double bytes = of.is_rate ? size * messages_in_window : of.counts_each_rank ? size * ranks : size;
  row.seconds = of.is_rate ? of.transfers * bytes / (column * megabyte_of_mpi) : column * microsecond_of_mpi;
  if (!is_measured(bytes, row.seconds)) return;
  row.size = {static_cast<std::int64_t>(bytes)};
  row.line = line;
  table.rows.push_back(std::move(row));
}

/// The columns of an IMB table that count: t[usec] or t_avg[usec] for times.
std::optional<std::size_t> time_column(const std::vector<std::string_view>& titles) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (titles[i] == "t[usec]" || titles[i] == "t_avg[usec]") found = i;
  }
  return found;
}

}  // namespace

Result<Measurements> read_osu(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "osu";
  std::optional<MpiTable> now;
  std::uint32_t ranks = 0;
  std::size_t small_rows = 0;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (lines.has("# OSU ")) {
      now = table_of_osu(lines.line());
      if (!now) table.warnings.push_back(fmt::format("{}:{}: a test that is not read", name, lines.number()));
      if (now && now->counts_each_rank && ranks == 0) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("{}:{}:1: sizes of {} are of one rank, and the text does not say how many there were",
                                name, lines.number(), now->collective),
                    "put the command line above it: mpirun -np 16 osu_allgather");
      }
      continue;
    }
    if (const std::uint32_t told = ranks_in_command(words); told > 0 && lines.has("osu_")) ranks = told;
    if (!now || words.size() < 2 || words.front().front() == '#') continue;
    const auto size = nccl_tests::parse_decimal(words[0]);
    if (!size) continue;
    const auto value = nccl_tests::parse_decimal(words[1]);
    if (!value || !(*value > 0)) return refuse_row(name, lines.number(), "a row is a size and a time or a rate");
    if (now->is_rate && *size < smallest_in_stream) {
      ++small_rows;
    } else {
      add_row(table, *now, ranks, *size, *value, lines.number());
    }
  }
  warn_of_small_rows(table, small_rows);
  return with_rows(std::move(table), "the OSU benchmarks printed no row that is read");
}

Result<Measurements> read_imb(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "imb";
  std::string benchmark;
  std::uint32_t ranks = 0;
  std::optional<std::size_t> column;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (words.empty()) continue;
    if (const auto title = std::ranges::find(words, "Benchmarking"); title != words.end() && title + 1 != words.end()) {
      benchmark = *(title + 1);
      column.reset();
      ranks = 0;
    } else if (lines.has("#processes = ")) {
      for (std::size_t i = 0; i + 1 < words.size(); ++i) {
        const auto count = nccl_tests::parse_decimal(words[i + 1]);
        constexpr double max_count = 1 << 20;
        if (words[i] == "=" && count && *count >= 1 && *count <= max_count) {
          ranks = static_cast<std::uint32_t>(*count);
          break;
        }
      }
    } else if (words.front() == "#bytes") {
      column = time_column(words);
    } else if (column && words.size() > 1 && words.front().front() != '#') {  // Mail turns the last column over.
      const auto size = nccl_tests::parse_decimal(words[0]);
      if (!size) continue;
      const auto time = *column < words.size() ? nccl_tests::parse_decimal(words[*column]) : std::nullopt;
      if (!time) return refuse_row(name, lines.number(), "the row ends before its time");
      MpiTable of{collective_of_mpi(benchmark), false, 1, false};
      if (benchmark == "PingPong") of.collective = "broadcast";
      if (benchmark == "Sendrecv") of.collective = "send_recv";
      if (of.collective.empty()) continue;
      of.counts_each_rank = counts_shards(of.collective) && of.collective != "reduce_scatter";
      add_row(table, of, ranks, *size, *time, lines.number());
    }
  }
  return with_rows(std::move(table), "the Intel MPI Benchmarks printed no row that is read");
}

}  // namespace espalier::compare
