#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/json/json_output.h"
#include "schedule/timeline/chrome_trace.h"
#include "schedule/timeline/decimal_time.h"

namespace espalier {
namespace {

/// Processes of ranks have odd numbers and those of links even ones. What was simulated and what ran have their own, so
/// that a viewer shows both together.
constexpr int simulated_ranks = 1, measured_ranks = 3;
/// Arrows from a send to its receive take more room than the spans do: larger timelines go without.
constexpr std::size_t max_spans_with_arrows = 200'000;

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

  std::array<char, 640> text_{};  // A span has at most 11 numbers of 21 letters between less than 220 others.
  std::size_t length_ = 0;
};

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Timeline& timeline)
      : out_(out),
        timeline_(timeline),
        lanes_(phase_count * std::max(timeline.rank_names.size(), timeline.link_names.size())),
        is_measured_(!timeline.origin.starts_with("simulation")),
        rank_process_(is_measured_ ? measured_ranks : simulated_ranks) {
    find_ends();
  }

  void write() {
    out_.print("{{\"displayTimeUnit\":\"ns\",\n\"otherData\":{{\"espalier_timeline\":1,\"title\":{},\"origin\":{}}},\n",
               in_quotes(timeline_.title), in_quotes(timeline_.origin));
    out_.print("\"traceEvents\":[\n");
    put_process(rank_process_, is_measured_ ? "measured ranks" : "simulated ranks");
    out_.print(",\n");
    put_process(rank_process_ + 1, is_measured_ ? "measured links" : "simulated links");
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
    const int process = is_link ? rank_process_ + 1 : rank_process_;
    out_.print(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
        "\"args\":{{\"name\":{},\"lane\":{},\"lane_name\":{}}}}}",
        process, thread, in_quotes(name), lane, in_quotes(lane_name));
    out_.print(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}",
        process, thread, lane);
    return thread;
  }

  /// From which rank to which each transfer goes, as far as its spans say.
  void find_ends() {
    constexpr std::size_t spans_of_ids = 64;  // Ids of transfers far beyond what the spans are of take no table.
    for (const Span& span : timeline_.spans) {
      const std::size_t transfer = span.transfer.index();
      if (span.phase == Phase::wire || transfer / spans_of_ids > timeline_.spans.size()) continue;
      if (transfer >= ends_.size()) ends_.resize(transfer + 1);
      (span.phase == Phase::send ? ends_[transfer].first : ends_[transfer].second) = span.lane + 1;
    }
  }

  /// "recv 3>5 chunk 2"; "recv transfer 7 chunk 2" where no span tells the ends.
  void add_name(const Span& span) {
    text_.add(to_string(span.phase));
    const std::size_t transfer = span.transfer.index();
    const auto [source, target] = transfer < ends_.size() ? ends_[transfer] : Ends();
    if (source > 0 && target > 0) {
      text_.add(" ");
      text_.add(std::uint64_t{source - 1});
      text_.add(">");
      text_.add(std::uint64_t{target - 1});
    } else {
      text_.add(" transfer ");
      text_.add(std::uint64_t{span.transfer.value()});
    }
    text_.add(" chunk ");
    text_.add(std::uint64_t{span.chunk});
  }

  void put_span(const Span& span) {
    const std::size_t number = lane_of(span.lane, span.phase).packer.place(span.begin.count, span.end.count);
    const std::size_t thread = find_thread(span.lane, span.phase, number);
    const std::string_view phase = to_string(span.phase);
    text_.clear();
    text_.add(",\n{\"ph\":\"X\",\"name\":\"");
    add_name(span);
    text_.add("\",\"cat\":\"");
    text_.add(phase);
    text_.add("\",\"pid\":");
    text_.add(static_cast<std::uint64_t>(span.phase == Phase::wire ? rank_process_ + 1 : rank_process_));
    text_.add(",\"tid\":");
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
    if (timeline_.spans.size() <= max_spans_with_arrows) put_arrow(span, thread);
  }

  /// One end of an arrow, as soon as both spans are written.
  struct ArrowEnd {
    std::size_t thread = 0;
    Picoseconds begin;
  };
  void put_arrow(const Span& span, std::size_t thread) {
    if (span.phase != Phase::send && span.phase != Phase::recv) return;
    const std::pair chunk(span.transfer.value(), span.chunk);
    const auto [other, is_first] = arrows_.try_emplace(chunk, span.phase, ArrowEnd{thread, span.begin});
    if (is_first || other->second.first == span.phase) return;
    const ArrowEnd own{thread, span.begin}, known = other->second.second;
    arrows_.erase(other);
    const bool is_send = span.phase == Phase::send;
    put_arrow_end('s', chunk, is_send ? own : known);
    put_arrow_end('f', chunk, is_send ? known : own);
  }
  void put_arrow_end(char end, const std::pair<std::uint32_t, std::uint32_t>& chunk, const ArrowEnd& at) {
    text_.clear();
    text_.add(end == 's' ? ",\n{\"ph\":\"s\"" : ",\n{\"ph\":\"f\",\"bp\":\"e\"");
    text_.add(",\"name\":\"chunk\",\"cat\":\"chunk\",\"id\":\"");
    text_.add(is_measured_ ? "m" : "s");
    text_.add(std::uint64_t{chunk.first});
    text_.add(".");
    text_.add(std::uint64_t{chunk.second});
    text_.add("\",\"pid\":");
    text_.add(static_cast<std::uint64_t>(rank_process_));
    text_.add(",\"tid\":");
    text_.add(std::uint64_t{at.thread});
    text_.add(",\"ts\":");
    text_.add(at.begin);
    text_.add("}");
    out_.append(text_.text());
  }

  BufferedOutput out_;
  const Timeline& timeline_;
  std::vector<Lane> lanes_;  // by lane, then phase
  bool is_measured_;
  int rank_process_;
  using Ends = std::pair<std::uint32_t, std::uint32_t>;  ///< Lanes of who sends and who receives, plus 1; 0: unknown.
  std::vector<Ends> ends_;                               ///< By transfer.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::pair<Phase, ArrowEnd>> arrows_;  ///< By transfer and chunk.
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
