#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/json/json_output.h"
#include "schedule/timeline/chrome_trace.h"
#include "schedule/timeline/decimal_time.h"

namespace espalier {
namespace {

constexpr int rank_process = 1;
constexpr int link_process = 2;
/// Deals the spans of one lane out to threads on which nothing overlaps; takes the first thread that is free.
class ThreadPacker {
 public:
  std::size_t place(std::int64_t begin, std::int64_t end) {
    while (!busy_.empty() && busy_.top().first <= begin) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    std::size_t thread = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      thread = free_.top();
      free_.pop();
    }
    busy_.emplace(end, thread);
    return thread;
  }

 private:
  using EndAndThread = std::pair<std::int64_t, std::size_t>;
  std::priority_queue<EndAndThread, std::vector<EndAndThread>, std::greater<>> busy_;
  std::priority_queue<std::size_t, std::vector<std::size_t>, std::greater<>> free_;
  std::size_t count_ = 0;
};

/// One span as text, in a place of its own: the writer makes no strings.
class SpanText {
 public:
  void add(std::string_view text) {
    std::memcpy(place(), text.data(), text.size());
    length_ += text.size();
  }
  void add(std::uint64_t number) { end_at(std::to_chars(place(), text_.data() + text_.size(), number).ptr); }
  void add(Picoseconds time) { end_at(put_microseconds(place(), time)); }
  [[nodiscard]] std::string_view text() const { return {text_.data(), length_}; }
  void clear() { length_ = 0; }

 private:
  char* place() { return text_.data() + length_; }
  void end_at(const char* end) { length_ = static_cast<std::size_t>(end - text_.data()); }

  std::array<char, 512> text_{};  // A span has at most 8 numbers of 21 letters between less than 200 others.
  std::size_t length_ = 0;
};

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Timeline& timeline)
      : out_(out),
        timeline_(timeline),
        lanes_(phase_count * std::max(timeline.rank_names.size(), timeline.link_names.size())) {}

  void write() {
    out_.print("{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"espalier_timeline\":1,\"title\":{},\"origin\":{}}},\n",
               in_quotes(timeline_.title), in_quotes(timeline_.origin));
    out_.print("\"traceEvents\":[\n");
    put_process(rank_process, "ranks");
    out_.print(",\n");
    put_process(link_process, "links");
    // Every lane is there, also one on which nothing happens.
    for (std::uint32_t i = 0; i < timeline_.rank_names.size(); ++i) find_thread(i, Phase::send, 0);
    for (std::uint32_t i = 0; i < timeline_.link_names.size(); ++i) find_thread(i, Phase::wire, 0);
    for (const Span& span : timeline_.spans) put_span(span);
    out_.print("\n]}}\n");
    out_.flush();
  }

 private:
  static constexpr std::size_t phase_count = 4;

  /// What happens on one lane in one phase, and the numbers of the threads that show it.
  struct Lane {
    ThreadPacker packer;
    std::vector<std::size_t> threads;
  };

  void put_process(int process, const char* name) {
    out_.print("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"{}\"}}}},\n", process, name);
    out_.print("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}}}}}", process);
  }

  Lane& lane_of(std::uint32_t lane, Phase phase) {
    return lanes_[phase_count * lane + static_cast<std::size_t>(phase)];
  }

  /// The thread's id; describes the thread when it is new. A rank's first thread has its sends.
  /// Requires: threads of one lane are asked for in the order of their numbers first.
  std::size_t find_thread(std::uint32_t lane, Phase phase, std::size_t number) {
    std::vector<std::size_t>& known = lane_of(lane, phase).threads;
    if (number < known.size()) return known[number];
    const std::size_t thread = ++thread_count_;
    known.push_back(thread);
    const bool is_link = phase == Phase::wire;
    const std::string& lane_name = is_link ? timeline_.link_names[lane] : timeline_.rank_names[lane];
    std::string name = lane_name;
    if (phase == Phase::recv || phase == Phase::reduce) name += " " + std::string(to_string(phase));
    if (number > 0) name += fmt::format(" ({})", number + 1);
    const int process = is_link ? link_process : rank_process;
    out_.print(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
        "\"args\":{{\"name\":{},\"lane\":{},\"lane_name\":{}}}}}",
        process, thread, in_quotes(name), lane, in_quotes(lane_name));
    out_.print(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}",
        process, thread, lane);
    return thread;
  }

  void put_span(const Span& span) {
    const std::size_t number = lane_of(span.lane, span.phase).packer.place(span.begin.count, span.end.count);
    const std::size_t thread = find_thread(span.lane, span.phase, number);
    const std::string_view phase = to_string(span.phase);
    text_.clear();
    text_.add(",\n{\"ph\":\"X\",\"name\":\"transfer ");
    text_.add(std::uint64_t{span.transfer.value()});
    text_.add("\",\"cat\":\"");
    text_.add(phase);
    text_.add(span.phase == Phase::wire ? "\",\"pid\":2,\"tid\":" : "\",\"pid\":1,\"tid\":");
    text_.add(std::uint64_t{thread});
    text_.add(",\"ts\":");
    text_.add(span.begin);
    text_.add(",\"dur\":");
    text_.add(span.end - span.begin);
    text_.add(",\"args\":{\"transfer\":");
    text_.add(std::uint64_t{span.transfer.value()});
    text_.add(",\"chunk\":");
    text_.add(std::uint64_t{span.chunk});
    text_.add(",\"phase\":\"");
    text_.add(phase);
    text_.add("\"}}");
    out_.append(text_.text());
  }

  BufferedOutput out_;
  const Timeline& timeline_;
  std::vector<Lane> lanes_;  // by lane, then phase
  std::size_t thread_count_ = 0;
  SpanText text_;
};

}  // namespace

Result<void> write_chrome_trace(std::ostream& out, const Timeline& timeline) {
  TraceWriter(out, timeline).write();
  out.flush();
  if (!out) return fail(ErrorCode::unavailable, "the timeline could not be written in full");
  return {};
}

}  // namespace espalier
