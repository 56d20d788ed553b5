#include "engine/cuda/device/gpu_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <thread>

#include "base/check.h"
#include "engine/cuda/device/gpu_clock.h"
#include "engine/cuda/device/launch_shape.h"
#include "engine/executor/clock.h"
#include "engine/executor/nvtx_range.h"

namespace espalier::engine::cuda {
namespace {

/// What the host gives the kernels to notice their deadline or the abort flag themselves.
constexpr std::chrono::milliseconds grace{2000};

}  // namespace

Result<std::unique_ptr<GpuProgram>> GpuRanks::prepare(std::span<CudaDevice* const> gpus, const DeviceProgram& program,
                                                      std::span<const RankBuffers> buffers, const DeviceCall& call,
                                                      bool records) {
  ESPALIER_CHECK(gpus.size() == program.memories.size() && buffers.size() == gpus.size(), "a GPU for every rank");
  ESPALIER_CHECK(size_of(call.type) == program.element_size, "the program is of the type's size");
  std::unique_ptr<GpuRanks> ranks(new GpuRanks(program, call));
  if (auto done = ranks->set_up(gpus, buffers, records); !done) return tl::unexpected(done.error());
  return ranks;
}

GpuRanks::~GpuRanks() {
  bool has_ended = true;
  for (const Part& part : parts_) {
    if (part.stream == nullptr) continue;
    static_cast<void>(part.gpu->await(part.stream, DeviceQueue::patience, "finish a program"));
    has_ended = has_ended && !part.gpu->is_lost();
  }
  if (!has_ended) {  // Kernels may still use what lies on other GPUs.
    for (const Part& part : parts_) part.gpu->give_up();
    return;
  }
  for (Part& part : parts_) {
    part.gpu->make_current();
    if (part.stream != nullptr) part.gpu->driver().api().destroy_stream(part.stream);
    part.release();
  }
}

Result<void> GpuRanks::find_gpus(std::span<CudaDevice* const> gpus) {
  for (CudaDevice* const gpu : gpus) {
    const auto known = std::ranges::find(parts_, gpu, &Part::gpu);
    part_of_.push_back(static_cast<std::size_t>(known - parts_.begin()));
    if (known == parts_.end()) parts_.emplace_back().gpu = gpu;
  }
  for (const Block& block : program_.blocks) ++parts_[part_of_[block.rank.index()]].block_count;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    Part& part = parts_[index];
    const auto limit = part.gpu->residency(call_.type, call_.operation);
    if (!limit) return tl::unexpected(limit.error());
    const auto ranks = static_cast<std::size_t>(std::ranges::count(part_of_, index));
    if (auto fits = check_co_residency(ranks, part.block_count, *limit); !fits) return fits;
    for (const Part& other : parts_) {
      if (auto reached = part.gpu->reach(*other.gpu); !reached) return reached;
    }
  }
  return {};
}

/// A counter lies on the GPU of the block that counts it up.
Result<void> GpuRanks::place_counters(std::vector<std::uint32_t*>& counters) {
  constexpr auto counter_bytes = static_cast<std::int64_t>(counter_stride * sizeof(std::uint32_t));
  const std::vector<Rank> owners = counter_owners(program_);
  counters.resize(owners.size());
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const auto memory =
        parts_[index].allocate(static_cast<std::int64_t>(owners.size()) * counter_bytes, MemorySpace::device);
    if (!memory) return tl::unexpected(memory.error());
    for (std::size_t counter = 0; counter < owners.size(); ++counter) {
      if (part_of_[owners[counter].index()] != index) continue;
      counters[counter] = reinterpret_cast<std::uint32_t*>(*memory) + counter * counter_stride;
    }
  }
  return {};
}

Result<void> GpuRanks::set_up(std::span<CudaDevice* const> gpus, std::span<const RankBuffers> buffers, bool records) {
  if (auto found = find_gpus(gpus); !found) return found;
  for (Part& part : parts_) {
    part.gpu->make_current();
    const Driver& driver = part.gpu->driver();
    if (auto done = driver.check(driver.api().make_stream(&part.stream, non_blocking_stream), "make a stream"); !done) {
      return done;
    }
    const auto kernel = part.gpu->find_kernel(KernelKind::run, call_.type, call_.operation);
    if (!kernel) return tl::unexpected(kernel.error());
    part.kernel = *kernel;
  }
  std::vector<std::uint32_t*> counters;
  if (auto placed = place_counters(counters); !placed) return placed;
  // Read by the host and by all GPUs: pinned, behind each other.
  const auto reports_bytes = static_cast<std::int64_t>(program_.blocks.size() * sizeof(KernelReport));
  const auto shared = parts_.front().allocate(reports_bytes + std::int64_t{sizeof(std::uint32_t)}, MemorySpace::pinned);
  if (!shared) return tl::unexpected(shared.error());
  reports_ = reinterpret_cast<KernelReport*>(*shared);
  abort_flag_ = reinterpret_cast<std::uint32_t*>(*shared + reports_bytes);

  const KernelProgram lowered = lower(program_, counters);
  std::vector<KernelMemory> memories;
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    const RankBuffers& of = buffers[rank];
    for (const std::byte* data : {of.send, static_cast<const std::byte*>(of.receive)}) {
      if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(program_.element_size) == 0) continue;
      return fail(ErrorCode::invalid_input, fmt::format("a buffer of rank {} is not aligned to elements of {} bytes",
                                                        rank, program_.element_size));
    }
    const auto mailbox = parts_[part_of_[rank]].allocate(program_.memories[rank].mailbox, MemorySpace::device);
    if (!mailbox) return tl::unexpected(mailbox.error());
    memories.push_back(kernel_memory(of, program_.memories[rank], reinterpret_cast<std::uint64_t*>(*mailbox)));
  }
  for (Part& part : parts_) {
    if (auto filled = fill(part, lowered, memories, records); !filled) return filled;
  }
  return {};
}

Result<void> GpuRanks::fill(Part& part, const KernelProgram& lowered, std::span<const KernelMemory> memories,
                            bool records) {
  std::vector<KernelBlock> own;
  for (const KernelBlock& block : lowered.blocks) {
    if (parts_[part_of_[block.rank]].gpu == part.gpu) own.push_back(block);
  }
  if (auto done = part.upload_program(lowered, own); !done) return done;
  const auto uploaded = part.upload(memories);
  if (!uploaded) return tl::unexpected(uploaded.error());
  part.call.memories = *uploaded;
  if (records) {
    const auto bytes = static_cast<std::int64_t>(lowered.steps.size() * sizeof(KernelStamp));
    const auto stamps = part.allocate(bytes, MemorySpace::pinned);
    if (!stamps) return tl::unexpected(stamps.error());
    part.call.stamps = reinterpret_cast<KernelStamp*>(*stamps);
  }
  part.call.reports = reports_;
  part.call.abort_flag = abort_flag_;
  part.call.deadline_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(call_.deadline).count());
  part.call.rank_count = static_cast<std::uint32_t>(memories.size());
  part.call.bulk_copies = part.gpu->copies_in_bulk() ? 1 : 0;
  part.call.divides = program_.reduces && call_.operation == ReduceOperation::avg ? 1 : 0;
  return {};
}

std::vector<CudaDevice*> GpuRanks::gpus() const {
  std::vector<CudaDevice*> gpus;
  for (const Part& part : parts_) gpus.push_back(part.gpu);
  return gpus;
}

/// Kernels that were launched stop where they wait.
Result<void> GpuRanks::fail_for_good(Error error) {
  std::atomic_ref(*abort_flag_).store(1);
  failure_ = std::move(error);
  return tl::unexpected(*failure_);
}

Result<void> GpuRanks::enqueue(std::span<const DriverHandle> streams) {
  if (auto well = check(); !well) return well;
  ESPALIER_CHECK(streams.size() == parts_.size(), "a stream for every GPU");
  const NvtxRange range([&] { return fmt::format("device program of {} ranks", program_.memories.size()); });
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    Part& part = parts_[index];
    part.gpu->make_current();
    const Driver& driver = part.gpu->driver();
    std::array<void*, 1> parameters = {&part.call};
    const auto launched =
        driver.check(driver.api().launch_cooperative(part.kernel, part.block_count, 1, 1, threads_per_block, 1, 1,
                                                     part.gpu->shared_bytes(), streams[index], parameters.data()),
                     fmt::format("launch the interpreter on GPU {}", part.gpu->ordinal()));
    if (!launched) return fail_for_good(launched.error());
  }
  return {};
}

/// The first block that stops for its deadline sets the flag, and reports.
Result<void> GpuRanks::check() {
  if (failure_) return tl::unexpected(*failure_);
  if (std::atomic_ref(*abort_flag_).load() == 0) return {};
  auto late = find_late_block();
  return fail_for_good(late ? Error{ErrorCode::unavailable, "a call before was given up", {}} : late.error());
}

Result<void> GpuRanks::run() {
  if (failure_) return tl::unexpected(*failure_);
  for (std::size_t block = 0; block < program_.blocks.size(); ++block) reports_[block] = {};
  std::vector<DriverHandle> streams;
  for (const Part& part : parts_) streams.push_back(part.stream);
  if (auto given = enqueue(streams); !given) return given;
  if (auto ended = await(); !ended) return fail_for_good(ended.error());
  return {};
}

Result<void> GpuRanks::await() {
  auto ends_at = std::chrono::steady_clock::now() + call_.deadline + grace;
  bool is_stopping = false;
  for (std::size_t done = 0; done < parts_.size();) {
    done = 0;
    for (Part& part : parts_) {
      part.gpu->make_current();
      const DriverStatus status = part.gpu->driver().api().query_stream(part.stream);
      if (status == status_success) {
        ++done;
      } else if (status != status_not_ready) {
        return tl::unexpected(
            part.gpu->driver().describe(status, fmt::format("run the interpreter on GPU {}", part.gpu->ordinal())));
      }
    }
    if (std::chrono::steady_clock::now() < ends_at) continue;
    if (is_stopping) {
      for (Part& part : parts_) part.gpu->give_up();
      return fail(ErrorCode::unavailable,
                  fmt::format("a kernel does not end, {} ms past its deadline", 2 * grace.count()),
                  "its GPU hangs: see nvidia-smi and the kernel's log");
    }
    is_stopping = true;
    std::atomic_ref(*abort_flag_).store(1);
    ends_at += grace;
  }
  return find_late_block();
}

Result<void> GpuRanks::find_late_block() const {
  for (std::uint32_t block = 0; block < program_.blocks.size(); ++block) {
    if (reports_[block].state != BlockState::timed_out) continue;
    return tl::unexpected(describe_late_block(program_, block, reports_[block], call_.deadline.count()));
  }
  for (std::uint32_t block = 0; block < program_.blocks.size(); ++block) {
    if (reports_[block].state == BlockState::ended) continue;
    return fail(ErrorCode::unavailable,
                fmt::format("rank {}, block {} did not end", program_.blocks[block].rank.value(), block));
  }
  return {};
}

Result<std::vector<StepTime>> GpuRanks::step_times() {
  std::vector<StepTime> times(program_.steps.size());
  clock_error_ns_ = 0;
  for (std::size_t index = 0; index < parts_.size(); ++index) {
    const Part& part = parts_[index];
    ESPALIER_CHECK(part.call.stamps != nullptr, "the run is recorded");
    const auto clock = compare_clocks(*part.gpu, call_.type, call_.operation);
    if (!clock) return tl::unexpected(clock.error());
    clock_error_ns_ = std::max(clock_error_ns_, clock->error_ns);
    for (const Block& block : program_.blocks) {
      if (part_of_[block.rank.index()] != index) continue;
      for (std::uint32_t step = block.first_step; step < block.first_step + block.step_count; ++step) {
        const KernelStamp& stamp = part.call.stamps[step];
        times[step] = {static_cast<std::int64_t>(stamp.begin) - clock->ahead_ns,
                       static_cast<std::int64_t>(stamp.end) - clock->ahead_ns};
      }
    }
  }
  return times;
}

}  // namespace espalier::engine::cuda
