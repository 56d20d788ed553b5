#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "compare/read/json_values.h"
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
  const auto titles = nccl_tests::split_words(header);
  // Vendors leave the peak out, and some tests have a column more in front: "BW average[MiB/sec]" is two words.
  std::size_t column = 0;
  for (std::size_t i = 0; i < titles.size(); ++i) {
    if (titles[i] == "BW") continue;
    if (titles[i].starts_with("average["))
      return PerftestTable{column, titles[i] == "average[Gb/sec]" ? gigabit : mebibyte};
    ++column;
  }
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

/// What --out_json writes: the settings and the last size. It does not say whether rates are in MiB or gigabits a
/// second, but the rate of messages beside them does.
class PerftestJson {
 public:
  explicit PerftestJson(std::string_view text) : json_(text) {}

  bool read() {
    std::string_view key;
    std::string_view ignored;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      if (!(key == "test_info" || key == "results" ? read_object() : json_.read_raw(ignored))) return false;
    }
    return !json_.failed();
  }

  [[nodiscard]] const JsonCursor::Failure& failure() const { return json_.failure(); }
  [[nodiscard]] bool is_bidirectional() const { return test_.find("Bidirectional") != std::string::npos; }
  [[nodiscard]] bool is_rate() const { return rate_ > 0; }
  [[nodiscard]] double size() const { return size_; }
  [[nodiscard]] double depth() const { return depth_; }
  /// Bytes a second.
  [[nodiscard]] double rate() const {
    const double counted = messages_ * 1e6 * size_;
    return std::abs(rate_ * gigabit - counted) < std::abs(rate_ * mebibyte - counted) ? rate_ * gigabit
                                                                                      : rate_ * mebibyte;
  }
  [[nodiscard]] double microseconds() const { return typical_ > 0 ? typical_ : average_; }
  [[nodiscard]] std::size_t at() const { return at_; }

 private:
  bool read_object() {
    std::string_view key;
    std::string_view value;
    at_ = json_.next_offset();
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      if (!json_.read_raw(value)) return false;
      const std::array<std::pair<std::string_view, double*>, 6> numbers = {{{"MsgSize", &size_},
                                                                            {"BW_average", &rate_},
                                                                            {"MsgRate", &messages_},
                                                                            {"TX_depth", &depth_},
                                                                            {"t_typical", &typical_},
                                                                            {"t_avg", &average_}}};
      for (const auto& [name, number] : numbers) {
        if (key == name) *number = number_in(value).value_or(0);
      }
      if (key == "test") test_ = value;
    }
    return !json_.failed();
  }

  JsonCursor json_;
  std::string test_;
  double size_ = 0, rate_ = 0, messages_ = 0, depth_ = usual_depth, typical_ = 0, average_ = 0;
  std::size_t at_ = 0;
};

}  // namespace

Result<Measurements> read_perftest_json(std::string_view text, std::string_view name) {
  PerftestJson json(text);
  if (!json.read()) {
    const TextPosition position = position_of(text, json.failure().offset);
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:{}:{}: {}", name, position.line, position.column, json.failure().message),
                json.failure().help);
  }
  Measurements table;
  table.file = name;
  table.origin = "perftest";
  const std::size_t line = position_of(text, json.at()).line;
  const bool is_both = json.is_rate() && json.is_bidirectional();
  const double bytes = json.is_rate() ? json.size() * json.depth() : json.size();
  const double seconds = json.is_rate() ? (is_both ? 2 : 1) * bytes / json.rate() : json.microseconds() * 1e-6;
  const bool is_small = json.is_rate() && json.size() < smallest_in_stream;
  if (!is_small && is_measured(bytes, seconds)) {
    table.rows.push_back(row_of_pair(is_both ? "send_recv" : "broadcast", bytes, seconds, line));
  }
  return with_rows(std::move(table), "perftest wrote no result that is read",
                   is_small ? "measure messages of 64 KiB and more: ib_write_bw -s 1048576" : "");
}

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
