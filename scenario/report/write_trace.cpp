#include "scenario/report/write_trace.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <map>
#include <ostream>
#include <queue>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace espalier::scenario {
namespace {

constexpr std::int64_t per_microsecond = 1'000'000;
constexpr std::size_t flush_bytes = std::size_t{1} << 20U;

/// A text inside quotes. Names are UTF-8 without control characters (topology/yaml/source_text.h), but those of traces
/// may be any bytes: what is not plain ASCII there is written as a question mark.
std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c >= ' ' && c <= '~' ? c : '?';
  }
  return result + '"';
}

std::string microseconds(std::int64_t picoseconds) {
  return fmt::format("{}.{:06}", picoseconds / per_microsecond, picoseconds % per_microsecond);
}

void add_names(std::string& text, const Job& job, const Topology& topology) {
  auto out = std::back_inserter(text);
  std::set<std::uint32_t> ranks;
  for (const Task& task : job.tasks()) ranks.insert(task.rank.value());
  for (const std::uint32_t rank : ranks) {
    fmt::format_to(out, "{{\"ph\":\"M\",\"pid\":{},\"name\":\"process_name\",\"args\":{{\"name\":{}}}}},\n", rank,
                   json_text(topology.rank_name(Rank(rank))));
  }
}

/// The thread of each task: its stream, or one of as many threads behind all streams as tasks without a stream overlap
/// at its rank.
std::vector<std::uint32_t> threads_of(const Job& job, const JobReport& report) {
  std::vector<std::uint32_t> threads(job.tasks().size());
  std::vector<TaskId> streamless;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    threads[i] = job.tasks()[i].stream;
    if (threads[i] == no_stream) streamless.emplace_back(i);
  }
  std::ranges::sort(streamless, {}, [&](TaskId id) {
    return std::tuple(job.task(id).rank, report.tasks[id.index()].start, report.tasks[id.index()].end, id);
  });
  using Free = std::pair<std::int64_t, std::uint32_t>;  // from when on, and which thread
  std::priority_queue<Free, std::vector<Free>, std::greater<>> free;
  for (std::size_t i = 0; i < streamless.size(); ++i) {
    const TaskId id = streamless[i];
    if (i == 0 || job.task(id).rank != job.task(streamless[i - 1]).rank) free = {};
    std::uint32_t thread = no_stream + static_cast<std::uint32_t>(free.size());
    if (!free.empty() && free.top().first <= report.tasks[id.index()].start) {
      thread = free.top().second;
      free.pop();
    }
    threads[id.index()] = thread;
    free.push({report.tasks[id.index()].end, thread});
  }
  return threads;
}

/// What happens on a thread: "compute", "all_gather, reduce_scatter", "wait".
std::string_view name_of(const Job& job, const Task& task) {
  if (task.kind == TaskKind::call) return to_string(job.call(task.call).kind);
  return task.kind == TaskKind::wait ? "wait" : "compute";
}

/// A wait of no length is there for the order of tasks alone.
bool is_shown(const Task& task, const TaskTime& time) { return task.kind != TaskKind::wait || time.end > time.start; }

/// Names each rank's threads by what happens on them, those of streams with their number.
void add_thread_names(std::string& text, const Job& job, const JobReport& report,
                      const std::vector<std::uint32_t>& threads) {
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::set<std::string_view>> names;
  for (std::size_t i = 0; i < threads.size(); ++i) {
    const Task& task = job.tasks()[i];
    if (is_shown(task, report.tasks[i])) names[{task.rank.value(), threads[i]}].insert(name_of(job, task));
  }
  for (const auto& [thread, on_it] : names) {
    const std::string what = fmt::format("{}", fmt::join(on_it, ", "));
    const std::string name = thread.second < no_stream ? fmt::format("stream {}: {}", thread.second, what) : what;
    fmt::format_to(std::back_inserter(text),
                   "{{\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"name\":\"thread_name\",\"args\":{{\"name\":{2}}}}},\n"
                   "{{\"ph\":\"M\",\"pid\":{0},\"tid\":{1},\"name\":\"thread_sort_index\","
                   "\"args\":{{\"sort_index\":{1}}}}},\n",
                   thread.first, thread.second, json_text(name));
  }
}

void add_task(std::string& text, const Job& job, const JobReport& report, TaskId id, std::uint32_t thread) {
  const Task& task = job.task(id);
  const TaskTime& time = report.tasks[id.index()];
  if (!is_shown(task, time)) return;
  auto out = std::back_inserter(text);
  const std::string_view category = task.kind == TaskKind::call   ? "call"
                                    : task.kind == TaskKind::wait ? "wait"
                                                                  : "compute";
  fmt::format_to(out, "{{\"ph\":\"X\",\"pid\":{},\"tid\":{},\"ts\":{},\"dur\":{},\"name\":{},\"cat\":\"{}\"",
                 task.rank.value(), thread, microseconds(time.start), microseconds(time.end - time.start),
                 json_text(job.label(task.label)), category);
  if (task.kind == TaskKind::call) {
    const Call& call = job.call(task.call);
    const CallTime& went = report.calls[task.call.index()];
    fmt::format_to(out, ",\"args\":{{\"call\":{},\"collective\":\"{}\",\"bytes\":{},\"ranks\":{}", task.call.value(),
                   to_string(call.kind), call.size.count, job.ranks(call.group).size());
    if (went.alone > 0) {
      fmt::format_to(out, ",\"slowdown\":{:.3f}",
                     static_cast<double>(went.duration()) / static_cast<double>(went.alone));
    }
    text += '}';
  }
  text += "},\n";
}

}  // namespace

Result<void> write_trace(std::ostream& out, const Job& job, const Topology& topology, const JobReport& report,
                         std::uint32_t every) {
  std::string text = "{\"displayTimeUnit\":\"ns\",";
  if (every > 1) text += fmt::format("\"otherData\":{{\"thinned\":\"1 task in {}\"}},", every);
  text += "\"traceEvents\":[\n";
  add_names(text, job, topology);
  const std::vector<std::uint32_t> threads = threads_of(job, report);
  add_thread_names(text, job, report, threads);
  for (std::size_t i = 0; i < job.tasks().size(); i += every) {
    add_task(text, job, report, TaskId(i), threads[i]);
    if (text.size() < flush_bytes) continue;
    out << text;
    text.clear();
  }
  out << text
      << fmt::format("{{\"ph\":\"M\",\"pid\":0,\"name\":\"elapsed_us\",\"args\":{{\"us\":{}}}}}\n]}}\n",
                     microseconds(report.elapsed.count));
  out.flush();
  if (!out) return fail(ErrorCode::unavailable, "the trace could not be written whole", "is there room for it?");
  return {};
}

}  // namespace espalier::scenario
