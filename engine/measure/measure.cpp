#include "engine/measure/measure.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

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

/// Nanoseconds of each iteration at this rank.
Result<std::vector<std::int64_t>> run_iterations(Communicator& communicator, const CallArguments& arguments,
                                                 const MeasureOptions& options) {
  for (std::uint32_t i = 0; i < options.warmups; ++i) {
    if (auto done = communicator.run(arguments); !done) return tl::unexpected(done.error());
  }
  if (auto met = communicator.barrier(); !met) return tl::unexpected(met.error());
  std::vector<std::int64_t> times(options.iterations);
  std::int64_t last = engine::now_ns();
  for (std::int64_t& time : times) {
    if (auto done = communicator.run(arguments); !done) return tl::unexpected(done.error());
    const std::int64_t now = engine::now_ns();
    time = now - last;
    last = now;
  }
  return times;
}

Times summarise(std::vector<std::int64_t> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size()))) - 1;
    return static_cast<double>(times[std::min(index, times.size() - 1)]) * 1e-9;
  };
  return {static_cast<double>(times.front()) * 1e-9, at(0.5), at(0.99)};
}

/// The slowest rank's time of each iteration.
Result<Times> gather_times(Communicator& communicator, const std::vector<std::int64_t>& own) {
  const auto all =
      communicator.control().exchange("measure/times", all_members(communicator), bytes_of(own), exchange_time);
  if (!all) return tl::unexpected(all.error());
  std::vector<std::int64_t> slowest = own;
  for (const std::string& bytes : *all) {
    const auto times = numbers_of<std::int64_t>(bytes);
    for (std::size_t i = 0; i < std::min(slowest.size(), times.size()); ++i) {
      slowest[i] = std::max(slowest[i], times[i]);
    }
  }
  return summarise(std::move(slowest));
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
                                         const MeasureOptions& options, const CaseBuffers& buffers, bool in_place) {
  PlacedMeasurement placed;
  if (auto filled = buffers.fill(data, in_place); !filled) return tl::unexpected(filled.error());
  const auto own = run_iterations(communicator, buffers.arguments(data, in_place), options);
  if (!own) return tl::unexpected(own.error());
  const auto times = gather_times(communicator, *own);
  if (!times) return tl::unexpected(times.error());
  placed.times = *times;
  if (options.checks) {
    const auto wrong = check_once(communicator, data, buffers, in_place);
    if (!wrong) return tl::unexpected(wrong.error());
    placed.wrong = *wrong;
  }
  return placed;
}

/// Times calls with and without recording, by turns: a machine that slows down does so for both.
Result<void> compare_recording(Communicator& communicator, const CallArguments& arguments,
                               const MeasureOptions& options, engine::Recorder& recorder, RecordedRun& run) {
  constexpr std::uint32_t most_turns = 10;
  const std::uint32_t turns = std::clamp(options.iterations, 1U, most_turns);
  std::vector<std::int64_t> plain;
  std::vector<std::int64_t> recorded;
  for (std::uint32_t turn = 0; turn < 2 * turns; ++turn) {
    const bool records = turn % 2 == 1;
    MeasureOptions block = options;
    block.iterations = std::max(1U, options.iterations / turns);
    recorder.clear();
    communicator.record(records ? &recorder : nullptr);
    const auto own = run_iterations(communicator, arguments, block);
    communicator.record(nullptr);
    if (!own) return tl::unexpected(own.error());
    std::vector<std::int64_t>& times = records ? recorded : plain;
    times.insert(times.end(), own->begin(), own->end());
  }
  const auto plain_times = gather_times(communicator, plain);
  if (!plain_times) return tl::unexpected(plain_times.error());
  const auto recorded_times = gather_times(communicator, recorded);
  if (!recorded_times) return tl::unexpected(recorded_times.error());
  run.plain_time = plain_times->median;
  run.recorded_time = recorded_times->median;
  return {};
}

}  // namespace

Result<RunMeasurement> measure(Communicator& communicator, const DataCase& data, const MeasureOptions& options) {
  const auto buffers = CaseBuffers::make(communicator, data, options);
  if (!buffers) return tl::unexpected(buffers.error());
  RunMeasurement measurement;
  const auto apart = measure_placed(communicator, data, options, *buffers, false);
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
                               std::string title, std::vector<std::string> rank_names) {
  RecordedRun run;
  const auto buffers = CaseBuffers::make(communicator, data, options);
  if (!buffers) return tl::unexpected(buffers.error());
  if (auto filled = buffers->fill(data, false); !filled) return tl::unexpected(filled.error());
  const CallArguments arguments = buffers->arguments(data, false);
  const auto clock = communicator.control().estimate_clock(exchange_time);
  if (!clock) return tl::unexpected(clock.error());

  engine::Recorder recorder;
  if (auto compared = compare_recording(communicator, arguments, options, recorder, run); !compared) {
    return tl::unexpected(compared.error());
  }

  recorder.clear();
  communicator.record(&recorder);
  if (auto met = communicator.barrier(); !met) return tl::unexpected(met.error());
  recorder.clear();
  const auto done = communicator.run(arguments);
  communicator.record(nullptr);
  if (!done) return tl::unexpected(done.error());
  const auto later = communicator.control().estimate_clock(exchange_time);
  if (!later) return tl::unexpected(later.error());

  const auto own_records = recorder.records();
  if (!own_records) return tl::unexpected(own_records.error());

  // The clocks were compared before and after: their drift between is part of the error.
  std::vector<std::int64_t> clocks = {(clock->offset_ns + later->offset_ns) / 2,
                                      std::max(clock->error_ns, later->error_ns) +
                                          std::abs(clock->offset_ns - later->offset_ns) / 2 +
                                          recorder.device_clock_error_ns()};
  const auto all_clocks =
      communicator.control().exchange("measure/clocks", all_members(communicator), bytes_of(clocks), exchange_time);
  if (!all_clocks) return tl::unexpected(all_clocks.error());
  const auto all_records = communicator.control().exchange("measure/records", all_members(communicator),
                                                           bytes_of(*own_records), exchange_time);
  if (!all_records) return tl::unexpected(all_records.error());

  Timeline& timeline = run.timeline;
  timeline.origin = "run";
  timeline.title = std::move(title);
  timeline.rank_names = std::move(rank_names);
  std::int64_t start = INT64_MAX;
  std::vector<std::vector<engine::Record>> records;
  for (std::uint32_t rank = 0; rank < communicator.size(); ++rank) {
    const auto rank_clock = numbers_of<std::int64_t>((*all_clocks)[rank]);
    run.clock_error = std::max(run.clock_error, static_cast<double>(rank_clock[1]) * 1e-9);
    records.push_back(numbers_of<engine::Record>((*all_records)[rank]));
    for (engine::Record& record : records.back()) {
      record.begin_ns += rank_clock[0];
      record.end_ns += rank_clock[0];
      start = std::min(start, record.begin_ns);
    }
  }
  constexpr std::int64_t picoseconds_per_nanosecond = 1000;
  for (std::uint32_t rank = 0; rank < communicator.size(); ++rank) {
    for (const engine::Record& record : records[rank]) {
      const std::uint32_t lane = record.rank == own_rank ? rank : record.rank;
      timeline.spans.push_back({lane, record.transfer, record.chunk, record.phase,
                                Picoseconds{(record.begin_ns - start) * picoseconds_per_nanosecond},
                                Picoseconds{(record.end_ns - start) * picoseconds_per_nanosecond}});
    }
  }
  std::ranges::stable_sort(timeline.spans, [](const Span& a, const Span& b) {
    return std::pair(a.begin, a.lane) < std::pair(b.begin, b.lane);
  });
  return run;
}

}  // namespace espalier::engine
