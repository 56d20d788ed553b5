#include "engine/cuda/device/gpu_measure.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/cuda/chunk_times.h"
#include "engine/cuda/device/block_choice.h"
#include "engine/cuda/device/gpu_ranks.h"
#include "engine/cuda/device/host_driven_ranks.h"
#include "engine/cuda/program_time.h"
#include "engine/cuda/verify_program.h"
#include "engine/executor/clock.h"
#include "engine/measure/known_buffers.h"
#include "schedule/verify/verify.h"

namespace espalier::engine::cuda {
namespace {

using Gpus = std::vector<std::unique_ptr<CudaDevice>>;

/// Of calls whose copies the host gives to streams.
constexpr std::uint32_t streams_of_copies = 4;

Times summarise_times(std::vector<std::int64_t> times) {
  std::ranges::sort(times);
  const auto at = [&](double share) {
    const auto index = static_cast<std::size_t>(std::ceil(share * static_cast<double>(times.size()))) - 1;
    return static_cast<double>(times[std::min(index, times.size() - 1)]) * 1e-9;
  };
  return {static_cast<double>(times.front()) * 1e-9, at(0.5), at(0.99)};
}

Result<BlockOptions> block_options(const Gpus& gpus, const GpuCase& gpu_case, const Layout& layout) {
  // A stream of the host's for each stream of the schedule: what a copy is given it moves alone.
  if (gpu_case.path == GpuPath::copies) return BlockOptions{.blocks_per_rank = streams_of_copies, .forwards = false};
  const auto most = max_blocks_on(gpus, gpu_case.data.ranks, gpu_case.data.type, gpu_case.data.operation);
  if (!most) return tl::unexpected(most.error());
  return choose_blocks(gpu_case.schedule, layout, gpu_case.pacing, *most);
}

Result<DeviceProgram> make_program(const Gpus& gpus, const GpuCase& gpu_case) {
  const std::int64_t element = size_of(gpu_case.data.type);
  const Bytes size{static_cast<std::int64_t>(gpu_case.data.count) * element};
  const auto layout = Layout::make(gpu_case.schedule, size, element);
  if (!layout) return tl::unexpected(layout.error());
  const auto options = block_options(gpus, gpu_case, *layout);
  if (!options) return tl::unexpected(options.error());
  return compile_for_device(gpu_case.schedule, *layout, gpu_case.pacing, *options);
}

/// A program, ready on the GPUs, with its ranks' buffers.
class CaseOnGpus {
 public:
  CaseOnGpus(const Gpus& gpus, const GpuCase& gpu_case) : gpus_(gpus), case_(gpu_case) {}
  ~CaseOnGpus() {
    ranks_.reset();
    for (const auto& [gpu, data] : memories_) gpu->release(data, 0);
  }
  CaseOnGpus(const CaseOnGpus&) = delete;
  CaseOnGpus& operator=(const CaseOnGpus&) = delete;

  Result<void> set_up(bool in_place, bool records) {
    if (case_.schedule.relays.empty()) {  // compile_for_device refuses relays.
      if (auto proven = require_promise(case_.schedule, "the schedule"); !proven) return proven;
    }
    for (const std::size_t gpu : place_ranks(case_.data.ranks, gpus_.size())) of_rank_.push_back(gpus_[gpu].get());
    auto program = make_program(gpus_, case_);
    if (!program) return tl::unexpected(program.error());
    if (auto verified = verify(*program, in_place); !verified) return verified;
    program_ = std::move(*program);
    if (auto made = make_buffers(in_place); !made) return made;
    const DeviceCall call{case_.data.type, case_.data.operation, case_.deadline};
    auto ranks = case_.path == GpuPath::kernels ? GpuRanks::prepare(of_rank_, program_, buffers_, call, records)
                                                : HostDrivenRanks::prepare(of_rank_, program_, buffers_, call);
    if (!ranks) return tl::unexpected(ranks.error());
    ranks_ = std::move(*ranks);
    return {};
  }

  /// Writes what every rank sends.
  Result<void> fill() {
    for (std::uint32_t rank = 0; rank < case_.data.ranks; ++rank) {
      // Written here: in place, `send` lies in the receive buffer.
      auto* const send = const_cast<std::byte*>(buffers_[rank].send);
      auto done = fill_on_device(*queues_[rank], case_.data, rank, send, longest_check());
      if (!done) return done;
    }
    return {};
  }

  /// Elements of all ranks that are not what they should be.
  Result<std::uint64_t> count_wrong() {
    std::uint64_t wrong = 0;
    for (std::uint32_t rank = 0; rank < case_.data.ranks; ++rank) {
      const auto checked = check_on_device(*queues_[rank], case_.data, rank, buffers_[rank].receive, longest_check());
      if (!checked) return tl::unexpected(checked.error());
      wrong += checked->wrong;
    }
    return wrong;
  }

  /// Nanoseconds of each iteration.
  Result<std::vector<std::int64_t>> run_iterations(const MeasureOptions& options) {
    for (std::uint32_t i = 0; i < options.warmups; ++i) {
      if (auto done = ranks_->run(); !done) return tl::unexpected(done.error());
    }
    std::vector<std::int64_t> times(std::max(1U, options.iterations));
    for (std::int64_t& time : times) {
      const std::int64_t begin = now_ns();
      if (auto done = ranks_->run(); !done) return tl::unexpected(done.error());
      time = now_ns() - begin;
    }
    return times;
  }

  [[nodiscard]] const DeviceProgram& program() const { return program_; }
  [[nodiscard]] GpuProgram& ranks() { return *ranks_; }

 private:
  Result<std::byte*> allocate(CudaDevice& gpu, std::int64_t bytes) {
    const auto data = gpu.allocate(std::max<std::int64_t>(bytes, 1), MemorySpace::device);
    if (data) memories_.emplace_back(&gpu, *data);
    return data;
  }

  Result<void> make_buffers(bool in_place) {
    for (std::uint32_t rank = 0; rank < case_.data.ranks; ++rank) {
      CudaDevice& gpu = *of_rank_[rank];
      const MemorySizes& sizes = program_.memories[rank];
      const bool shares = in_place && sizes.in_place_shift.has_value();
      // In place, one memory from the lower to the higher end of the two buffers.
      const std::int64_t shift = shares ? *sizes.in_place_shift : 0;
      const std::int64_t receive_at = std::max<std::int64_t>(0, -shift);
      const std::int64_t whole = std::max(receive_at + sizes.receive, receive_at + shift + sizes.send);
      const auto receive = allocate(gpu, shares ? whole : sizes.receive);
      if (!receive) return tl::unexpected(receive.error());
      const auto send = shares ? receive : allocate(gpu, sizes.send);
      if (!send) return tl::unexpected(send.error());
      const auto scratch = allocate(gpu, sizes.scratch);
      if (!scratch) return tl::unexpected(scratch.error());
      buffers_.push_back({shares ? *receive + receive_at + shift : *send, *receive + receive_at, *scratch});
      auto queue = gpu.make_queue();
      if (!queue) return tl::unexpected(queue.error());
      queues_.push_back(std::move(*queue));
    }
    return {};
  }

  [[nodiscard]] std::chrono::milliseconds longest_check() const { return case_.deadline + DeviceQueue::patience; }

  const Gpus& gpus_;
  const GpuCase& case_;
  DeviceProgram program_;
  std::vector<CudaDevice*> of_rank_;
  std::vector<std::pair<CudaDevice*, std::byte*>> memories_;
  std::vector<RankBuffers> buffers_;
  std::vector<std::unique_ptr<DeviceQueue>> queues_;  ///< Of each rank, for known data.
  std::unique_ptr<GpuProgram> ranks_;
};

Result<PlacedMeasurement> measure_place(const Gpus& gpus, const GpuCase& gpu_case, const MeasureOptions& options,
                                        bool in_place) {
  CaseOnGpus on_gpus(gpus, gpu_case);
  if (auto done = on_gpus.set_up(in_place, false); !done) return tl::unexpected(done.error());
  if (auto done = on_gpus.fill(); !done) return tl::unexpected(done.error());
  auto times = on_gpus.run_iterations(options);
  if (!times) return tl::unexpected(times.error());
  PlacedMeasurement placed{summarise_times(std::move(*times)), {}};
  if (!options.checks) return placed;
  if (auto done = on_gpus.fill(); !done) return tl::unexpected(done.error());
  if (auto done = on_gpus.ranks().run(); !done) return tl::unexpected(done.error());
  const auto wrong = on_gpus.count_wrong();
  if (!wrong) return tl::unexpected(wrong.error());
  placed.wrong = *wrong;
  return placed;
}

/// Spans of all ranks from the times of the steps.
std::vector<Span> make_gpu_spans(const DeviceProgram& program, const std::vector<StepTime>& times) {
  constexpr std::int64_t picoseconds_per_nanosecond = 1000;
  std::int64_t start = INT64_MAX;
  for (const StepTime& time : times) start = std::min(start, time.begin_ns);
  std::vector<Span> spans;
  for (const BroughtChunk& brought : find_brought_chunks(program)) {
    const auto [begin, end] =
        brought.time([&](std::uint32_t step) { return std::pair(times[step].begin_ns, times[step].end_ns); });
    spans.push_back({brought.rank.value(), brought.transfer, brought.chunk, brought.phase,
                     Picoseconds{(begin - start) * picoseconds_per_nanosecond},
                     Picoseconds{(end - start) * picoseconds_per_nanosecond}});
  }
  std::ranges::stable_sort(
      spans, [](const Span& a, const Span& b) { return std::pair(a.begin, a.lane) < std::pair(b.begin, b.lane); });
  return spans;
}

}  // namespace

std::vector<std::size_t> place_ranks(std::size_t ranks, std::size_t gpus) {
  std::vector<std::size_t> places(ranks);
  for (std::size_t rank = 0; rank < ranks; ++rank) places[rank] = ranks <= gpus ? rank : rank * gpus / ranks;
  return places;
}

Result<std::uint32_t> max_blocks_on(const Gpus& gpus, std::uint32_t ranks, ElementType type,
                                    ReduceOperation operation) {
  const std::vector<std::size_t> places = place_ranks(ranks, gpus.size());
  std::uint32_t most = std::numeric_limits<std::uint32_t>::max();
  for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
    const auto on_it = static_cast<std::uint32_t>(std::ranges::count(places, gpu));
    if (on_it == 0) continue;
    const auto limit = gpus[gpu]->residency(type, operation);
    if (!limit) return tl::unexpected(limit.error());
    most = std::min(most, std::max(1U, limit->multiprocessors * limit->blocks_per_multiprocessor / on_it));
  }
  return most;
}

Result<RunMeasurement> measure_on_gpus(const Gpus& gpus, const GpuCase& gpu_case, const MeasureOptions& options) {
  RunMeasurement measurement;
  const auto apart = measure_place(gpus, gpu_case, options, false);
  if (!apart) return tl::unexpected(apart.error());
  measurement.out_of_place = *apart;
  if (!gpu_case.data.in_place_shift(0) || gpu_case.schedule.reads_inputs()) return measurement;
  const auto in_place = measure_place(gpus, gpu_case, options, true);
  if (!in_place) return tl::unexpected(in_place.error());
  measurement.in_place = *in_place;
  return measurement;
}

Result<double> predict_on_gpus(const Gpus& gpus, const GpuCase& gpu_case) {
  const auto program = make_program(gpus, gpu_case);
  if (!program) return tl::unexpected(program.error());
  GpuCosts costs;
  costs.rate_of_memory *= static_cast<double>(gpus.size());
  return program_seconds(*program, costs);
}

Result<double> measure_copy(CudaDevice& gpu, std::int64_t bytes) {
  constexpr int copies = 11;
  constexpr std::chrono::seconds longest_copy{60};
  const auto memory = gpu.allocate(2 * bytes, MemorySpace::device);
  if (!memory) return tl::unexpected(memory.error());
  const auto queue = gpu.make_queue();
  std::vector<std::int64_t> times;
  for (int i = 0; queue && i <= copies; ++i) {
    const std::int64_t begin = now_ns();
    (*queue)->copy(*memory + bytes, *memory, static_cast<std::size_t>(bytes));
    (*queue)->drain(longest_copy);
    if (i > 0) times.push_back(now_ns() - begin);  // The first one warms up.
  }
  gpu.release(*memory, 2 * bytes);
  if (!queue) return tl::unexpected(queue.error());
  if ((*queue)->has_failed()) return tl::unexpected((*queue)->error());
  return summarise_times(std::move(times)).median;
}

Result<RecordedRun> record_on_gpus(const Gpus& gpus, const GpuCase& gpu_case, const MeasureOptions& options,
                                   std::string title, std::vector<std::string> rank_names) {
  RecordedRun run;
  run.timeline.origin = "run";
  run.timeline.title = std::move(title);
  run.timeline.rank_names = std::move(rank_names);
  for (const bool records : {false, true}) {
    CaseOnGpus on_gpus(gpus, gpu_case);
    if (auto done = on_gpus.set_up(false, records); !done) return tl::unexpected(done.error());
    if (auto done = on_gpus.fill(); !done) return tl::unexpected(done.error());
    auto times = on_gpus.run_iterations(options);
    if (!times) return tl::unexpected(times.error());
    (records ? run.recorded_time : run.plain_time) = summarise_times(std::move(*times)).median;
    if (!records) continue;
    const auto steps = on_gpus.ranks().step_times();
    if (!steps) return tl::unexpected(steps.error());
    run.clock_error = static_cast<double>(on_gpus.ranks().clock_error_ns()) * 1e-9;
    run.timeline.spans = make_gpu_spans(on_gpus.program(), *steps);
  }
  return run;
}

}  // namespace espalier::engine::cuda
