#include <fmt/format.h>

#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "schedule/chrome_trace.h"
#include "schedule/decimal_time.h"
#include "schedule/json_output.h"

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

class TraceWriter {
 public:
  TraceWriter(std::ostream& out, const Timeline& timeline) : out_(out), timeline_(timeline) {}

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
  void put_process(int process, const char* name) {
    out_.print("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{},\"args\":{{\"name\":\"{}\"}}}},\n", process, name);
    out_.print("{{\"ph\":\"M\",\"name\":\"process_sort_index\",\"pid\":{0},\"args\":{{\"sort_index\":{0}}}}}", process);
  }

  /// The thread's id; describes the thread when it is new. A rank's first thread has its sends.
  std::size_t find_thread(std::uint32_t lane, Phase phase, std::size_t number) {
    const auto [found, added] = threads_.try_emplace(std::tuple(lane, phase, number), threads_.size() + 1);
    if (!added) return found->second;
    const bool is_link = phase == Phase::wire;
    const std::string& lane_name = is_link ? timeline_.link_names[lane] : timeline_.rank_names[lane];
    std::string name = lane_name;
    if (phase == Phase::recv || phase == Phase::reduce) name += " " + std::string(to_string(phase));
    if (number > 0) name += fmt::format(" ({})", number + 1);
    const int process = is_link ? link_process : rank_process;
    out_.print(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{},\"tid\":{},"
        "\"args\":{{\"name\":{},\"lane\":{},\"lane_name\":{}}}}}",
        process, found->second, in_quotes(name), lane, in_quotes(lane_name));
    out_.print(
        ",\n{{\"ph\":\"M\",\"name\":\"thread_sort_index\",\"pid\":{},\"tid\":{},\"args\":{{\"sort_index\":{}}}}}",
        process, found->second, lane);
    return found->second;
  }

  void put_span(const Span& span) {
    const std::size_t number = packers_[{span.lane, span.phase}].place(span.begin.count, span.end.count);
    const std::size_t thread = find_thread(span.lane, span.phase, number);
    out_.print(
        ",\n{{\"ph\":\"X\",\"name\":\"transfer {0}\",\"cat\":\"{1}\",\"pid\":{2},\"tid\":{3},\"ts\":{4},\"dur\":{5},"
        "\"args\":{{\"transfer\":{0},\"chunk\":{6},\"phase\":\"{1}\"}}}}",
        span.transfer.value(), to_string(span.phase), span.phase == Phase::wire ? link_process : rank_process, thread,
        format_microseconds(span.begin), format_microseconds(span.end - span.begin), span.chunk);
  }

  BufferedOutput out_;
  const Timeline& timeline_;
  std::map<std::pair<std::uint32_t, Phase>, ThreadPacker> packers_;
  std::map<std::tuple<std::uint32_t, Phase, std::size_t>, std::size_t> threads_;
};

}  // namespace

Result<void> write_chrome_trace(std::ostream& out, const Timeline& timeline) {
  TraceWriter(out, timeline).write();
  out.flush();
  if (!out) return fail(ErrorCode::unavailable, "the timeline could not be written in full");
  return {};
}

}  // namespace espalier
