#include "cli/jobs/run_on_gpus.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/jobs/run_task.h"
#include "cli/output/json_text.h"
#include "cli/reports/run_output.h"
#include "engine/cuda/device/block_choice.h"
#include "engine/cuda/device/gpu_measure.h"
#include "engine/cuda/kernels/embedded_kernels.h"
#include "planners/bounds/bound.h"
#include "planners/chooser.h"
#include "schedule/verify/verify.h"

namespace espalier::cli {
namespace {

using Gpus = std::vector<std::unique_ptr<engine::cuda::CudaDevice>>;

/// Of copies that the host gives to streams, where neither the user nor the plan chose one.
constexpr Bytes chunk_of_copies{std::int64_t{16} << 20};

Result<std::shared_ptr<const engine::cuda::Driver>> load_driver() {
  if (engine::cuda::embedded_kernels().empty()) {
    return fail(ErrorCode::unsupported,
                fmt::format("--device cuda: this espalier was built without its CUDA kernels ({})",
                            engine::cuda::why_no_kernels()),
                "build it where nvcc 12.8 or newer is found (docs/gpu.md)");
  }
  return engine::cuda::Driver::load();
}

/// As many GPUs as there are, at most one per rank.
Result<Gpus> open_gpus(std::uint32_t ranks) {
  const auto driver = load_driver();
  if (!driver) return tl::unexpected(driver.error());
  Gpus gpus;
  for (int gpu = 0; gpu < (*driver)->device_count() && gpus.size() < ranks; ++gpu) {
    auto opened = engine::cuda::CudaDevice::open(*driver, gpu, engine::cuda::embedded_kernels());
    if (!opened) return tl::unexpected(opened.error());
    gpus.push_back(std::move(*opened));
  }
  return gpus;
}

class GpuRun {
 public:
  GpuRun(const Console& console, const RunFlags& flags, const RunTask& task, const Topology& topology, const Gpus& gpus,
         const engine::cuda::PathChoice& choice)
      : console_(console), flags_(flags), task_(task), gpus_(gpus), path_(choice.path) {
    output_.topology = topology.name();
    output_.collective = task.collective;
    output_.type = task.type;
    output_.operation = task.operation;
    if (gpus.size() == task.collective.rank_count) {  // Ranks that share a GPU have no links to reach.
      if (const auto bound = planners::compute_bound(topology, task.collective)) output_.bound = bound->time_per_byte;
    }
    for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) {
      output_.rank_names.push_back(topology.rank_name(Rank(rank)));
    }
    const auto places = engine::cuda::place_ranks(task.collective.rank_count, gpus.size());
    for (std::uint32_t rank = 0; rank < task.collective.rank_count; ++rank) {
      const engine::cuda::CudaDevice& gpu = *gpus[places[rank]];
      output_.transports.push_back(
          {rank, "cuda",
           fmt::format("GPU {} ({}), {}: {}", gpu.ordinal(), gpu.model(),
                       path_ == engine::cuda::GpuPath::kernels ? "read by the kernels of all ranks in this process"
                                                               : "copies and reductions that the host gives to streams",
                       choice.reason)});
    }
    output_.options.iterations = std::max(1U, flags.iterations);
    output_.options.warmups = flags.warmups;
    output_.options.checks = flags.check != 0;
    output_.options.space = engine::MemorySpace::device;
  }

  Result<void> run(const ScheduleSource& source) {
    if (auto told = tell_copy(); !told) return told;
    print(run_header(output_));
    for (const Bytes size : task_.sizes) {
      if (auto done = run_size(source, size); !done) return done;
    }
    print(run_footer(output_));
    if (console_.json) console_.print(json_text(run_json(output_)));
    if (console_.csv) console_.print_bytes(run_table(output_).csv());
    return flags_.trace.file.empty() ? Result<void>() : write_trace(source);
  }

  /// What auto chooses by: the waits of a call cost more than links say. Nothing where a profile was named, which
  /// counts them, or where the host gives copies to streams.
  [[nodiscard]] std::function<Result<double>(const planners::Candidate&, Bytes)> seconds_there() const {
    if (task_.profile || path_ == engine::cuda::GpuPath::copies) return {};
    return [this](const planners::Candidate& candidate, Bytes size) -> Result<double> {
      const std::shared_ptr<const Schedule> schedule(std::shared_ptr<const Schedule>(), &candidate.schedule);
      const auto gpu_case = case_of({schedule, task_.chunk.value_or(Bytes{}), false}, size);
      if (!gpu_case) return tl::unexpected(gpu_case.error());
      const auto seconds = engine::cuda::predict_on_gpus(gpus_, *gpu_case);
      if (!seconds || gpus_.size() == 1) return seconds;
      return std::max(*seconds, candidate.chunks.pipelined_time(size));
    };
  }

  [[nodiscard]] bool is_right() const { return output_.wrong() == 0; }

 private:
  void print(const std::string& text) const {
    if (!console_.json && !console_.csv) console_.print(text);
  }

  /// What the GPU's own copies reach: a yardstick for what follows.
  Result<void> tell_copy() const {
    if (console_.json || console_.csv) return {};
    const Bytes size = task_.sizes.back();
    const auto seconds = engine::cuda::measure_copy(*gpus_.front(), size.count);
    if (!seconds) return tl::unexpected(seconds.error());
    print(fmt::format("# copy of {} within GPU {}: {:.1f} us, {:.2f} GB/s read plus written\n", format_size(size),
                      gpus_.front()->ordinal(), *seconds * 1e6, 2e-9 * static_cast<double>(size.count) / *seconds));
    return {};
  }

  [[nodiscard]] Result<Bytes> choose_chunk(const SourcedSchedule& sourced) const {
    if (task_.chunk) return *task_.chunk;
    if (sourced.chunk.count > 0) return sourced.chunk;
    if (path_ == engine::cuda::GpuPath::copies) return chunk_of_copies;
    const auto blocks = engine::cuda::max_blocks_on(gpus_, task_.collective.rank_count, task_.type, task_.operation);
    if (!blocks) return tl::unexpected(blocks.error());
    return engine::cuda::choose_gpu_chunk(*sourced.schedule, *blocks);
  }

  [[nodiscard]] Result<engine::cuda::GpuCase> case_of(const SourcedSchedule& sourced, Bytes size) const {
    const auto chunk = choose_chunk(sourced);
    if (!chunk) return tl::unexpected(chunk.error());
    return engine::cuda::GpuCase{*sourced.schedule, data_of(task_, size), Pacing{*chunk, 0},
                                 std::chrono::milliseconds(static_cast<std::int64_t>(flags_.timeout * 1000)), path_};
  }

  Result<void> run_size(const ScheduleSource& source, Bytes size) {
    const auto sourced = source(task_.collective, size);
    if (!sourced) return tl::unexpected(sourced.error());
    const auto gpu_case = case_of(*sourced, size);
    if (!gpu_case) return tl::unexpected(gpu_case.error());
    const auto measured = engine::cuda::measure_on_gpus(gpus_, *gpu_case, output_.options);
    if (!measured) return tl::unexpected(measured.error());
    output_.results.push_back({gpu_case->data, size, sourced->schedule->algorithm, gpu_case->pacing, *measured});
    print(run_row(output_, output_.results.back()));
    return {};
  }

  Result<void> write_trace(const ScheduleSource& source) const {
    const Bytes size = task_.sizes.back();
    const auto sourced = source(task_.collective, size);
    if (!sourced) return tl::unexpected(sourced.error());
    const std::string title = fmt::format("{}, {}, {} on {}", to_string(task_.collective.kind),
                                          sourced->schedule->algorithm, format_size(size), output_.topology);
    const auto gpu_case = case_of(*sourced, size);
    if (!gpu_case) return tl::unexpected(gpu_case.error());
    auto recorded = engine::cuda::record_on_gpus(gpus_, *gpu_case, output_.options, title, output_.rank_names);
    if (!recorded) return tl::unexpected(recorded.error());
    const auto written = write_trace_file(console_, flags_.trace, recorded->timeline);
    if (!written) {
      return fail(written.error().code, flags_.trace.file + ": " + written.error().message, written.error().help);
    }
    console_.note(fmt::format(
        "trace: {} (open it at ui.perfetto.dev); the GPUs' timers are known to {:.2f} us; {:.1f} us "
        "with recording, {:.1f} us without",
        flags_.trace.file, recorded->clock_error * 1e6, recorded->recorded_time * 1e6, recorded->plain_time * 1e6));
    return {};
  }

  const Console& console_;
  const RunFlags& flags_;
  const RunTask& task_;
  const Gpus& gpus_;
  engine::cuda::GpuPath path_;
  RunOutput output_;
};

}  // namespace

Result<std::unique_ptr<engine::Device>> open_gpu_of_rank(const engine::launch::LaunchInfo& launch,
                                                         const RunFlags& flags) {
  const auto driver = load_driver();
  if (!driver) return tl::unexpected(driver.error());
  const int gpus = (*driver)->device_count();
  if (gpus == 0) return fail(ErrorCode::unavailable, "--device cuda-ranks: the driver shows no GPU");
  using engine::launch::Launcher;
  const bool says_nothing_local = launch.launcher == Launcher::flags || launch.launcher == Launcher::espalier;
  const std::uint32_t place = says_nothing_local ? launch.rank : launch.local_rank;
  auto opened = engine::cuda::CudaDevice::open(*driver, static_cast<int>(place % static_cast<std::uint32_t>(gpus)),
                                               engine::cuda::embedded_kernels());
  if (!opened) return tl::unexpected(opened.error());
  if (flags.device == "cuda-ranks-copies") (*opened)->leave_calls_to_host();
  if (flags.bulk_copies) {
    if (auto used = (*opened)->use_bulk_copies(); !used) return tl::unexpected(used.error());
  }
  return std::unique_ptr<engine::Device>(std::move(*opened));
}

ExitCode run_on_gpus(const Console& console, const RunFlags& flags, Input& input) {
  const auto task = resolve_run(flags, input);
  if (!task) return console.refuse_usage(task.error());
  if (input.schedule) {
    const auto verified = require_verified(*input.schedule, input.topology, flags.input.argument);
    if (!verified) return console.refuse(verified.error());
  }
  const auto gpus = open_gpus(task->collective.rank_count);
  if (!gpus) {
    std::ignore = console.refuse(gpus.error());
    return ExitCode::missing_capability;
  }
  const auto choice = engine::cuda::choose_path(
      *gpus, flags.device == "cuda-copies" ? std::optional(engine::cuda::GpuPath::copies) : std::nullopt);
  if (!choice) return console.refuse(choice.error());
  if (choice->path == engine::cuda::GpuPath::copies && !flags.trace.file.empty()) {
    return console.refuse_usage(
        {ErrorCode::unsupported,
         fmt::format("--trace: copies that the host gives to streams have no times ({})", choice->reason),
         "leave --trace out, or record with --device cuda on GPUs that reach each other"});
  }
  if (flags.bulk_copies) {
    if (choice->path == engine::cuda::GpuPath::copies) {
      return console.refuse_usage({ErrorCode::unsupported,
                                   fmt::format("--bulk-copies: no kernel makes the copies here ({})", choice->reason),
                                   "leave --bulk-copies out"});
    }
    for (const auto& gpu : *gpus) {
      const auto used = gpu->use_bulk_copies();
      if (used) continue;
      std::ignore = console.refuse(used.error());
      return ExitCode::missing_capability;
    }
  }
  const Topology topology = input.topology;
  GpuRun run(console, flags, *task, topology, *gpus, *choice);
  if (auto done = run.run(source_for(flags, *task, false, input, run.seconds_there())); !done)
    return console.refuse(done.error());
  return run.is_right() ? ExitCode::ok : ExitCode::check_failed;
}

}  // namespace espalier::cli
