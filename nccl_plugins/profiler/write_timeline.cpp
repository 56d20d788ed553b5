#include "nccl_plugins/profiler/write_timeline.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <memory>
#include <set>
#include <string_view>
#include <vector>

namespace espalier::nccl_plugins::profiler {
namespace {

/// What stands in the file.
struct WrittenSpan {
  std::int64_t begin, end;
  std::uint32_t transfer;
  std::int32_t chunk;
  const char* phase;
  std::string name;
};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// NCCL's name of a function as Espalier's.
std::string collective_name(const char* function) {
  constexpr std::array<std::pair<std::string_view, const char*>, 5> names = {{{"AllReduce", "all_reduce"},
                                                                              {"AllGather", "all_gather"},
                                                                              {"ReduceScatter", "reduce_scatter"},
                                                                              {"Broadcast", "broadcast"},
                                                                              {"Reduce", "reduce"}}};
  for (const auto& [theirs, ours] : names) {
    if (theirs == function) return ours;
  }
  return function;
}

/// The same number on both ranks of a transfer, below 2^31.
std::uint32_t transfer_number(std::uint64_t call, int channel, int from, int to) {
  std::uint64_t hash = call;
  for (const int part : {channel, from, to}) hash = (hash ^ static_cast<std::uint64_t>(part + 1)) * 0x9E3779B97F4A7C15U;
  return static_cast<std::uint32_t>((hash ^ (hash >> 32U)) & 0x7FFFFFFFU);
}

WrittenSpan span_of(const Event& event) {
  const int own = event.rank;
  if (event.type != proxy_step_event) {
    std::string name = event.type == kernel_channel_event ? "kernel of channel " + std::to_string(event.channel)
                                                          : std::string(event.function.data()) + " " + event.way.data();
    return {event.begin, event.end, transfer_number(event.call, event.channel, own, own), 0, "reduce", std::move(name)};
  }
  const int from = event.is_send ? own : event.peer, to = event.is_send ? event.peer : own;
  std::string name = std::string(event.is_send ? "send " : "recv ") + std::to_string(from) + ">" + std::to_string(to) +
                     " channel " + std::to_string(event.channel) + " step " + std::to_string(event.step);
  const std::int64_t begin = event.is_send && event.moving > 0 ? event.moving : event.begin;
  const std::int64_t end = !event.is_send && event.arrived > 0 ? event.arrived : event.end;
  return {begin,
          end,
          transfer_number(event.call, event.channel, from, to),
          event.step,
          event.is_send ? "send" : "recv",
          std::move(name)};
}

std::vector<WrittenSpan> spans_of(const EventRecorder& recorder) {
  std::set<const Event*> with_parts;
  for (std::size_t i = 0; i < recorder.count(); ++i) {
    const Event& event = recorder[i];
    if (event.type == kernel_channel_event) with_parts.insert(event.parent);
    if (event.type == proxy_step_event) with_parts.insert(event.parent->parent);
  }
  std::vector<WrittenSpan> spans;
  for (std::size_t i = 0; i < recorder.count(); ++i) {
    const Event& event = recorder[i];
    const bool is_call = event.type == collective_event || event.type == message_event;
    const bool is_shown = event.type == proxy_step_event || event.type == kernel_channel_event ||
                          (is_call && !with_parts.contains(&event));
    if (is_shown && event.end >= event.begin && event.begin > 0) spans.push_back(span_of(event));
  }
  std::ranges::stable_sort(spans, {}, &WrittenSpan::begin);
  return spans;
}

/// Of one call what it is, of several how many there are.
std::string title_of(const EventRecorder& recorder, int ranks) {
  const Event* only = nullptr;
  std::size_t calls = 0;
  for (std::size_t i = 0; i < recorder.count(); ++i) {
    if (recorder[i].type != collective_event && recorder[i].type != message_event) continue;
    ++calls;
    only = &recorder[i];
  }
  if (calls != 1) return std::to_string(calls) + " calls of NCCL";
  const std::string collective = collective_name(only->function.data());
  const bool has_shards = collective == "all_gather" || collective == "reduce_scatter";
  return collective + ", nccl, " + whole_size(only->bytes * (has_shards ? std::max(1, ranks) : 1)) + " on NCCL";
}

std::string boot_id() {
  std::array<char, 64> text = {};
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen("/proc/sys/kernel/random/boot_id", "re"));
  if (!file || std::fgets(text.data(), static_cast<int>(text.size()), file.get()) == nullptr) return "unknown";
  return {text.data(), strcspn(text.data(), "\n")};
}

int rank_count(const EventRecorder& recorder) {
  int ranks = std::max({recorder.ranks, recorder.rank + 1, 1});
  for (std::size_t i = 0; i < recorder.count(); ++i) ranks = std::max(ranks, recorder[i].peer + 1);
  return ranks;
}

/// Nanoseconds as microseconds with all digits.
void print_us(std::FILE* file, std::int64_t ns) {
  std::fprintf(file, "%lld.%03lld", static_cast<long long>(ns / 1000), static_cast<long long>(ns % 1000));
}

void write_header(std::FILE* file, const EventRecorder& recorder, std::int64_t first, int ranks) {
  timespec real{};
  clock_gettime(CLOCK_REALTIME, &real);
  const std::int64_t real_ns = static_cast<std::int64_t>(real.tv_sec) * 1'000'000'000 + real.tv_nsec;
  const std::int64_t offset = real_ns - monotonic_ns();
  std::fprintf(
      file,
      "{\"displayTimeUnit\":\"ns\",\n\"otherData\":{\"espalier_timeline\":1,\"title\":\"%s\",\"origin\":\"run\","
      "\"espalier_clock\":{\"boot\":\"%s\",\"first_ns\":%lld,\"first_real_ns\":%lld},\"dropped\":%zu},\n"
      "\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":3,\"args\":{\"name\":\"measured ranks\"}}",
      title_of(recorder, ranks).c_str(), boot_id().c_str(), static_cast<long long>(first),
      static_cast<long long>(first + offset), recorder.dropped());
  for (int rank = 0; rank < ranks; ++rank) {
    std::fprintf(file,
                 ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":3,\"tid\":%d,\"args\":{\"name\":\"rank%d\","
                 "\"lane\":%d,\"lane_name\":\"rank%d\"}}",
                 rank + 1, rank, rank, rank);
  }
}

}  // namespace

std::string whole_size(std::int64_t bytes) {
  constexpr std::array<const char*, 5> units = {" B", " KiB", " MiB", " GiB", " TiB"};
  std::size_t unit = 0;
  while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < units.size()) {
    bytes /= 1024;
    ++unit;
  }
  return std::to_string(bytes) + units[unit];
}

std::string write_timeline(const EventRecorder& recorder, const std::string& path) {
  const std::vector<WrittenSpan> spans = spans_of(recorder);
  const std::int64_t first = spans.empty() ? monotonic_ns() : spans.front().begin;
  const int own = std::max(0, recorder.rank);
  const std::string unfinished = path + "." + std::to_string(getpid()) + ".part";
  std::FILE* const file = std::fopen(unfinished.c_str(), "wxe");
  if (file == nullptr) return path + ": " + std::strerror(errno);
  write_header(file, recorder, first, rank_count(recorder));
  for (const WrittenSpan& span : spans) {
    std::fprintf(file,
                 ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":3,\"tid\":%d,\"ts\":", span.name.c_str(),
                 span.phase, own + 1);
    print_us(file, span.begin - first);
    std::fprintf(file, ",\"dur\":");
    print_us(file, std::max<std::int64_t>(0, span.end - span.begin));
    std::fprintf(file, ",\"args\":{\"transfer\":%u,\"chunk\":%d,\"phase\":\"%s\"}}", span.transfer, span.chunk,
                 span.phase);
  }
  std::fprintf(file, "\n]}\n");
  const bool is_lost = std::ferror(file) != 0;
  const bool is_closed = std::fclose(file) == 0;
  if (is_lost || !is_closed || std::rename(unfinished.c_str(), path.c_str()) != 0) {
    const std::string why = std::strerror(errno);
    unlink(unfinished.c_str());
    return path + ": " + why;
  }
  return {};
}

}  // namespace espalier::nccl_plugins::profiler
