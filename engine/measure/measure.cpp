#include "engine/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <ctime>
#include <fstream>
#include <numeric>
#include <span>

#include "engine/executor/clock.h"
#include "engine/measure/known_buffers.h"

namespace espalier::engine {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds exchange_time{120'000};
constexpr milliseconds longest_check{60'000};  // Of a device.

/// Send and receive memory of one rank, apart or in place.
class CaseBuffers {
 public:
  static Result<CaseBuffers> make(Communicator& communicator, const DataCase& data, const MeasureOptions& options) {
    const bool registered = options.registers_buffers;
    CaseBuffers buffers(communicator);
    if (options.space == MemorySpace::device) {
      auto queue = communicator.make_queue();
      if (!queue) return tl::unexpected(queue.error());
      buffers.queue_ = std::move(*queue);
    }
    const auto element = static_cast<std::size_t>(size_of(data.type));
    const std::uint32_t rank = communicator.rank();
    const std::size_t send = data.send_count(rank) * element;
    const std::size_t receive = data.receive_count(rank) * element;
    // In place either buffer holds the other; a rank that needs only one may have its shard anywhere in the whole.
    const std::size_t whole = std::max({send, receive, data.count * element});
    for (void** memory : {&buffers.send_, &buffers.receive_}) {
      if (registered) {
        const auto allocated = communicator.allocate(whole, options.space);
        if (!allocated) return tl::unexpected(allocated.error());
        *memory = *allocated;
      } else {
        buffers.plain_.emplace_back(whole);
        *memory = buffers.plain_.back().data();
      }
    }
    buffers.is_registered_ = registered;
    if (const auto shift = data.in_place_shift(rank)) {
      const std::ptrdiff_t bytes = *shift * static_cast<std::ptrdiff_t>(element);
      auto* base = static_cast<std::byte*>(buffers.receive_);
      buffers.in_place_send_ = bytes >= 0 ? base + bytes : base;
      buffers.in_place_receive_ = bytes >= 0 ? base : base - bytes;
    }
    return buffers;
  }
  CaseBuffers(CaseBuffers&& other) noexcept
      : communicator_(other.communicator_),
        queue_(std::move(other.queue_)),
        plain_(std::move(other.plain_)),
        send_(std::exchange(other.send_, nullptr)),
        receive_(std::exchange(other.receive_, nullptr)),
        in_place_send_(other.in_place_send_),
        in_place_receive_(other.in_place_receive_),
        is_registered_(std::exchange(other.is_registered_, false)) {}
  CaseBuffers& operator=(CaseBuffers&&) = delete;
  ~CaseBuffers() {
    if (!is_registered_) return;
    communicator_.free(send_);
    communicator_.free(receive_);
  }

  [[nodiscard]] CallArguments arguments(const DataCase& data, bool in_place) const {
    return {data.kind,
            in_place ? in_place_send_ : send_,
            in_place ? in_place_receive_ : receive_,
            data.count,
            data.type,
            data.operation,
            data.root,
            data.shares};
  }

  /// Writes what this rank sends.
  Result<void> fill(const DataCase& data, bool in_place) const {
    void* const send = in_place ? in_place_send_ : send_;
    const std::uint32_t rank = communicator_.rank();
    if (!queue_) {
      fill_send_buffer(data, rank, send);
      return {};
    }
    return fill_on_device(*queue_, data, rank, send, longest_check);
  }
  /// Holds what this rank received against what it should have.
  [[nodiscard]] Result<CheckResult> check(const DataCase& data, bool in_place) const {
    const void* const receive = in_place ? in_place_receive_ : receive_;
    const std::uint32_t rank = communicator_.rank();
    if (!queue_) return check_receive_buffer(data, rank, receive);
    return check_on_device(*queue_, data, rank, receive, longest_check);
  }

 private:
  explicit CaseBuffers(Communicator& communicator) : communicator_(communicator) {}

  Communicator& communicator_;
  std::unique_ptr<DeviceQueue> queue_;  ///< Where the buffers are a device's: what fills and reads them.
  std::vector<std::vector<std::byte>> plain_;
  void* send_ = nullptr;
  void* receive_ = nullptr;
  void* in_place_send_ = nullptr;
  void* in_place_receive_ = nullptr;
  bool is_registered_ = false;
};

std::vector<std::uint32_t> all_members(const Communicator& communicator) {
  std::vector<std::uint32_t> members(communicator.size());
  std::iota(members.begin(), members.end(), 0U);
  return members;
}

template <class Number>
std::string bytes_of(const std::vector<Number>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(Number)};
}

template <class Number>
std::vector<Number> numbers_of(const std::string& bytes) {
  std::vector<Number> numbers(bytes.size() / sizeof(Number));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(Number));
  return numbers;
}

/// What the system counts for this thread, in nanoseconds.
struct ThreadUse {
  std::int64_t cpu = 0;
  std::int64_t no_core = 0;

  static ThreadUse now() {
    ThreadUse use;
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    constexpr std::int64_t per_second = 1'000'000'000;
    use.cpu = static_cast<std::int64_t>(time.tv_sec) * per_second + time.tv_nsec;
    // Time on a core, time ready without one, and how often (Documentation/scheduler/sched-stats.rst).
    std::ifstream file("/proc/thread-self/schedstat");
    std::int64_t on_core = 0;
    if (!(file >> on_core >> use.no_core)) use.no_core = 0;
    return use;
  }
};

/// What one rank measured.
struct Iterations {
  std::vector<std::int64_t> times;  ///< In nanoseconds.
  ThreadUse use;                    ///< Of all together.
};

Result<void> warm_up(Communicator& communicator, const CallArguments& arguments, const MeasureOptions& options) {
  for (std::uint32_t i = 0; i < options.warmups; ++i) {
    if (auto done = communicator.run(arguments); !done) return tl::unexpected(done.error());
  }
  return communicator.barrier();
}

/// Makes room for the records of the iterations, by one that is not measured; gives how many of them to keep, the last
/// ones.
Result<std::uint32_t> prepare_to_keep(Communicator& communicator, const CallArguments& arguments,
                                      const MeasureOptions& options, KeptIterations& kept) {
  constexpr std::size_t max_kept_records = 1'000'000;  // 40 MB.
  communicator.record(&kept.recorder);
  if (auto done = communicator.run(arguments); !done) return tl::unexpected(done.error());
  communicator.record(nullptr);
  const auto records = kept.recorder.records();
  if (!records) return tl::unexpected(records.error());
  // All ranks keep the same iterations: those of the one that has most to keep.
  const std::vector<std::uint64_t> own = {std::max<std::uint64_t>(records->size(), 1)};
  const auto all =
      communicator.control().exchange("measure/kept", all_members(communicator), bytes_of(own), exchange_time);
  if (!all) return tl::unexpected(all.error());
  std::uint64_t most = 1;
  for (const std::string& bytes : *all) most = std::max(most, numbers_of<std::uint64_t>(bytes).front());
  const auto room = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(max_kept_records / most, 1, UINT32_MAX));
  const std::uint32_t count = std::min(options.iterations, room);
  kept.recorder.clear();
  kept.recorder.reserve((count + 1) * most);
  return count;
}

/// Of each iteration at this rank.
Result<Iterations> run_iterations(Communicator& communicator, const CallArguments& arguments,
                                  const MeasureOptions& options, KeptIterations* kept = nullptr) {
  std::uint32_t kept_count = 0;
  if (kept != nullptr) {
    const auto count = prepare_to_keep(communicator, arguments, options, *kept);
    if (!count) return tl::unexpected(count.error());
    kept_count = *count;
  }
  if (auto warm = warm_up(communicator, arguments, options); !warm) return tl::unexpected(warm.error());
  Iterations iterations;
  iterations.times.resize(options.iterations);
  const ThreadUse before = ThreadUse::now();
  std::int64_t last = engine::now_ns();
  for (std::uint32_t i = 0; i < options.iterations; ++i) {
    if (kept != nullptr && i + kept_count == options.iterations) {
      communicator.record(&kept->recorder);
      kept->ends.push_back(last);
    }
    if (auto done = communicator.run(arguments); !done) return tl::unexpected(done.error());
    const std::int64_t now = engine::now_ns();
    iterations.times[i] = now - last;
    last = now;
    if (kept != nullptr && !kept->ends.empty()) kept->ends.push_back(last);
  }
  const ThreadUse after = ThreadUse::now();
  iterations.use = {after.cpu - before.cpu, after.no_core - before.no_core};
  if (kept != nullptr) communicator.record(nullptr);
  return iterations;
}

Times summarise(std::vector<std::int64_t> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size()))) - 1;
    return static_cast<double>(times[std::min(index, times.size() - 1)]) * 1e-9;
  };
  return {static_cast<double>(times.front()) * 1e-9, at(0.5), at(0.99)};
}

/// The slowest rank's time of each iteration, and what each rank did.
struct GatheredTimes {
  std::vector<std::int64_t> slowest;
  std::vector<RankUse> ranks;
};

Result<GatheredTimes> gather_times(Communicator& communicator, const Iterations& own) {
  std::vector<std::int64_t> sent = own.times;
  sent.push_back(own.use.cpu);
  sent.push_back(own.use.no_core);
  const auto all =
      communicator.control().exchange("measure/times", all_members(communicator), bytes_of(sent), exchange_time);
  if (!all) return tl::unexpected(all.error());
  GatheredTimes gathered{own.times, {}};
  const double per_iteration = 1e-9 / static_cast<double>(std::max<std::size_t>(own.times.size(), 1));
  for (const std::string& bytes : *all) {
    auto times = numbers_of<std::int64_t>(bytes);
    if (times.size() != sent.size()) return fail(ErrorCode::unavailable, "ranks measured different iterations");
    RankUse& use = gathered.ranks.emplace_back();
    use.no_core = static_cast<double>(times.back()) * per_iteration;
    times.pop_back();
    use.cpu = static_cast<double>(times.back()) * per_iteration;
    times.pop_back();
    for (std::size_t i = 0; i < times.size(); ++i) gathered.slowest[i] = std::max(gathered.slowest[i], times[i]);
    use.time = summarise(std::move(times)).median;
  }
  return gathered;
}

/// Which of the iterations that were kept took the median time, and which took longest.
void choose_kept(const std::vector<std::int64_t>& slowest, KeptIterations& kept) {
  const std::size_t count = kept.ends.size() - 1;
  std::vector<std::size_t> order(count);
  std::iota(order.begin(), order.end(), 0U);
  const std::span<const std::int64_t> times(slowest.end() - static_cast<std::ptrdiff_t>(count), slowest.end());
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return times[i]; });
  kept.median = order[(count - 1) / 2];
  kept.slowest = order.back();
}

Result<std::uint64_t> check_once(Communicator& communicator, const DataCase& data, const CaseBuffers& buffers,
                                 bool in_place) {
  if (auto filled = buffers.fill(data, in_place); !filled) return tl::unexpected(filled.error());
  if (auto done = communicator.run(buffers.arguments(data, in_place)); !done) return tl::unexpected(done.error());
  const auto checked = buffers.check(data, in_place);
  if (!checked) return tl::unexpected(checked.error());
  const std::vector<std::uint64_t> own = {checked->wrong};
  const auto all =
      communicator.control().exchange("measure/wrong", all_members(communicator), bytes_of(own), exchange_time);
  if (!all) return tl::unexpected(all.error());
  std::uint64_t wrong = 0;
  for (const std::string& bytes : *all) wrong += numbers_of<std::uint64_t>(bytes).front();
  return wrong;
}

Result<PlacedMeasurement> measure_placed(Communicator& communicator, const DataCase& data,
                                         const MeasureOptions& options, const CaseBuffers& buffers, bool in_place,
                                         KeptIterations* kept = nullptr) {
  PlacedMeasurement placed;
  if (auto filled = buffers.fill(data, in_place); !filled) return tl::unexpected(filled.error());
  const auto own = run_iterations(communicator, buffers.arguments(data, in_place), options, kept);
  if (!own) return tl::unexpected(own.error());
  auto gathered = gather_times(communicator, *own);
  if (!gathered) return tl::unexpected(gathered.error());
  if (kept != nullptr) choose_kept(gathered->slowest, *kept);
  placed.times = summarise(std::move(gathered->slowest));
  placed.ranks = std::move(gathered->ranks);
  if (options.checks) {
    const auto wrong = check_once(communicator, data, buffers, in_place);
    if (!wrong) return tl::unexpected(wrong.error());
    placed.wrong = *wrong;
  }
  return placed;
}

/// Times calls with and without recording, by turns: a machine that slows down does so for both.
Result<void> compare_recording(Communicator& communicator, const CallArguments& arguments,
                               const MeasureOptions& options, RecordedRun& run) {
  constexpr std::uint32_t max_turns = 10;
  const std::uint32_t turns = std::clamp(options.iterations, 1U, max_turns);
  Recorder recorder;
  Iterations plain, recorded;
  for (std::uint32_t turn = 0; turn < 2 * turns; ++turn) {
    const bool records = turn % 2 == 1;
    MeasureOptions block = options;
    block.iterations = std::max(1U, options.iterations / turns);
    recorder.clear();
    communicator.record(records ? &recorder : nullptr);
    const auto own = run_iterations(communicator, arguments, block);
    communicator.record(nullptr);
    if (!own) return tl::unexpected(own.error());
    std::vector<std::int64_t>& times = records ? recorded.times : plain.times;
    times.insert(times.end(), own->times.begin(), own->times.end());
  }
  const auto plain_times = gather_times(communicator, plain);
  if (!plain_times) return tl::unexpected(plain_times.error());
  const auto recorded_times = gather_times(communicator, recorded);
  if (!recorded_times) return tl::unexpected(recorded_times.error());
  run.plain_time = summarise(plain_times->slowest).median;
  run.recorded_time = summarise(recorded_times->slowest).median;
  return {};
}

/// The records of one iteration that was kept. It began after the one before had ended, so that each span lies between
/// two ends by its middle, whatever the clocks' rounding.
std::vector<Record> records_of(const std::vector<Record>& all, const KeptIterations& kept, std::size_t iteration) {
  std::vector<Record> own;
  for (const Record& record : all) {
    const std::int64_t middle = record.begin_ns + (record.end_ns - record.begin_ns) / 2;
    if (middle > kept.ends[iteration] && middle <= kept.ends[iteration + 1]) own.push_back(record);
  }
  return own;
}

/// The spans of all ranks in rank 0's time.
Result<Timeline> merge_records(Communicator& communicator, const std::vector<Record>& own,
                               const std::vector<std::int64_t>& offsets, std::vector<std::string> rank_names) {
  const auto all =
      communicator.control().exchange("measure/records", all_members(communicator), bytes_of(own), exchange_time);
  if (!all) return tl::unexpected(all.error());
  Timeline timeline;
  timeline.origin = "run";
  timeline.rank_names = std::move(rank_names);
  std::int64_t start = INT64_MAX;
  std::vector<std::vector<Record>> records;
  for (std::uint32_t rank = 0; rank < communicator.size(); ++rank) {
    records.push_back(numbers_of<Record>((*all)[rank]));
    for (Record& record : records.back()) {
      record.begin_ns += offsets[rank];
      record.end_ns += offsets[rank];
      start = std::min(start, record.begin_ns);
    }
  }
  constexpr std::int64_t picoseconds_per_nanosecond = 1000;
  for (std::uint32_t rank = 0; rank < communicator.size(); ++rank) {
    for (const Record& record : records[rank]) {
      const std::uint32_t lane = record.rank == own_rank ? rank : record.rank;
      timeline.spans.push_back({lane, record.transfer, record.chunk, record.phase,
                                Picoseconds{(record.begin_ns - start) * picoseconds_per_nanosecond},
                                Picoseconds{(record.end_ns - start) * picoseconds_per_nanosecond}});
    }
  }
  std::ranges::stable_sort(timeline.spans, [](const Span& a, const Span& b) {
    return std::pair(a.begin, a.lane) < std::pair(b.begin, b.lane);
  });
  return timeline;
}

}  // namespace

Result<RunMeasurement> measure(Communicator& communicator, const DataCase& data, const MeasureOptions& options,
                               KeptIterations* kept) {
  const auto buffers = CaseBuffers::make(communicator, data, options);
  if (!buffers) return tl::unexpected(buffers.error());
  if (kept != nullptr) {
    const auto clock = communicator.control().estimate_clock(exchange_time);
    if (!clock) return tl::unexpected(clock.error());
    kept->clock_offset_ns = clock->offset_ns;
    kept->clock_error_ns = clock->error_ns;
  }
  RunMeasurement measurement;
  const auto apart = measure_placed(communicator, data, options, *buffers, false, kept);
  if (!apart) return tl::unexpected(apart.error());
  measurement.out_of_place = *apart;
  if (data.in_place_shift(communicator.rank())) {
    auto in_place = measure_placed(communicator, data, options, *buffers, true);
    if (!in_place) return tl::unexpected(in_place.error());
    measurement.in_place = *in_place;
  }
  return measurement;
}

Result<RecordedRun> record_run(Communicator& communicator, const DataCase& data, const MeasureOptions& options,
                               KeptIterations& kept, const std::string& title, std::vector<std::string> rank_names) {
  RecordedRun run;
  const auto own_records = kept.recorder.records();
  if (!own_records) return tl::unexpected(own_records.error());
  const auto later = communicator.control().estimate_clock(exchange_time);
  if (!later) return tl::unexpected(later.error());
  // The clocks were compared before and after: their drift between is part of the error.
  const std::vector<std::int64_t> clock = {(kept.clock_offset_ns + later->offset_ns) / 2,
                                           std::max(kept.clock_error_ns, later->error_ns) +
                                               std::abs(kept.clock_offset_ns - later->offset_ns) / 2 +
                                               kept.recorder.device_clock_error_ns()};
  const auto clocks =
      communicator.control().exchange("measure/clocks", all_members(communicator), bytes_of(clock), exchange_time);
  if (!clocks) return tl::unexpected(clocks.error());
  std::vector<std::int64_t> offsets;
  for (const std::string& bytes : *clocks) {
    const auto rank_clock = numbers_of<std::int64_t>(bytes);
    offsets.push_back(rank_clock[0]);
    run.clock_error = std::max(run.clock_error, static_cast<double>(rank_clock[1]) * 1e-9);
  }
  const std::size_t count = kept.ends.size() - 1;
  auto median = merge_records(communicator, records_of(*own_records, kept, kept.median), offsets, rank_names);
  if (!median) return tl::unexpected(median.error());
  run.timeline = std::move(*median);
  run.timeline.title = fmt::format("{} (median of {} iterations)", title, count);
  if (count > 1) {
    auto slowest =
        merge_records(communicator, records_of(*own_records, kept, kept.slowest), offsets, std::move(rank_names));
    if (!slowest) return tl::unexpected(slowest.error());
    run.slowest = std::move(*slowest);
    run.slowest.title = fmt::format("{} (slowest of {} iterations)", title, count);
  }
  const auto buffers = CaseBuffers::make(communicator, data, options);
  if (!buffers) return tl::unexpected(buffers.error());
  if (auto filled = buffers->fill(data, false); !filled) return tl::unexpected(filled.error());
  const CallArguments arguments = buffers->arguments(data, false);
  if (auto compared = compare_recording(communicator, arguments, options, run); !compared) {
    return tl::unexpected(compared.error());
  }
  return run;
}

}  // namespace espalier::engine
