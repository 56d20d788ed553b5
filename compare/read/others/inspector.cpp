#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>

#include "compare/read/json_values.h"
#include "compare/read/others/readers.h"
#include "compare/read/others/rows.h"

namespace espalier::compare {
namespace {

/// NCCL's names of its functions.
std::string collective_of_nccl(std::string_view name) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 8> names = {{{"AllReduce", "all_reduce"},
                                                                                   {"AllGather", "all_gather"},
                                                                                   {"ReduceScatter", "reduce_scatter"},
                                                                                   {"Broadcast", "broadcast"},
                                                                                   {"Reduce", "reduce"},
                                                                                   {"AlltoAll", "all_to_all"},
                                                                                   {"Gather", "gather"},
                                                                                   {"Scatter", "scatter"}}};
  for (const auto& [theirs, ours] : names) {
    if (theirs == name) return std::string(ours);
  }
  return {};
}

struct InspectorRecord {
  std::string id, collective;
  std::int64_t ranks = 0, number = 0, bytes = 0;
  double seconds = 0, algbw = 0;
};

bool read_header(JsonCursor& json, InspectorRecord& record) {
  std::string_view key, value;
  if (!json.begin_object()) return false;
  while (json.next_key(key)) {
    const bool read = key == "id"        ? json.read_raw(value)
                      : key == "n_ranks" ? json.read_integer(record.ranks)
                                         : json.read_raw(value);
    if (!read) return false;
    if (key == "id") record.id = value;
  }
  return !json.failed();
}

bool read_performance(JsonCursor& json, InspectorRecord& record) {
  std::string_view key, value;
  if (!json.begin_object()) return false;
  while (json.next_key(key)) {
    bool read = true;
    if (key == "coll") {
      read = json.read_string(value);
      record.collective = collective_of_nccl(value);
    } else if (key == "coll_sn") {
      read = json.read_integer(record.number);
    } else if (key == "coll_msg_size_bytes") {
      read = json.read_integer(record.bytes);
    } else if (key == "coll_exec_time_us") {
      read = read_duration(json, 1e-6, record.seconds);
    } else {
      read = json.read_raw(value);
      if (key == "coll_algobw_gbs") record.algbw = number_in(value).value_or(0) * 1e9;
    }
    if (!read) return false;
  }
  return !json.failed();
}

/// A record, whose header is its own, is that of the record before (version 4.3), or stands flat beside its values.
bool read_record(JsonCursor& json, InspectorRecord& record) {
  const std::size_t begin = json.next_offset();
  bool has_header = false, has_performance = false;
  std::string_view key, value;
  if (!json.begin_object()) return false;
  while (json.next_key(key)) {
    bool read = true;
    if (key == "header") {
      read = has_header = read_header(json, record);
    } else if (key == "n_ranks") {
      read = has_header = json.read_integer(record.ranks);
    } else if (key == "id") {
      read = json.read_raw(value);
      record.id = value;
    } else if (key == "coll_perf") {
      read = has_performance = read_performance(json, record);
    } else {
      read = json.read_raw(value);
    }
    if (!read) return false;
  }
  if (json.failed()) return false;
  constexpr std::int64_t max_ranks_of_record = 1 << 20;
  if (has_header && (record.ranks < 1 || record.ranks > max_ranks_of_record)) {
    return json.fail(begin, "n_ranks is a number of ranks");
  }
  if (!has_performance) record.collective.clear();  // Of a message between two ranks.
  return true;
}

/// S: of collectives with shards the record has the bytes of one rank or of all, by version; its bandwidth tells.
std::int64_t message_size(const InspectorRecord& record) {
  if (!counts_shards(record.collective)) return record.bytes;
  const double whole = static_cast<double>(record.bytes) * static_cast<double>(record.ranks);
  const double carried = record.algbw * record.seconds;
  const bool is_whole = carried > 0 && carried < 1.5 * static_cast<double>(record.bytes) && record.ranks > 1;
  return is_whole || whole > 9e15 ? record.bytes : record.bytes * record.ranks;
}

/// The values of labels of a metric: name="value".
std::map<std::string, std::string> labels_of(std::string_view text) {
  std::map<std::string, std::string> labels;
  while (true) {
    const std::size_t equals = text.find("=\"");
    if (equals == std::string_view::npos) return labels;
    const std::size_t end = text.find('"', equals + 2);
    if (end == std::string_view::npos) return labels;
    std::string_view name = text.substr(0, equals);
    while (!name.empty() && (name.front() == ',' || name.front() == ' ')) name.remove_prefix(1);
    labels.emplace(name, text.substr(equals + 2, end - equals - 2));
    text.remove_prefix(end + 1);
  }
}

/// busbw over algbw of nccl-tests.
double bus_factor(const std::string& collective, double ranks) {
  if (collective == "all_reduce") return 2 * (ranks - 1) / ranks;
  return counts_shards(collective) ? (ranks - 1) / ranks : 1;
}

/// Rates have six digits: the power of two that is within a part in a thousand is meant.
std::int64_t meant_size(double bytes) {
  const double power = std::exp2(std::round(std::log2(bytes)));
  constexpr double printed = 1e-3;
  return std::llround(std::abs(power / bytes - 1) < printed ? power : bytes);
}

struct Metric {
  std::optional<double> busbw, microseconds;
  std::size_t line = 0;
};

}  // namespace

Result<Measurements> read_nccl_inspector(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "nccl-inspector";
  std::map<std::tuple<std::string, std::string, std::int64_t>, std::pair<InspectorRecord, std::size_t>> calls;
  LineCounter lines(text);
  InspectorRecord header;
  for (std::size_t at = JsonCursor(text).next_offset(); at < text.size();) {
    const std::size_t begin = at;
    JsonCursor record_cursor(text);
    record_cursor.seek(begin);
    InspectorRecord record{.id = header.id, .ranks = header.ranks};
    if (!read_record(record_cursor, record)) {
      if (!calls.empty() && text.find('\n', begin) == std::string_view::npos) {
        table.warnings.push_back(fmt::format("{}: the last record is cut, and left out", name));
        break;
      }
      const TextPosition position = position_of(text, record_cursor.failure().offset);
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", name, position.line, position.column, record_cursor.failure().message),
                  record_cursor.failure().help);
    }
    at = record_cursor.next_offset();
    header = record;
    if (record.collective.empty() || !is_measured(static_cast<double>(record.bytes), record.seconds)) continue;
    const auto [place, is_new] =
        calls.try_emplace({record.id, record.collective, record.number}, record, lines.line_of(begin));
    if (!is_new && record.seconds < place->second.first.seconds) place->second.first = record;
  }
  CallTable rows;
  for (const auto& [key, call] : calls) {
    const std::int64_t size = message_size(call.first);
    if (!is_measured(static_cast<double>(size), call.first.seconds)) continue;
    rows.add(call.first.collective, static_cast<std::uint32_t>(call.first.ranks), size, call.first.seconds,
             call.second);
  }
  table.rows = rows.rows();
  return with_rows(std::move(table), "the inspector recorded no collective of a known kind");
}

Result<Measurements> read_nccl_inspector_metrics(std::string_view text, std::string_view name) {
  Measurements table;
  table.file = name;
  table.origin = "nccl-inspector";
  std::map<std::string, Metric> metrics;  // By labels.
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const std::size_t end = rest.find('\n');
    std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    ++number;
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const bool is_rate = line.starts_with("nccl_bus_bandwidth_gbs{");
    if (!is_rate && !line.starts_with("nccl_collective_exec_time_microseconds{")) continue;
    const std::size_t open = line.find('{'), close = line.rfind('}');
    const auto value =
        close == std::string_view::npos || close + 1 >= line.size() ? std::nullopt : number_in(line.substr(close + 1));
    if (!value || close < open) {
      return fail(ErrorCode::invalid_input, fmt::format("{}:{}:1: a metric is NAME{{LABELS}} VALUE", name, number));
    }
    Metric& metric = metrics[std::string(line.substr(open, close - open))];
    (is_rate ? metric.busbw : metric.microseconds) = *value;
    if (metric.line == 0) metric.line = number;
  }
  CallTable rows;
  for (const auto& [text_of_labels, metric] : metrics) {
    const auto labels = labels_of(std::string_view(text_of_labels).substr(1));
    const auto ranks = labels.find("nranks"), function = labels.find("collective");
    if (!metric.busbw || !metric.microseconds || ranks == labels.end() || function == labels.end()) continue;
    const double count = number_in(ranks->second).value_or(0);
    const std::string collective = collective_of_nccl(function->second);
    constexpr double max_count = 1 << 20;
    if (collective.empty() || !(count >= 2 && count <= max_count)) continue;
    const double seconds = *metric.microseconds * 1e-6;
    const double bytes = *metric.busbw * 1e9 * seconds / bus_factor(collective, count);
    if (!is_measured(bytes, seconds)) continue;
    rows.add(collective, static_cast<std::uint32_t>(count), meant_size(bytes), seconds, metric.line);
  }
  table.rows = rows.rows();
  return with_rows(std::move(table), "no collective has both its bus bandwidth and its time");
}

}  // namespace espalier::compare
