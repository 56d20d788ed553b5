#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <set>

#include "base/counted.h"
#include "compare/read/implied_ranks.h"
#include "compare/read/nccl_tests.h"
#include "compare/read/nccl_tests_line.h"

namespace espalier::compare {
namespace {

using nccl_tests::CleanLine;
using Words = std::vector<std::string_view>;

constexpr std::size_t usual_columns = 4;   // time, algbw, busbw, #wrong
constexpr std::size_t fewest_columns = 3;  // Without #wrong, as cut tables and wrappers have them.
constexpr std::size_t wrong_column = 3;
constexpr std::uint32_t max_ranks = 1U << 24U;

template <class T>
std::optional<T> parse_whole(std::string_view word) {
  T value = 0;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc() || end != word.data() + word.size()) return std::nullopt;
  return value;
}

bool is_type(std::string_view word) {
  return !word.empty() && word.front() >= 'a' && word.front() <= 'z' &&
         std::ranges::all_of(word, [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; });
}

/// A number of a row, or what stands where there is none.
bool is_value(std::string_view word) {
  return nccl_tests::parse_decimal(word) || word == "N/A" || word.ends_with("nan") || word.ends_with("inf");
}

/// How many words from one on are values.
std::size_t count_values(const Words& words, std::size_t first) {
  std::size_t end = first;
  while (end < words.size() && is_value(words[end])) ++end;
  return end - first;
}

bool contains(std::string_view text, std::string_view part) { return text.find(part) != std::string_view::npos; }

class TextReader {
 public:
  TextReader(std::string_view name, const NcclTestsHints& hints) : name_(name), hints_(hints) {
    measurements_.file = name;
    measurements_.origin = "nccl-tests";
  }

  Result<Measurements> read(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      const std::size_t end = std::min(text.find('\n'), text.size());
      if (auto read = read_line(text.substr(0, end)); !read) return tl::unexpected(read.error());
      text.remove_prefix(std::min(end + 1, text.size()));
    }
    say_left_out();
    if (measurements_.rows.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:1: no row of nccl-tests is in this text", name_),
                  "rows have a size, a count, a type and times in microseconds");
    }
    tell_collective();
    tell_ranks();
    const bool is_known = !hints_.traffic.empty();
    if (!unequal_runs_.empty() && !is_known) {
      measurements_.warnings.push_back(name_ +
                                       ": alltoallv_perf's own pattern is assumed, as its output does not say "
                                       "what it was told: else name what it sent with --matrix");
    }
    const std::string traffic = is_known ? hints_.traffic : "spread:1";
    if (auto given = give_unequal_blocks(measurements_, unequal_runs_, traffic); !given) {
      return tl::unexpected(given.error());
    }
    return std::move(measurements_);
  }

 private:
  /// The first words of a row, before the times.
  struct Head {
    std::int64_t size = 0;
    std::string type;
    std::size_t words = 0;  ///< How many, with the operation that versions since 2022 print for every collective.
  };

  /// The head of a row that begins with this word: size, count, type, and an operation or enough values.
  [[nodiscard]] std::optional<Head> find_head(const Words& words, std::size_t first, bool was_interrupted) const {
    if (first + 3 > words.size() || !is_type(words[first + 2])) return std::nullopt;
    const auto size = parse_whole<std::int64_t>(words[first]);
    if (!size || !parse_whole<std::int64_t>(words[first + 1])) return std::nullopt;
    Head head{*size, std::string(words[first + 2]), first + 3};
    if (head.words < words.size() && nccl_tests::is_operation(words[head.words])) {
      ++head.words;
      return head;
    }
    const bool was_cut = was_interrupted && head.words == words.size();
    return was_cut || count_values(words, head.words) >= std::min(columns_, usual_columns) ? std::optional(head)
                                                                                           : std::nullopt;
  }

  Result<void> read_line(std::string_view raw) {
    const CleanLine clean = nccl_tests::clean_line(raw);
    const Words words = nccl_tests::split_words(clean.text);
    if (words.empty()) return {};
    // Whatever launchers and collectors of logs put before a row or a comment, its own words follow each other.
    for (std::size_t i = 0; i < words.size(); ++i) {
      if (words[i].starts_with('#')) {
        const auto comment = words.begin() + static_cast<std::ptrdiff_t>(i);
        read_other({}, {words.begin(), comment});
        read_comment(clean.text, {comment, words.end()});
        return {};
      }
      if (const auto head = find_head(words, i, clean.was_interrupted)) {
        return begin_row(*head, words, clean.was_interrupted);
      }
    }
    if (pending_ && !clean.was_interrupted && nccl_tests::parse_decimal(words.front())) {
      const Head head = *pending_;
      pending_.reset();
      return end_row(head, words, count_values(words, 0) < words.size());
    }
    read_other(clean.text, words);
    return {};
  }

  Result<void> begin_row(const Head& head, const Words& words, bool was_interrupted) {
    if (head.size < 0 || head.size > max_message_size.count) {
      return refuse(fmt::format("a size of {} bytes", head.size), "sizes are from 0 to 1 PiB");
    }
    Words rest(words.begin() + static_cast<std::ptrdiff_t>(head.words), words.end());
    pending_.reset();
    // A log right behind #wrong took it with it: what is left is a root, time, algbw and busbw.
    if (was_interrupted && rest.size() == columns_ && rest.front() == "-1") rest.push_back("N/A");
    // Where the log came before the times, they follow; whole rows may also be followed by it.
    const std::size_t given = count_values(rest, 0);
    if (!was_interrupted || given >= columns_) return end_row(head, rest, was_interrupted || given < rest.size());
    pending_ = head;
    return {};
  }

  /// Whether so many values are one or two groups of columns, behind a root or not.
  static bool fits(std::size_t given, std::size_t columns) {
    const std::size_t values = given - given % columns;
    return given % columns <= 1 && (values == columns || values == 2 * columns);
  }

  /// How many columns the groups of a row have: what the heading says, else the usual ones, as it may be another
  /// table's. Rows without #wrong show by a root of -1, too, which is no time.
  [[nodiscard]] std::size_t columns_of(const Words& values) const {
    const std::size_t given = values.size();
    if (columns_ == fewest_columns) {
      const bool has_root = given % fewest_columns == 1;
      const bool is_row = fits(given, fewest_columns) && (!has_root || parse_whole<std::int64_t>(values.front()));
      return is_row ? fewest_columns : usual_columns;
    }
    const bool is_short = given == fewest_columns + 1 || (given == 2 * fewest_columns + 1 && !fits(given, columns_));
    if (is_short && values.front() == "-1") return fewest_columns;
    return fits(given, columns_) ? columns_ : usual_columns;
  }

  /// The rest of a row, whose values something else follows or not.
  Result<void> end_row(const Head& head, Words rest, bool is_followed) {
    rest.resize(count_values(rest, 0));
    Measurement row;
    const std::size_t given = rest.size();
    const std::size_t columns = columns_of(rest);
    if (!fits(given, columns)) {
      return refuse(fmt::format("a row with {} behind its type and operation", counted(given, "column")),
                    "rows end in time, algbw, busbw and #wrong, once or twice, and may have a root before them");
    }
    if (given % columns == 1) {
      if (const auto root = parse_whole<std::int64_t>(rest.front()); root && *root >= 0) row.root = rest.front();
      rest.erase(rest.begin());
    }
    if (times_callers_) {
      return refuse(
          "these are times of the calling threads (cputime), which say when a call returned, not when it was done",
          "measure without -C");
    }
    rows_in_run_ = true;
    if (head.size == 0) {
      ++empty_rows_;
      return {};
    }
    row.collective = !collective_.empty()         ? collective_
                     : !hints_.collective.empty() ? hints_.collective
                                                  : collective_of_file_name(name_);
    row.ranks = ranks_;
    row.size = {head.size};
    row.type = head.type;
    row.run = run_;
    row.line = line_;
    const auto first = read_time(rest[0]);
    if (!first) return tl::unexpected(first.error());
    row.seconds = *first;
    if (const auto rate = nccl_tests::parse_decimal(rest[2]); rate && *rate > 0) row.busbw = *rate * 1e9;
    if (columns > wrong_column) row.wrong = read_wrong(rest[wrong_column]);
    auto& rates = rates_.emplace_back();
    rates.push_back({std::string(rest[1]), std::string(rest[2])});
    if (rest.size() > columns) {
      const auto second = read_time(rest[columns]);
      if (!second) return tl::unexpected(second.error());
      row.in_place_seconds = *second;
      rates.push_back({std::string(rest[columns + 1]), std::string(rest[columns + 2])});
      const auto wrong = columns > wrong_column ? read_wrong(rest[columns + wrong_column]) : std::nullopt;
      if (row.wrong && wrong) *row.wrong += *wrong;
    } else if (only_in_place_) {
      row.in_place_seconds = row.seconds;
    } else if (is_followed) {
      halves_.push_back(line_);
    }
    has_pairs_ = has_pairs_ || rest.size() > columns;
    measurements_.rows.push_back(std::move(row));
    return {};
  }

  Result<double> read_time(std::string_view word) {
    const auto microseconds = nccl_tests::parse_decimal(word);
    constexpr double longest = 1e15;
    if (!microseconds || *microseconds < 0 || *microseconds > longest) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}: '{}' is not a time in microseconds", name_, line_, word),
                  "repair the row, or take it out");
    }
    return *microseconds * 1e-6;
  }

  /// Elements that came out wrong. The column "error" of old versions is a relative error, not a count.
  [[nodiscard]] std::optional<std::int64_t> read_wrong(std::string_view word) const {
    const auto wrong = nccl_tests::parse_decimal(word);
    constexpr double most = 1e18;
    if (!wrong || counts_error_ || *wrong < 0 || *wrong > most) return std::nullopt;
    return static_cast<std::int64_t>(*wrong);
  }

  void read_comment(std::string_view line, const Words& words) {
    if (contains(line, "Rank") && contains(line, "Pid")) return read_device(words);
    for (const char* start : {"nThread", "nccl-tests version", "Collective test starting", "Using devices"}) {
      if (contains(line, start)) begin_run();
    }
    if (contains(line, "Collective test starting")) {
      read_program(words.back());
    }
    if (contains(line, "busbw") && contains(line, "time")) read_heading(words);
    if (contains(line, "-place")) only_in_place_ = !contains(line, "out-of-place");
    if (contains(line, "Out of bounds values") && !contains(line, " OK")) warn("values out of bounds");
  }

  /// The names of the columns: how many each group has from its time on, and what its fourth counts.
  void read_heading(const Words& words) {
    const auto is_time = [](std::string_view word) {
      return word == "time" || word == "cputime" || word.starts_with("time(");
    };
    const auto first = std::ranges::find_if(words, is_time);
    if (first == words.end()) return;
    times_callers_ = *first == "cputime";
    const auto second = std::find_if(first + 1, words.end(), is_time);
    has_pairs_ = has_pairs_ || second != words.end();
    const auto count = static_cast<std::size_t>(second - first);
    columns_ = std::max(count, fewest_columns);
    counts_error_ = count > wrong_column && *(first + wrong_column) == "error";
  }

  void read_device(const Words& words) {
    const auto rank = std::ranges::find(words, "Rank");
    if (rank == words.end() || rank + 1 == words.end()) return;
    const auto number = parse_whole<std::uint32_t>(*(rank + 1));
    if (!number || *number >= max_ranks) return;
    // With NCCL_TESTS_SPLIT groups run at once, each by itself.
    const auto group = std::ranges::find(words, "Group");
    const bool is_other = group != words.end() && group + 1 != words.end() && *(group + 1) != "0";
    if (!is_other) ++devices_of_first_group_;
    has_groups_ = has_groups_ || is_other;
    listed_ranks_ = std::max(listed_ranks_, *number + 1);
    ranks_ = has_groups_ ? devices_of_first_group_ : listed_ranks_;
  }

  void read_program(std::string_view program) {
    const auto found = collective_of_program(program);
    if (!found) return;
    collective_ = *found;
    if (sends_unequal_blocks(program)) unequal_runs_.insert(run_);
  }

  /// A line that is no row: the command that was run, or a failure.
  void read_other(std::string_view line, const Words& words) {
    for (const std::string_view word : words) {
      if (!collective_of_program(word)) continue;
      begin_run();
      read_program(word);
    }
    if (contains(line, "Test NCCL failure") || contains(line, "Test CUDA failure") || contains(line, "Test failure")) {
      warn("the test failed here");
    }
  }

  void say_left_out() {
    if (has_pairs_ && !halves_.empty()) {
      measurements_.warnings.push_back(
          fmt::format("{}:{}: the in-place times of {} are not in it, as other text follows", name_, halves_.front(),
                      counted(halves_.size(), "row")));
    }
    if (empty_rows_ == 0) return;
    measurements_.warnings.push_back(fmt::format("{}: {} of 0 bytes {} left out", name_, counted(empty_rows_, "row"),
                                                 empty_rows_ == 1 ? "is" : "are"));
  }

  /// Where nothing names what was measured, more bus than algorithm bandwidth does.
  void tell_collective() {
    std::set<std::uint32_t> runs;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      const Measurement& row = measurements_.rows[i];
      if (row.collective.empty() && nccl_tests::are_of_all_reduce(rates_[i])) runs.insert(row.run);
    }
    for (Measurement& row : measurements_.rows) {
      if (row.collective.empty() && runs.contains(row.run)) row.collective = "all_reduce";
    }
  }

  /// Where the devices are not listed, or not all of them, bandwidths tell the ranks.
  void tell_ranks() {
    using Rates = std::vector<nccl_tests::PrintedRates>;
    std::map<std::pair<std::uint32_t, std::string>, Rates> of_run;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      Rates& all = of_run[{measurements_.rows[i].run, measurements_.rows[i].collective}];
      all.insert(all.end(), rates_[i].begin(), rates_[i].end());
    }
    std::map<std::pair<std::uint32_t, std::string>, std::optional<RankRange>> implied;
    for (const auto& [of, rates] : of_run) implied[of] = nccl_tests::implied_ranks(of.second, rates);
    std::set<std::uint32_t> said;
    for (std::size_t i = 0; i < rates_.size(); ++i) {
      Measurement& row = measurements_.rows[i];
      auto range = implied[{row.run, row.collective}];
      // In a table of several runs each row has a number of ranks of its own.
      if (!range && row.ranks == 0) range = nccl_tests::implied_ranks(row.collective, rates_[i]);
      if (!range || (row.ranks != 0 && range->allows(row.ranks))) continue;
      const std::uint32_t listed = row.ranks;
      row.ranks = range->least == range->most ? range->least : 0;
      row.implied_ranks = *range;
      if (listed == 0 || !said.insert(row.run).second) continue;
      measurements_.warnings.push_back(fmt::format("{}:{}: it lists devices of {}, and its bandwidths are those of {}",
                                                   name_, row.line, counted(listed, "rank"), describe_ranks(row)));
    }
  }

  void begin_run() {
    if (!rows_in_run_) return;
    rows_in_run_ = false;
    pending_.reset();
    ++run_;
    ranks_ = listed_ranks_ = devices_of_first_group_ = 0;
    collective_.clear();
    counts_error_ = only_in_place_ = has_groups_ = times_callers_ = false;
    columns_ = usual_columns;
  }

  void warn(std::string_view what) { measurements_.warnings.push_back(fmt::format("{}:{}: {}", name_, line_, what)); }

  [[nodiscard]] tl::unexpected<Error> refuse(const std::string& what, const char* help) const {
    return fail(ErrorCode::invalid_input, fmt::format("{}:{}: {}", name_, line_, what), help);
  }

  std::string name_;
  const NcclTestsHints& hints_;
  Measurements measurements_;
  std::size_t line_ = 0;
  std::uint32_t run_ = 0;
  std::uint32_t ranks_ = 0;
  std::uint32_t listed_ranks_ = 0;
  std::uint32_t devices_of_first_group_ = 0;
  std::string collective_;
  std::set<std::uint32_t> unequal_runs_;  // Of alltoallv_perf.
  bool rows_in_run_ = false;
  std::size_t columns_ = usual_columns;  // Of each group.
  std::size_t empty_rows_ = 0;
  std::vector<std::vector<nccl_tests::PrintedRates>> rates_;  // By row.
  bool counts_error_ = false;
  bool times_callers_ = false;
  bool has_groups_ = false;
  bool only_in_place_ = false;
  bool has_pairs_ = false;           // Some row has in-place times, or a heading says so.
  std::vector<std::size_t> halves_;  // Lines of rows with other text where in-place times may be.
  std::optional<Head> pending_;
};

}  // namespace

Result<Measurements> read_nccl_tests_text(std::string_view text, std::string_view name, const NcclTestsHints& hints) {
  auto rows = TextReader(name, hints).read(text);
  if (rows || text.ends_with('\n')) return rows;
  // A run that is still going on, or was ended, leaves a part of a row.
  auto without = TextReader(name, hints).read(text.substr(0, text.rfind('\n') + 1));
  if (!without) return rows;
  without->warnings.push_back(fmt::format("{}: the last row is cut, and left out", name));
  return without;
}

}  // namespace espalier::compare
