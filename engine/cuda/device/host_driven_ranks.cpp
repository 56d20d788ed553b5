#include "engine/cuda/device/host_driven_ranks.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>

#include "base/check.h"
#include "engine/cuda/device/launch_shape.h"
#include "engine/cuda/kernels/kernel_call.h"

namespace espalier::engine::cuda {

HostDrivenRanks::HostDrivenRanks(std::span<CudaDevice* const> gpus, const DeviceProgram& program,
                                 std::span<const RankBuffers> buffers, const DeviceCall& call)
    : of_rank_(gpus.begin(), gpus.end()), program_(program), buffers_(buffers.begin(), buffers.end()), call_(call) {
  for (CudaDevice* const gpu : of_rank_) {
    if (std::ranges::find(gpus_, gpu) == gpus_.end()) gpus_.push_back(gpu);
  }
}

Result<std::unique_ptr<GpuProgram>> HostDrivenRanks::prepare(std::span<CudaDevice* const> gpus,
                                                             const DeviceProgram& program,
                                                             std::span<const RankBuffers> buffers,
                                                             const DeviceCall& call) {
  ESPALIER_CHECK(gpus.size() == program.memories.size() && buffers.size() == gpus.size(), "a GPU for every rank");
  ESPALIER_CHECK(program.destinations.empty(), "the host writes to one place at a time");
  std::unique_ptr<HostDrivenRanks> ranks(new HostDrivenRanks(gpus, program, buffers, call));
  if (auto done = ranks->set_up(); !done) return tl::unexpected(done.error());
  return ranks;
}

HostDrivenRanks::~HostDrivenRanks() {
  bool has_ended = true;
  for (const Work& work : works_) {
    if (work.stream == nullptr) continue;
    static_cast<void>(work.gpu->await(work.stream, DeviceQueue::patience, "finish a program"));
    has_ended = has_ended && !work.gpu->is_lost();
  }
  if (!has_ended) {  // Copies may still use what lies on other GPUs.
    for (CudaDevice* const gpu : gpus_) gpu->give_up();
    return;
  }
  for (Work& work : works_) {
    if (work.stream == nullptr) continue;
    work.gpu->make_current();
    const DriverApi& api = work.gpu->driver().api();
    api.destroy_stream(work.stream);
    if (work.ended != nullptr) api.destroy_event(work.ended);
    if (work.staging != nullptr) work.gpu->release(work.staging, work.staging_bytes);
  }
  const DriverApi& api = gpus_.front()->driver().api();
  for (const std::vector<DriverHandle>* events : {&step_events_, &begins_}) {
    for (const DriverHandle event : *events) {
      if (event != nullptr) api.destroy_event(event);
    }
  }
  for (const DriverHandle stream : own_streams_) api.destroy_stream(stream);
}

Result<void> HostDrivenRanks::make_event(const CudaDevice& gpu, DriverHandle& event) {
  gpu.make_current();
  return gpu.driver().check(gpu.driver().api().make_event(&event, event_without_timing), "make an event");
}

Result<void> HostDrivenRanks::set_up() {
  signals_.resize(program_.counter_count);
  step_events_.resize(program_.steps.size(), nullptr);
  for (const Block& block : program_.blocks) {
    Work& work = works_.emplace_back();
    work.gpu = of_rank_[block.rank.index()];
    work.gpu->make_current();
    const Driver& driver = work.gpu->driver();
    auto done = driver.check(driver.api().make_stream(&work.stream, non_blocking_stream), "make a stream");
    if (done) done = make_event(*work.gpu, work.ended);
    for (std::uint32_t i = block.first_step; done && i < block.first_step + block.step_count; ++i) {
      const Step& step = program_.steps[i];
      if (step.signal != no_counter) {
        signals_[step.signal].push_back(i);
        done = make_event(*work.gpu, step_events_[i]);
      }
      if (step.kind != StepKind::reduce || of_rank_[step.peer.index()] == work.gpu) continue;
      for (std::uint32_t p = 0; p < step.piece_count; ++p) {
        work.staging_bytes = std::max(work.staging_bytes, program_.pieces[step.first_piece + p].length);
      }
    }
    if (!done) return done;
    if (work.staging_bytes == 0) continue;
    const auto staging = work.gpu->allocate(work.staging_bytes, MemorySpace::device);
    if (!staging) return tl::unexpected(staging.error());
    work.staging = *staging;
  }
  for (CudaDevice* const gpu : gpus_) {
    gpu->make_current();
    DriverHandle stream = nullptr;
    auto done = gpu->driver().check(gpu->driver().api().make_stream(&stream, non_blocking_stream), "make a stream");
    if (!done) return done;
    own_streams_.push_back(stream);
    if (done = make_event(*gpu, begins_.emplace_back()); !done) return done;
  }
  return {};
}

Result<void> HostDrivenRanks::fail_for_good(Error error) {
  failure_ = std::move(error);
  return tl::unexpected(*failure_);
}

Result<void> HostDrivenRanks::run() {
  if (auto given = enqueue(own_streams_); !given) return given;
  const auto ends_at = std::chrono::steady_clock::now() + call_.deadline;
  for (std::size_t done = 0; done < gpus_.size();) {
    done = 0;
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      gpus_[gpu]->make_current();
      const DriverStatus status = gpus_[gpu]->driver().api().query_stream(own_streams_[gpu]);
      if (status == status_success) {
        ++done;
      } else if (status != status_not_ready) {
        return fail_for_good(
            gpus_[gpu]->driver().describe(status, fmt::format("finish the copies of GPU {}", gpus_[gpu]->ordinal())));
      }
    }
    if (done < gpus_.size() && std::chrono::steady_clock::now() >= ends_at) {
      for (CudaDevice* const gpu : gpus_) gpu->give_up();
      return fail_for_good({ErrorCode::unavailable,
                            fmt::format("copies and reductions did not end within {} ms", call_.deadline.count()),
                            "a GPU hangs: see nvidia-smi and the kernel's log"});
    }
  }
  return {};
}

Result<void> HostDrivenRanks::check() { return failure_ ? tl::unexpected(*failure_) : Result<void>(); }

Result<std::vector<StepTime>> HostDrivenRanks::step_times() {
  return fail(ErrorCode::unsupported, "copies that the host gives to streams have no times of their steps",
              "--device cuda has kernels that note them");
}

/// All blocks' streams begin behind the callers', which go on behind all of them.
Result<void> HostDrivenRanks::enqueue(std::span<const DriverHandle> streams) {
  if (failure_) return tl::unexpected(*failure_);
  ESPALIER_CHECK(streams.size() == gpus_.size(), "a stream for every GPU");
  for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
    gpus_[gpu]->make_current();
    const Driver& driver = gpus_[gpu]->driver();
    if (auto done = driver.check(driver.api().record_event(begins_[gpu], streams[gpu]), "record an event"); !done) {
      return fail_for_good(done.error());
    }
  }
  for (Work& work : works_) {
    const Driver& driver = work.gpu->driver();
    work.gpu->make_current();
    work.next_step = 0;
    for (const DriverHandle begin : begins_) {
      auto done = driver.check(driver.api().stream_wait(work.stream, begin, 0), "let a stream wait");
      if (!done) return fail_for_good(done.error());
    }
  }
  if (auto done = give(); !done) return fail_for_good(done.error());
  for (Work& work : works_) {
    const Driver& driver = work.gpu->driver();
    work.gpu->make_current();
    auto done = driver.check(driver.api().record_event(work.ended, work.stream), "record an event");
    for (std::size_t gpu = 0; done && gpu < gpus_.size(); ++gpu) {
      gpus_[gpu]->make_current();
      done = driver.check(driver.api().stream_wait(streams[gpu], work.ended, 0), "let a stream wait");
    }
    if (!done) return fail_for_good(done.error());
  }
  return {};
}

bool HostDrivenRanks::was_given(const CounterWait& wait) const { return given_[wait.counter] >= wait.count; }

/// Steps in an order in which all that a step waits for has its event already.
Result<void> HostDrivenRanks::give() {
  given_.assign(program_.counter_count, 0);
  for (bool moved = true; moved;) {
    moved = false;
    for (std::uint32_t block = 0; block < works_.size(); ++block) {
      while (works_[block].next_step < program_.blocks[block].step_count) {
        const Step& step = program_.steps[program_.blocks[block].first_step + works_[block].next_step];
        const auto waits = std::span(program_.waits).subspan(step.first_wait, step.wait_count);
        if (!std::ranges::all_of(waits, [&](const CounterWait& wait) { return was_given(wait); })) break;
        if (auto done = give_step(block); !done) return done;
        ++works_[block].next_step;
        moved = true;
      }
    }
  }
  return {};
}

Result<void> HostDrivenRanks::give_step(std::uint32_t block) {
  Work& work = works_[block];
  const Rank rank = program_.blocks[block].rank;
  const std::uint32_t index = program_.blocks[block].first_step + work.next_step;
  const Step& step = program_.steps[index];
  const Driver& driver = work.gpu->driver();
  work.gpu->make_current();
  for (std::uint32_t i = 0; i < step.wait_count; ++i) {
    const CounterWait& wait = program_.waits[step.first_wait + i];
    if (wait.count == 0) continue;
    const DriverHandle event = step_events_[signals_[wait.counter][wait.count - 1]];
    if (auto done = driver.check(driver.api().stream_wait(work.stream, event, 0), "let a stream wait"); !done) {
      return done;
    }
  }
  for (std::uint32_t i = 0; i < step.piece_count; ++i) {
    if (auto done = move_piece(work, step, program_.pieces[step.first_piece + i], rank); !done) return done;
  }
  if (step.kind == StepKind::finish && program_.reduces && call_.operation == ReduceOperation::avg) {
    if (auto done = divide(work, rank); !done) return done;
  }
  if (step.signal == no_counter) return {};
  ++given_[step.signal];
  return driver.check(driver.api().record_event(step_events_[index], work.stream), "record an event");
}

std::byte* HostDrivenRanks::address(Rank rank, const Location& location) const {
  const RankBuffers& of = buffers_[rank.index()];
  // Send buffers are only read: the verifier saw to it.
  std::byte* const base = location.place == Place::send      ? const_cast<std::byte*>(of.send)
                          : location.place == Place::receive ? of.receive
                                                             : of.scratch;
  return base + location.offset;
}

Result<void> HostDrivenRanks::move_piece(Work& work, const Step& step, const Piece& piece, Rank rank) {
  const std::byte* source = address(step.peer, piece.source);
  std::byte* const target = step.kind == StepKind::reduce ? work.staging : address(rank, piece.target);
  CudaDevice& from = *of_rank_[step.peer.index()];
  const bool is_remote = &from != work.gpu;
  if (is_remote || (step.kind == StepKind::copy && source != target)) {
    const Driver& driver = work.gpu->driver();
    const auto to_address = reinterpret_cast<DeviceAddress>(target);
    const auto from_address = reinterpret_cast<DeviceAddress>(source);
    const auto bytes = static_cast<std::size_t>(piece.length);
    const DriverStatus status = is_remote ? driver.api().copy_peer(to_address, work.gpu->context(), from_address,
                                                                   from.context(), bytes, work.stream)
                                          : driver.api().copy_within(to_address, from_address, bytes, work.stream);
    if (auto done = driver.check(status, "copy"); !done) return done;
    source = target;
  }
  return step.kind == StepKind::reduce ? reduce(work, piece, rank, source) : Result<void>();
}

Result<void> HostDrivenRanks::reduce(Work& work, const Piece& piece, Rank rank, const std::byte* source) {
  ReduceCall call;
  call.first = reinterpret_cast<const unsigned char*>(address(rank, piece.first));
  call.sources[0] = reinterpret_cast<const unsigned char*>(source);
  call.targets[0] = reinterpret_cast<unsigned char*>(address(rank, piece.target));
  call.source_count = call.target_count = 1;
  call.element_count = static_cast<std::uint64_t>(piece.length / program_.element_size);
  return launch(work, KernelKind::reduce, piece.length, &call);
}

Result<void> HostDrivenRanks::divide(Work& work, Rank rank) {
  const std::int64_t bytes = program_.memories[rank.index()].receive;
  if (bytes == 0) return {};
  DivideCall call;
  call.data = reinterpret_cast<unsigned char*>(buffers_[rank.index()].receive);
  call.element_count = static_cast<std::uint64_t>(bytes / program_.element_size);
  call.ranks = static_cast<std::uint32_t>(buffers_.size());
  return launch(work, KernelKind::divide, bytes, &call);
}

Result<void> HostDrivenRanks::launch(Work& work, KernelKind kind, std::int64_t bytes, void* parameters) {
  const auto kernel = work.gpu->find_kernel(kind, call_.type, call_.operation);
  if (!kernel) return tl::unexpected(kernel.error());
  work.gpu->make_current();
  std::array<void*, 1> list = {parameters};
  const unsigned blocks = blocks_for(*work.gpu, static_cast<std::uint64_t>(bytes));
  return work.gpu->driver().check(work.gpu->driver().api().launch(*kernel, blocks, 1, 1, threads_per_block, 1, 1, 0,
                                                                  work.stream, list.data(), nullptr),
                                  "launch " + kernel_name(kind, call_.type, call_.operation));
}

}  // namespace espalier::engine::cuda
