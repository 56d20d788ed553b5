#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "compare/read/others/line_reader.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

constexpr double microsecond_of_mpi = 1e-6;
constexpr double megabyte_of_mpi = 1e6;

std::string collective_of_mpi(std::string_view name) {
  // Where counts may differ, both benchmarks give every rank the same.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 17> names = {{
      {"Allreduce", "all_reduce"},
      {"Allgather", "all_gather"},
      {"Allgatherv", "all_gather"},
      {"Alltoall", "all_to_all"},
      {"Alltoallv", "all_to_all"},
      {"All-to-All", "all_to_all"},
      {"All-to-Allv", "all_to_all"},
      {"All-to-Allw", "all_to_all"},
      {"Bcast", "broadcast"},
      {"Broadcast", "broadcast"},
      {"Reduce_scatter", "reduce_scatter"},
      {"Reduce_scatter_block", "reduce_scatter"},
      {"Reduce", "reduce"},
      {"Gather", "gather"},
      {"Gatherv", "gather"},
      {"Scatter", "scatter"},
      {"Scatterv", "scatter"},
  }};
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

/// What a title of the OSU benchmarks says.
struct OsuTest {
  std::optional<MpiTable> table;  ///< Nothing where such rows are not read.
  std::string_view why;           ///< Then: why.
  bool is_overlapped = false;     ///< Of a non-blocking call, whose own time stands in a column of its own.
};

/// The words between the library and "Test": of "# OSU MPI-CUDA Allreduce Latency Test v7.0" Allreduce and Latency;
/// those that change nothing are left out.
std::vector<std::string_view> words_of_osu(std::string_view title) {
  std::vector<std::string_view> words = nccl_tests::split_words(title);
  const auto osu = std::ranges::find(words, "OSU");
  words.erase(words.begin(), osu + std::min<std::ptrdiff_t>(2, words.end() - osu));
  words.erase(std::ranges::find(words, "Test"), words.end());
  constexpr std::string_view run_together = "ExchangeLatency";  // As version 7.5 prints it.
  std::ranges::replace(words, run_together, std::string_view("Latency"));
  std::erase_if(words, [](std::string_view word) {
    return word == "Persistent" || word == "Personalized" || word == "Exchange" || word == "Non-blocking" ||
           word == "Non-Blocking";
  });
  return words;
}

OsuTest table_of_osu(std::string_view title) {
  const auto has = [&](std::string_view part) { return title.find(part) != std::string_view::npos; };
  const auto refuse = [](std::string_view why) { return OsuTest{std::nullopt, why}; };
  if (has("OSU OpenSHMEM") || has("OSU UPC")) return refuse("tests of OpenSHMEM and UPC are not read");
  if (has("Neighborhood")) return refuse("neighbours are of a graph, which the text does not have");
  if (has("Multi")) return refuse("several pairs run at once; osu_bw and osu_latency measure one");
  if (has("MPI_") && !has("MPI_Put") && !has("MPI_Get")) return refuse("atomic operations are not read");
  const std::vector<std::string_view> words = words_of_osu(title);
  const auto is = [&](std::initializer_list<std::string_view> all) { return std::ranges::equal(words, all); };
  if (is({"Bi-Directional", "Bandwidth"}) || is({"Bi-directional", "Bandwidth"})) {
    return {MpiTable{"send_recv", true, 2, false, true}, {}};
  }
  if (is({"Bandwidth"})) return {MpiTable{"broadcast", true, 1, false, true}, {}};
  if (is({"Latency"}) || is({"latency"})) return {MpiTable{"broadcast", false, 1, false, true}, {}};
  const std::string collective = words.size() == 2 && words[1] == "Latency" ? collective_of_mpi(words[0]) : "";
  if (collective.empty()) return refuse("such a test is not read");
  return {MpiTable{collective, false, 1, counts_shards(collective) && collective != "reduce_scatter"},
          {},
          has("Non-blocking") || has("Non-Blocking")};
}

/// Which of a row's words is the communication's own time: "Size Overall(us) Compute(us) Pure Comm.(us) Overlap(%)".
std::size_t pure_column(const std::vector<std::string_view>& titles) {
  std::size_t column = 1;  // Behind the size.
  for (std::size_t i = 0; i + 1 < titles.size(); ++i) {
    if (titles[i] == "Pure" && titles[i + 1].starts_with("Comm.")) return column;
    if (titles[i].ends_with(')')) ++column;
  }
  return 0;
}

/// The number behind an option that has so many forms: "-n 4", "-n4", "--ntasks=4".
std::uint32_t count_of(const std::vector<std::string_view>& words, std::initializer_list<std::string_view> options) {
  constexpr double max_count = 1 << 20;
  for (std::size_t i = 0; i < words.size(); ++i) {
    for (const std::string_view option : options) {
      if (!words[i].starts_with(option)) continue;
      std::string_view value = words[i].substr(option.size());
      if (value.empty() && i + 1 < words.size()) value = words[i + 1];
      if (value.starts_with('=')) value.remove_prefix(1);
      const auto count = nccl_tests::parse_decimal(value);
      if (count && *count >= 1 && *count <= max_count) return static_cast<std::uint32_t>(*count);
    }
  }
  return 0;
}

/// The number of ranks of a launcher's command line; 0 where it has none.
std::uint32_t ranks_in_command(const std::vector<std::string_view>& words) {
  if (const std::uint32_t ranks = count_of(words, {"-np", "-n", "--ntasks="}); ranks > 0) return ranks;
  const bool is_slurm = std::ranges::find(words, "srun") != words.end();
  const std::uint32_t nodes = is_slurm ? count_of(words, {"-N", "--nodes"}) : 0;
  const std::uint64_t ranks = std::uint64_t{nodes} * count_of(words, {"--ntasks-per-node"});
  constexpr std::uint64_t max_ranks = 1 << 20;
  return ranks <= max_ranks ? static_cast<std::uint32_t>(ranks) : 0;
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

/// The column of an IMB table that counts: t[usec], t_avg[usec], or t_pure[usec] of calls that are overlapped.
std::optional<std::size_t> time_column(const std::vector<std::string_view>& titles) {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (titles[i] == "t[usec]" || titles[i] == "t_avg[usec]" || titles[i] == "t_pure[usec]") found = i;
  }
  return found;
}

/// "Allreduce", "Iallreduce" and "Iallreduce_pure" are all_reduce; empty for what is no collective of ours.
std::string collective_of_imb(std::string_view benchmark) {
  if (benchmark == "PingPong") return "broadcast";
  if (benchmark == "Sendrecv") return "send_recv";
  if (benchmark.size() < 2 || benchmark.front() != 'I') return collective_of_mpi(benchmark);
  std::string blocking(benchmark.substr(1, benchmark.find("_pure") - 1));
  if (blocking.empty()) return {};
  blocking.front() = static_cast<char>(blocking.front() - 'a' + 'A');
  return collective_of_mpi(blocking);
}

}  // namespace

Result<Measurements> read_osu(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "osu";
  OsuTest now;
  std::string why = "the OSU benchmarks printed no row that is read";
  std::uint32_t ranks = 0;
  std::size_t column = 1, small_rows = 0;
  LineReader lines(text);
  while (lines.next()) {
    const auto words = lines.words();
    if (lines.has("# OSU ")) {
      now = table_of_osu(lines.line());
      column = now.is_overlapped ? 0 : 1;
      if (!now.table) {
        why = fmt::format("{}: {}", lines.line().substr(lines.line().find("OSU")), now.why);
        table.warnings.push_back(fmt::format("{}:{}: {}", name, lines.number(), now.why));
      }
      if (now.table && now.table->counts_each_rank && ranks == 0) {
        return fail(ErrorCode::invalid_input,
                    fmt::format("{}:{}:1: sizes of {} are of one rank, and the text does not say how many there were",
                                name, lines.number(), now.table->collective),
                    "put the command line above it: mpirun -np 16 osu_allgather");
      }
      continue;
    }
    if (const std::uint32_t told = ranks_in_command(words); told > 0 && lines.has("osu_")) ranks = told;
    if (now.is_overlapped && lines.has("Pure Comm.")) column = pure_column(words);
    if (!now.table || column == 0 || words.size() < 2 || words.front().front() == '#') continue;
    const auto size = nccl_tests::parse_decimal(words[0]);
    if (!size) continue;
    const auto value = column < words.size() ? nccl_tests::parse_decimal(words[column]) : std::nullopt;
    if (!value || !(*value > 0)) return refuse_row(name, lines.number(), "a row is a size and a time or a rate");
    if (words.back() == "Fail") table.warnings.push_back(fmt::format("{}:{}: wrong values", name, lines.number()));
    if (now.table->is_rate && *size < smallest_in_stream) {
      ++small_rows;
    } else {
      add_row(table, *now.table, ranks, *size, *value, lines.number());
    }
  }
  warn_of_small_rows(table, small_rows);
  return with_rows(std::move(table), why);
}

Result<Measurements> read_imb(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "imb";
  std::string benchmark, why;
  std::set<std::string> passed_over;
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
      MpiTable of{collective_of_imb(benchmark), false, 1, false};
      if (of.collective.empty()) {
        if (passed_over.insert(benchmark).second) {
          why =
              benchmark.empty() ? "no line '# Benchmarking NAME' stands above this table" : benchmark + " is not read";
          table.warnings.push_back(fmt::format("{}:{}: {}", name, lines.number(), why));
        }
        continue;
      }
      of.counts_each_rank = counts_shards(of.collective) && of.collective != "reduce_scatter";
      add_row(table, of, ranks, *size, *time, lines.number());
    }
  }
  return with_rows(std::move(table), "the Intel MPI Benchmarks printed no row that is read", why);
}

}  // namespace espalier::compare
