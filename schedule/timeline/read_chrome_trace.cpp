#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>
#include <map>
#include <optional>
#include <utility>

#include "schedule/json/json_cursor.h"
#include "schedule/timeline/chrome_trace.h"
#include "schedule/timeline/decimal_time.h"

namespace espalier {
namespace {

constexpr std::array all_phases = {Phase::send, Phase::wire, Phase::recv, Phase::reduce};

/// The values of the keys that matter, as they are written; empty where there are none.
struct Event {
  std::string_view ph, name, pid, tid, ts, dur, args;
};

struct Arguments {
  std::string_view transfer, chunk, phase, lane, lane_name;
};

/// A whole number of 32 bits as it is written.
std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (status != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

/// Reads an object; `find(key)` says where the text of the key's value goes, or null where it does not matter.
template <class Find>
bool read_members(JsonCursor& json, const Find& find) {
  if (!json.begin_object()) return false;
  std::string_view key;
  std::string_view ignored;
  while (json.next_key(key)) {
    std::string_view* const found = find(key);
    if (!json.read_raw(found != nullptr ? *found : ignored)) return false;
  }
  return !json.failed();
}

/// Where the members of an object go, by name.
template <std::size_t count>
auto sort_into(const std::array<std::pair<std::string_view, std::string_view*>, count>& places) {
  return [&places](std::string_view key) -> std::string_view* {
    for (const auto& [name, place] : places) {
      if (name == key) return place;
    }
    return nullptr;
  };
}

class TraceReader {
 public:
  explicit TraceReader(std::string_view text) : text_(text), json_(text) {}

  Result<Timeline> read(std::string_view name) {
    if (read_document() && json_.at_end() && check_lanes()) return std::move(timeline_);
    const JsonCursor::Failure& failure = json_.failure();
    const TextPosition position = position_of(text_, failure.offset);
    return fail(ErrorCode::invalid_input,
                fmt::format("{}:{}:{}: {}", name, position.line, position.column, failure.message), failure.help);
  }

 private:
  struct Thread {
    std::uint32_t lane = 0;
    bool is_link = false;
  };
  using Lanes = std::map<std::uint32_t, std::string>;

  bool read_document() {
    if (!json_.begin_object()) return false;
    std::string_view key;
    while (json_.next_key(key)) {
      std::string_view ignored;
      const bool read = key == "otherData"     ? read_header()
                        : key == "traceEvents" ? read_events()
                                               : json_.read_raw(ignored);
      if (!read) return false;
    }
    if (json_.failed()) return false;
    return is_timeline_ || json_.fail(0, "the file is not a timeline: otherData has no \"espalier_timeline\": 1");
  }

  bool read_header() {
    std::string_view version, title, origin;
    const std::array<std::pair<std::string_view, std::string_view*>, 3> places{
        {{"espalier_timeline", &version}, {"title", &title}, {"origin", &origin}}};
    if (!read_members(json_, sort_into(places))) return false;
    is_timeline_ = version == "1";
    return take_text(title, timeline_.title) && take_text(origin, timeline_.origin);
  }

  /// The string that a value of the text is; an absent one leaves `result` as it is.
  bool take_text(std::string_view raw, std::string& result) {
    if (raw.empty()) return true;
    JsonCursor value(raw);
    std::string_view unquoted;
    if (!value.read_string(unquoted)) return json_.fail(offset_of(raw), value.failure().message);
    result = unquoted;
    return true;
  }

  [[nodiscard]] std::size_t offset_of(std::string_view part) const {
    return static_cast<std::size_t>(part.data() - text_.data());
  }

  bool read_events() {
    if (!json_.begin_array()) return false;
    constexpr std::size_t usual_span_bytes = 130;
    timeline_.spans.reserve(text_.size() / usual_span_bytes);  // at most a quarter of the text
    while (json_.next_element()) {
      begin_ = json_.next_offset();
      Event event;
      const std::array<std::pair<std::string_view, std::string_view*>, 7> places{{{"ph", &event.ph},
                                                                                  {"name", &event.name},
                                                                                  {"pid", &event.pid},
                                                                                  {"tid", &event.tid},
                                                                                  {"ts", &event.ts},
                                                                                  {"dur", &event.dur},
                                                                                  {"args", &event.args}}};
      if (!read_members(json_, sort_into(places)) || !take_event(event)) return false;
    }
    return !json_.failed();
  }

  bool take_event(const Event& event) {
    const bool is_span = event.ph == "\"X\"";
    const bool is_thread = event.ph == "\"M\"" && event.name == "\"thread_name\"";
    if ((!is_span && !is_thread) || !event.args.starts_with('{')) return true;
    Arguments arguments;
    const std::array<std::pair<std::string_view, std::string_view*>, 5> places{{{"transfer", &arguments.transfer},
                                                                                {"chunk", &arguments.chunk},
                                                                                {"phase", &arguments.phase},
                                                                                {"lane", &arguments.lane},
                                                                                {"lane_name", &arguments.lane_name}}};
    JsonCursor json(event.args);
    read_members(json, sort_into(places));
    return is_span ? take_span(event, arguments) : take_thread(event, arguments);
  }

  bool refuse(const char* why) { return json_.fail(begin_, fmt::format("this event {}", why)); }

  bool take_thread(const Event& event, const Arguments& arguments) {
    if (arguments.lane.empty() || arguments.lane_name.empty()) return true;
    const auto lane = parse_number(arguments.lane);
    const auto process = parse_number(event.pid);
    const auto thread = parse_number(event.tid);
    if (!lane || !process || !thread) return refuse("needs whole numbers as pid, tid and lane");
    const bool is_link = *process % 2 == 0;  // Ranks have odd numbers.
    std::string name;
    if (!take_text(arguments.lane_name, name)) return false;
    (is_link ? link_lanes_ : rank_lanes_).emplace(*lane, std::move(name));
    threads_[{*process, *thread}] = {*lane, is_link};
    return true;
  }

  bool take_span(const Event& event, const Arguments& arguments) {
    if (arguments.transfer.empty() || arguments.chunk.empty() || arguments.phase.empty()) return true;
    const auto transfer = parse_number(arguments.transfer);
    const auto chunk = parse_number(arguments.chunk);
    const auto process = parse_number(event.pid);
    const auto thread = parse_number(event.tid);
    if (!transfer || !chunk || !process || !thread) {
      return refuse("needs whole numbers as pid, tid, transfer and chunk");
    }
    std::string phase_name;
    if (!take_text(arguments.phase, phase_name)) return false;
    const auto phase = std::ranges::find_if(all_phases, [&](Phase each) { return to_string(each) == phase_name; });
    if (phase == all_phases.end()) return refuse("has a phase that is none of send, wire, recv, reduce");
    const auto lane = threads_.find({*process, *thread});
    if (lane == threads_.end()) return refuse("lies on a thread that no event before it names");
    if (lane->second.is_link != (*phase == Phase::wire)) return refuse("has a phase that belongs to the other process");
    const auto begin = parse_microseconds(event.ts);
    const auto duration = parse_microseconds(event.dur);
    if (!begin || !duration) return refuse("needs ts and dur that are whole numbers of picoseconds below 2^63");
    std::int64_t end = 0;
    if (duration->count < 0 || __builtin_add_overflow(begin->count, duration->count, &end)) {
      return refuse("ends before it begins, or past 2^63 ps");
    }
    timeline_.spans.push_back({lane->second.lane, TransferId(*transfer), *chunk, *phase, *begin, {end}});
    return true;
  }

  /// Lanes are 0, 1, 2, ...
  bool check_lanes() {
    const auto name = [](Lanes& lanes, std::vector<std::string>& names) {
      for (auto& [lane, lane_name] : lanes) {
        if (lane != names.size()) return false;
        names.push_back(std::move(lane_name));
      }
      return true;
    };
    return (name(rank_lanes_, timeline_.rank_names) && name(link_lanes_, timeline_.link_names)) ||
           json_.fail(0, "the timeline's lanes are not numbered 0, 1, 2, ...");
  }

  std::string_view text_;
  JsonCursor json_;
  std::size_t begin_ = 0;  // of the event that is being read
  Lanes rank_lanes_, link_lanes_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, Thread> threads_;
  bool is_timeline_ = false;
  Timeline timeline_;
};

}  // namespace

Result<Timeline> read_chrome_trace(std::string_view text, std::string_view name) {
  return TraceReader(text).read(name);
}

}  // namespace espalier
