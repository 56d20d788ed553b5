#include "compare/read/rank_calls.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/counted.h"
#include "compare/read/json_values.h"

namespace espalier::compare {
namespace {

/// The values of an object's members, as they are written. Nothing where it is none.
std::map<std::string, std::string_view> members_of(std::string_view raw) {
  std::map<std::string, std::string_view> members;
  JsonCursor json(raw);
  std::string_view key, value;
  if (!raw.starts_with('{') || !json.begin_object()) return members;
  while (json.next_key(key)) {
    const std::string name(key);
    if (!json.read_raw(value)) break;
    members[name] = value;
  }
  return members;
}

std::string text_in(const std::map<std::string, std::string_view>& members, const std::string& key) {
  const auto found = members.find(key);
  if (found == members.end()) return {};
  std::string_view raw = found->second;
  if (raw.size() >= 2 && raw.front() == '"') raw = raw.substr(1, raw.size() - 2);
  return std::string(raw);
}

std::optional<double> number_of(const std::map<std::string, std::string_view>& members, const std::string& key) {
  const auto found = members.find(key);
  return found == members.end() ? std::nullopt : number_in(found->second);
}

std::optional<std::int64_t> whole_of(const std::map<std::string, std::string_view>& members, const std::string& key) {
  const auto value = number_of(members, key);
  constexpr double limit = 9e15;
  if (!value || *value < 0 || *value > limit) return std::nullopt;
  return static_cast<std::int64_t>(*value);
}

/// The name of a group: a string, or the last one of a list such as ["0", "default_pg"].
std::string group_in(std::string_view raw) {
  const std::size_t end = raw.rfind('"');
  if (end == std::string_view::npos || end == 0) return std::string(raw);
  const std::size_t begin = raw.rfind('"', end - 1);
  return std::string(raw.substr(begin == std::string_view::npos ? 0 : begin + 1, end - begin - 1));
}

class RecordReader {
 public:
  RecordReader(std::string_view text, std::string_view name, std::uint32_t otherwise) : text_(text), json_(text) {
    record_.file = name;
    record_.rank = otherwise;
  }

  Result<RankCalls> read() {
    if (!read_document() || !json_.at_end()) {
      const TextPosition position = position_of(text_, json_.failure().offset);
      return fail(ErrorCode::invalid_input,
                  fmt::format("{}:{}:{}: {}", record_.file, position.line, position.column, json_.failure().message),
                  json_.failure().help);
    }
    if (record_.calls.empty() && unnamed_ > 0) {
      return fail(ErrorCode::unsupported,
                  fmt::format("{}:1:1: none of {} of NCCL says which call it carries out", record_.file,
                              counted(unnamed_, "kernel")),
                  "PyTorch 2.3 and later write it beside each kernel");
    }
    if (record_.calls.empty()) {
      return fail(ErrorCode::invalid_input,
                  record_.file + ":1:1: no collective of a GPU with its time is in this record",
                  "record with activities CUDA, or with TORCH_NCCL_ENABLE_TIMING=1");
    }
    std::ranges::stable_sort(record_.calls, {}, &RankCall::begin);
    return std::move(record_);
  }

 private:
  bool read_document() {
    std::string_view key, value;
    if (!json_.begin_object()) return false;
    while (json_.next_key(key)) {
      bool read = true;
      if (key == "traceEvents") {
        read = read_array(json_, [&] { return json_.read_raw(value) && take_kernel(value); });
      } else if (key == "entries") {
        read = read_array(json_, [&] { return json_.read_raw(value) && take_entry(value); });
      } else if (key == "distributedInfo") {
        read = json_.read_raw(value);
        if (read) take_rank(whole_of(members_of(value), "rank"));
      } else if (key == "rank") {
        read = json_.read_raw(value);
        const auto rank = number_in(value);
        if (read && rank && *rank >= 0) take_rank(static_cast<std::int64_t>(*rank));
      } else {
        read = json_.read_raw(value);
      }
      if (!read) return false;
    }
    return !json_.failed();
  }

  void take_rank(std::optional<std::int64_t> rank) {
    constexpr std::int64_t max_rank = 10'000'000;
    if (rank && *rank <= max_rank) record_.rank = static_cast<std::uint32_t>(*rank);
  }

  void take(RankCall call, std::optional<double> begin, std::optional<double> length, double unit) {
    constexpr double longest = 1e9, latest = 1e13;  // Seconds; of clocks that count from any time.
    if (!begin || !length || *length < 0 || *length * unit > longest || std::abs(*begin) > latest) return;
    call.begin = *begin;
    call.seconds = *length * unit;
    record_.calls.push_back(std::move(call));
  }

  /// A kernel of a Kineto trace: {"ph": "X", "cat": "kernel", "ts", "dur" in us, "args": {"Collective name", ...}}.
  bool take_kernel(std::string_view raw) {
    const auto event = members_of(raw);
    if (text_in(event, "ph") != "X" || text_in(event, "cat") != "kernel") return true;
    const auto arguments = event.find("args");
    if (arguments == event.end()) return true;
    const auto given = members_of(arguments->second);
    if (!given.contains("Collective name") && text_in(event, "name").starts_with("nccl")) ++unnamed_;
    RankCall call{text_in(given, "Process Group Name"), text_in(given, "Collective name"), whole_of(given, "Seq"), 0,
                  0};
    // Sends and receives are of two ranks: they wait for each other one by one.
    if (call.collective.empty() || call.collective == "send" || call.collective == "recv") return true;
    constexpr double microseconds = 1e-6;
    auto begin = number_of(event, "ts");
    if (begin) *begin *= microseconds;
    take(std::move(call), begin, number_of(event, "dur"), microseconds);
    return true;
  }

  /// An entry of a flight recorder's dump.
  bool take_entry(std::string_view raw) {
    const auto entry = members_of(raw);
    RankCall call{group_in(text_in(entry, "process_group")), text_in(entry, "profiling_name"),
                  whole_of(entry, "collective_seq_id"), 0, 0};
    if (text_in(entry, "is_p2p") == "true" || call.collective.empty()) return true;
    constexpr double nanoseconds = 1e-9, milliseconds = 1e-3;
    auto begin = number_of(entry, "time_created_ns");
    if (begin) *begin *= nanoseconds;
    take(std::move(call), begin.value_or(0), number_of(entry, "duration_ms"), milliseconds);
    return true;
  }

  std::string_view text_;
  JsonCursor json_;
  RankCalls record_;
  std::size_t unnamed_ = 0;  ///< Kernels of NCCL of which nothing more is known.
};

}  // namespace

bool is_rank_record(std::string_view text) {
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos) return false;
  if (text[text.find_first_not_of(" \t\r\n")] != '{') return false;
  if (text.find("\"espalier_timeline\"") != std::string_view::npos) return false;
  const auto has = [&](std::string_view key) { return text.find(key) != std::string_view::npos; };
  return has("\"traceEvents\"") || (has("\"entries\"") && has("\"pg_config\""));
}

Result<RankCalls> read_rank_calls(std::string_view text, std::string_view name, std::uint32_t otherwise) {
  return RecordReader(text, name, otherwise).read();
}

}  // namespace espalier::compare
