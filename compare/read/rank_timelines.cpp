#include "compare/read/rank_timelines.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <set>
#include <tuple>

#include "schedule/json/json_cursor.h"

namespace espalier::compare {
namespace {

constexpr std::int64_t ps_of_ns = 1000;

/// How far the spans of each file are from the clock of the first, in picoseconds.
class Shifts {
 public:
  explicit Shifts(const std::vector<RankTimeline>& parts) : parts_(parts), shifts_(parts.size()) {
    const TimelineClock& first = *parts.front().clock;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const TimelineClock& own = *parts[i].clock;
      const bool shares = own.boot == first.boot;
      shifts_[i] = ps_of_ns * (shares ? own.first_ns - first.first_ns : own.first_real_ns - first.first_real_ns);
    }
    std::set<std::string> boots;
    for (const RankTimeline& part : parts) boots.insert(part.clock->boot);
    for (const std::string& boot : boots) {
      if (boot != first.boot) balance(boot);
    }
  }
  [[nodiscard]] std::int64_t operator[](std::size_t part) const { return shifts_[part]; }

 private:
  using Message = std::tuple<TransferId, std::uint32_t>;

  /// When each message left, or arrived, at ranks of the first boot, or of another.
  [[nodiscard]] std::map<Message, std::int64_t> ends_of(Phase phase, const std::string& boot) const {
    std::map<Message, std::int64_t> ends;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].clock->boot != boot) continue;
      for (const Span& span : parts_[i].timeline.spans) {
        if (span.phase == phase) ends[{span.transfer, span.chunk}] = span.end.count + shifts_[i];
      }
    }
    return ends;
  }
  [[nodiscard]] std::optional<std::int64_t> fastest(const std::string& from, const std::string& to) const {
    const auto sent = ends_of(Phase::send, from), received = ends_of(Phase::recv, to);
    std::optional<std::int64_t> least;
    for (const auto& [message, end] : received) {
      const auto begin = sent.find(message);
      if (begin == sent.end()) continue;
      least = std::min(least.value_or(end - begin->second), end - begin->second);
    }
    return least;
  }
  void balance(const std::string& boot) {
    const std::string& first = parts_.front().clock->boot;
    const auto there = fastest(first, boot), back = fastest(boot, first);
    if (!there || !back) return;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      if (parts_[i].clock->boot == boot) shifts_[i] -= (*there - *back) / 2;
    }
  }

  const std::vector<RankTimeline>& parts_;
  std::vector<std::int64_t> shifts_;
};

Result<void> check_parts(const std::vector<RankTimeline>& parts) {
  std::map<std::uint32_t, std::string> file_of_rank;
  for (const RankTimeline& part : parts) {
    const auto refuse = [&](const std::string& what, const char* help) {
      return fail(ErrorCode::invalid_input, part.file + ":1:1: " + what, help);
    };
    if (!part.clock)
      return refuse("the timeline does not say what clock it is of", "only those of one rank are merged");
    if (part.timeline.rank_names != parts.front().timeline.rank_names) {
      return refuse("its ranks are not those of " + parts.front().file, "merge files of one communicator");
    }
    if (part.timeline.title != parts.front().timeline.title) {
      return refuse(fmt::format("it is of '{}', {} of '{}'", part.timeline.title, parts.front().file,
                                parts.front().timeline.title),
                    "merge files of one run");
    }
    for (const Span& span : part.timeline.spans) {
      const auto [known, is_new] = file_of_rank.emplace(span.lane, part.file);
      if (!is_new && known->second != part.file) {
        return refuse(fmt::format("{} is in {}, too", part.timeline.rank_names[span.lane], known->second),
                      "leave one of them out");
      }
    }
  }
  return {};
}

}  // namespace

std::optional<TimelineClock> read_timeline_clock(std::string_view text) {
  const std::size_t at = text.find("\"espalier_clock\":");
  const std::size_t events = text.find("\"traceEvents\"");
  if (at == std::string_view::npos || at > events) return std::nullopt;
  JsonCursor json(text);
  json.seek(at + std::string_view("\"espalier_clock\":").size());
  TimelineClock clock;
  std::string_view key, value;
  if (!json.begin_object()) return std::nullopt;
  while (json.next_key(key)) {
    const bool is_first = key == "first_ns", is_real = key == "first_real_ns", is_boot = key == "boot";
    const bool read = is_first  ? json.read_integer(clock.first_ns)
                      : is_real ? json.read_integer(clock.first_real_ns)
                      : is_boot ? json.read_string(value)
                                : json.read_raw(value);
    if (!read) return std::nullopt;
    if (is_boot) clock.boot = value;
  }
  constexpr std::int64_t latest = std::int64_t{1} << 61;  // 73 years
  const bool is_in_range =
      clock.first_ns >= 0 && clock.first_ns < latest && clock.first_real_ns >= 0 && clock.first_real_ns < latest;
  return json.failed() || clock.boot.empty() || !is_in_range ? std::nullopt : std::optional(clock);
}

Result<Timeline> merge_rank_timelines(const std::vector<RankTimeline>& parts) {
  if (auto checked = check_parts(parts); !checked) return tl::unexpected(checked.error());
  for (const RankTimeline& part : parts) {
    const std::int64_t apart = part.clock->first_real_ns - parts.front().clock->first_real_ns;
    constexpr std::int64_t most = std::int64_t{86'400} * 1'000'000'000;
    const bool shares = part.clock->boot == parts.front().clock->boot;
    const std::int64_t of_boot = part.clock->first_ns - parts.front().clock->first_ns;
    if (std::abs(shares ? of_boot : apart) > most) {
      return fail(ErrorCode::invalid_input, part.file + ":1:1: it is more than a day from " + parts.front().file,
                  "merge files of one run");
    }
  }
  const Shifts shifts(parts);
  Timeline merged;
  merged.title = parts.front().timeline.title;
  merged.origin = parts.front().timeline.origin;
  merged.rank_names = parts.front().timeline.rank_names;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    for (Span span : parts[i].timeline.spans) {
      span.begin.count += shifts[i];
      span.end.count += shifts[i];
      merged.spans.push_back(span);
    }
  }
  std::ranges::stable_sort(merged.spans, [](const Span& a, const Span& b) {
    return std::pair(a.begin, a.lane) < std::pair(b.begin, b.lane);
  });
  const Picoseconds start = merged.spans.empty() ? Picoseconds{} : merged.spans.front().begin;
  for (Span& span : merged.spans) {
    span.begin = span.begin - start;
    span.end = span.end - start;
  }
  return merged;
}

}  // namespace espalier::compare
