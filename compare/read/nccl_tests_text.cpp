#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "compare/read/nccl_tests.h"
#include "compare/read/nccl_tests_line.h"

namespace espalier::compare {
namespace {

using nccl_tests::CleanLine;
using Words = std::vector<std::string_view>;

constexpr std::size_t group_columns = 4;  // time, algbw, busbw, #wrong
constexpr std::uint32_t most_ranks = 1U << 24U;

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
    if (measurements_.rows.empty()) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:1: no row of nccl-tests is in this text", name_),
                  "rows have a size, a count, a type and times in microseconds");
    }
    return std::move(measurements_);
  }

 private:
  /// The first words of a row, before the times.
  struct Head {
    std::int64_t size = 0;
    std::string type;
  };

  Result<void> read_line(std::string_view raw) {
    const CleanLine clean = nccl_tests::clean_line(raw);
    const Words words = nccl_tests::split_words(clean.text);
    if (words.empty()) return {};
    if (words.front().starts_with('#')) {
      read_comment(clean.text, words);
      return {};
    }
    const bool is_row = words.size() >= 4 && parse_whole<std::int64_t>(words[0]) &&
                        parse_whole<std::int64_t>(words[1]) && is_type(words[2]) && nccl_tests::is_operation(words[3]);
    if (is_row) return begin_row(words, clean.was_interrupted);
    if (pending_ && !clean.was_interrupted && nccl_tests::parse_decimal(words.front())) {
      const Head head = *pending_;
      pending_.reset();
      return end_row(head, words);
    }
    read_other(clean.text, words);
    return {};
  }

  Result<void> begin_row(const Words& words, bool was_interrupted) {
    const Head head{*parse_whole<std::int64_t>(words[0]), std::string(words[2])};
    if (head.size < 0 || head.size > max_message_size.count) {
      return refuse(fmt::format("a size of {} bytes", words[0]), "sizes are from 0 to 1 PiB");
    }
    const Words rest(words.begin() + 4, words.end());
    pending_.reset();
    if (!was_interrupted) return end_row(head, rest);
    // The log came before the times; whole rows may also be followed by it.
    if (rest.size() >= group_columns) return end_row(head, rest);
    pending_ = head;
    return {};
  }

  Result<void> end_row(const Head& head, Words rest) {
    Measurement row;
    const bool has_root = rest.size() % group_columns == 1;
    if (has_root) {
      if (const auto root = parse_whole<std::int64_t>(rest.front()); root && *root >= 0) row.root = rest.front();
      rest.erase(rest.begin());
    }
    if (rest.size() != group_columns && rest.size() != 2 * group_columns) {
      return refuse(
          fmt::format("a row with {} columns behind its type and operation", rest.size() + (has_root ? 1 : 0)),
          "rows end in time, algbw, busbw and #wrong, once or twice, and may have a root before them");
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
    row.wrong = read_wrong(rest[group_columns - 1]);
    if (rest.size() > group_columns) {
      const auto second = read_time(rest[group_columns]);
      if (!second) return tl::unexpected(second.error());
      row.in_place_seconds = *second;
      const auto wrong = read_wrong(rest[2 * group_columns - 1]);
      if (row.wrong && wrong) *row.wrong += *wrong;
    } else if (only_in_place_) {
      row.in_place_seconds = row.seconds;
    }
    measurements_.rows.push_back(std::move(row));
    rows_in_run_ = true;
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
      if (auto found = collective_of_program(words.back())) collective_ = *found;
    }
    if (contains(line, "size") && contains(line, "count") && contains(line, "time")) {
      counts_error_ = contains(line, "error") && !contains(line, "#wrong");
    }
    if (contains(line, "-place")) only_in_place_ = !contains(line, "out-of-place");
    if (contains(line, "Out of bounds values") && !contains(line, " OK")) warn("values out of bounds");
  }

  void read_device(const Words& words) {
    const auto rank = std::ranges::find(words, "Rank");
    if (rank == words.end() || rank + 1 == words.end()) return;
    const auto number = parse_whole<std::uint32_t>(*(rank + 1));
    if (number && *number < most_ranks) ranks_ = std::max(ranks_, *number + 1);
  }

  /// A line that is no row: the command that was run, or a failure.
  void read_other(std::string_view line, const Words& words) {
    for (const std::string_view word : words) {
      if (auto found = collective_of_program(word)) {
        begin_run();
        collective_ = *found;
      }
    }
    if (contains(line, "Test NCCL failure") || contains(line, "Test CUDA failure") || contains(line, "Test failure")) {
      warn("the test failed here");
    }
  }

  void begin_run() {
    if (!rows_in_run_) return;
    rows_in_run_ = false;
    pending_.reset();
    ++run_;
    ranks_ = 0;
    collective_.clear();
    counts_error_ = only_in_place_ = false;
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
  std::string collective_;
  bool rows_in_run_ = false;
  bool counts_error_ = false;
  bool only_in_place_ = false;
  std::optional<Head> pending_;
};

}  // namespace

Result<Measurements> read_nccl_tests_text(std::string_view text, std::string_view name, const NcclTestsHints& hints) {
  return TextReader(name, hints).read(text);
}

}  // namespace espalier::compare
