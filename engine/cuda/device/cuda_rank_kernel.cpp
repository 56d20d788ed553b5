#include "engine/cuda/device/cuda_rank_kernel.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/check.h"
#include "engine/cuda/device/block_choice.h"
#include "engine/cuda/device/cuda_queue.h"
#include "engine/cuda/run_on_threads.h"
#include "engine/cuda/verify_program.h"
#include "engine/executor/recorder.h"

namespace espalier::engine::cuda {
namespace {

BlockOptions block_options(const RankKernel::Shape& shape) {
  BlockOptions options = choose_blocks(shape.schedule, shape.layout, shape.pacing, shape.blocks);
  options.low_latency &= shape.in_kernel.empty();
  options.in_kernel = shape.in_kernel;
  return options;
}

/// Whose memories the steps of a rank read, and write beside its own. Steps with mailboxes touch their own alone.
std::vector<bool> find_reached(const DeviceProgram& program, Rank self) {
  std::vector<bool> reached(program.memories.size());
  for (const Block& block : program.blocks) {
    if (block.rank != self || block.by_host) continue;
    for (const Step& step : std::span(program.steps).subspan(block.first_step, block.step_count)) {
      if (step.kind != StepKind::copy && step.kind != StepKind::reduce) continue;
      reached[step.peer.index()] = true;
      const auto further = std::span(program.destinations).subspan(step.first_destination, step.destination_count);
      for (const Destination& destination : further) reached[destination.rank.index()] = true;
    }
  }
  return reached;
}

/// Kernels are loaded when they are first asked about, which may wait for kernels that run: so before.
Result<void> load_reduction(CudaDevice& gpu, ElementType type, ReduceOperation operation) {
  const auto kernel = gpu.find_kernel(KernelKind::reduce, type, operation);
  if (!kernel) return tl::unexpected(kernel.error());
  int blocks = 0;
  return gpu.driver().check(gpu.driver().api().resident_blocks(&blocks, *kernel, threads_per_block, 0),
                            "load a reduction");
}

}  // namespace

Result<std::unique_ptr<RankKernel>> CudaRankKernel::make(CudaDevice& gpu, const Shape& shape) {
  auto program = compile_for_device(shape.schedule, shape.layout, shape.pacing, block_options(shape));
  if (!program) return tl::unexpected(program.error());
  if (auto verified = verify(*program, true); !verified) return tl::unexpected(verified.error());
  return std::unique_ptr<RankKernel>(new CudaRankKernel(gpu, std::move(*program), shape));
}

/// Kernels notice their deadline before the host notices its own, for they know what they waited for.
CudaRankKernel::CudaRankKernel(CudaDevice& gpu, DeviceProgram program, const Shape& shape)
    : program_(std::move(program)), self_(shape.self), deadline_(shape.deadline * 7 / 8), in_kernel_(shape.in_kernel) {
  part_.gpu = &gpu;
  reached_ = find_reached(program_, self_);
  host_ops_ = find_host_ops(program_, shape.program, shape.schedule, self_, in_kernel_);
  words_.resize(shape.program.streams.size());
  for (const HostOp& op : host_ops_) words_[op.stream].op_count = shape.program.streams[op.stream].op_count;
}

CudaRankKernel::~CudaRankKernel() { part_.release(); }

std::int64_t CudaRankKernel::counter_bytes() const {
  return static_cast<std::int64_t>(program_.counter_count * counter_stride * sizeof(std::uint32_t));
}

/// All counters, of which those are used that blocks of this rank count up; then the rank's mailbox.
std::int64_t CudaRankKernel::shared_bytes() const { return counter_bytes() + program_.memories[self_.index()].mailbox; }

Result<void> CudaRankKernel::make_words() {
  if (host_ops_.empty()) return {};
  constexpr std::size_t words_per_stream = 2 * counter_stride;
  const std::size_t words = words_.size() * words_per_stream;
  const auto pinned = part_.allocate(static_cast<std::int64_t>(words * sizeof(std::uint32_t)), MemorySpace::pinned);
  if (!pinned) return tl::unexpected(pinned.error());
  auto* word = reinterpret_cast<std::uint32_t*>(*pinned);
  std::fill_n(word, words, 0);
  for (HostStreamWords& stream : words_) {
    stream.permitted = word;
    stream.done = word + counter_stride;
    word += words_per_stream;
  }
  return {};
}

Result<void> CudaRankKernel::upload(std::span<std::byte* const> shared) {
  std::vector<std::uint32_t*> counters;
  for (const Rank place : counter_places(program_, in_kernel_, self_)) {
    counters.push_back(reinterpret_cast<std::uint32_t*>(shared[place.index()]) + counters.size() * counter_stride);
  }
  KernelProgram lowered = lower(program_, counters);
  add_host_blocks(lowered, self_, host_ops_, counters, words_);
  std::vector<KernelBlock> own;
  std::ranges::copy_if(lowered.blocks, std::back_inserter(own), [&](const KernelBlock& block) {
    const bool by_host = block.number < program_.blocks.size() && program_.blocks[block.number].by_host;
    return block.rank == self_.value() && !by_host;
  });
  step_count_ = lowered.steps.size();
  block_count_ = lowered.blocks.size();
  return part_.upload_program(lowered, own);
}

Result<void> CudaRankKernel::attach(std::span<std::byte* const> shared) {
  ESPALIER_CHECK(shared.size() == program_.memories.size(), "every rank has such memory");
  for (std::byte* memory : shared) mailboxes_.push_back(reinterpret_cast<std::uint64_t*>(memory + counter_bytes()));
  if (auto made = make_words(); !made) return made;
  if (auto done = upload(shared); !done) return done;
  const auto memories_bytes = static_cast<std::int64_t>(shared.size() * sizeof(KernelMemory));
  const auto reports_bytes = static_cast<std::int64_t>(block_count_ * sizeof(KernelReport));
  const auto pinned = part_.allocate(memories_bytes + reports_bytes, MemorySpace::pinned);
  if (!pinned) return tl::unexpected(pinned.error());
  memories_ = reinterpret_cast<KernelMemory*>(*pinned);
  reports_ = reinterpret_cast<KernelReport*>(*pinned + memories_bytes);
  part_.call.memories = memories_;
  part_.call.reports = reports_;
  part_.call.deadline_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(deadline_).count());
  part_.call.rank_count = static_cast<std::uint32_t>(shared.size());
  return {};
}

Result<void> CudaRankKernel::choose_kernel(ElementType type, ReduceOperation operation) {
  if (chosen_ == std::pair(type, operation)) return {};
  const auto limit = part_.gpu->residency(type, operation);
  if (!limit) return tl::unexpected(limit.error());
  if (auto fits = check_co_residency(1, part_.block_count, *limit); !fits) return fits;
  const auto kernel = part_.gpu->find_kernel(KernelKind::run, type, operation);
  if (!kernel) return tl::unexpected(kernel.error());
  kernel_ = *kernel;
  if (!host_ops_.empty()) {
    if (auto loaded = load_reduction(*part_.gpu, type, operation); !loaded) return loaded;
  }
  chosen_ = {type, operation};
  return {};
}

Result<void> CudaRankKernel::make_stamps() {
  if (stamps_ != nullptr) return {};
  const auto bytes = static_cast<std::int64_t>(step_count_ * sizeof(KernelStamp));
  const auto stamps = part_.allocate(bytes, MemorySpace::pinned);
  if (!stamps) return tl::unexpected(stamps.error());
  stamps_ = reinterpret_cast<KernelStamp*>(*stamps);
  brought_ = find_brought_chunks(program_, self_);
  return {};
}

Result<void> CudaRankKernel::point_at(std::span<const Memories> memories) {
  for (std::size_t rank = 0; rank < memories.size(); ++rank) {
    const auto& [send, receive, scratch] = memories[rank];
    for (const std::byte* data : {send, receive}) {
      if (reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uintptr_t>(program_.element_size) == 0) continue;
      return fail(ErrorCode::invalid_input, fmt::format("a buffer of rank {} is not aligned to elements of {} bytes",
                                                        rank, program_.element_size));
    }
    memories_[rank] = kernel_memory({send, receive, scratch}, program_.memories[rank], mailboxes_[rank]);
  }
  std::fill_n(reports_, block_count_, KernelReport{});
  return {};
}

Result<void> CudaRankKernel::launch(DeviceQueue& queue, ElementType type, ReduceOperation operation,
                                    std::span<const Memories> memories, bool records) {
  if (auto chosen = choose_kernel(type, operation); !chosen) return chosen;
  if (records) {
    if (auto made = make_stamps(); !made) return made;
  }
  part_.call.stamps = records ? stamps_ : nullptr;
  if (auto pointed = point_at(memories); !pointed) return pointed;
  if (has_launched_) ++calls_before_;
  has_launched_ = true;
  auto& stream = static_cast<CudaQueue&>(queue);
  stream.launch_together(kernel_, part_.block_count, part_.call, stream);
  return {};
}

/// The launch has the same parameters whenever the graph runs: blocks count their calls themselves.
Result<void> CudaRankKernel::capture(DeviceQueue& capturing, DeviceQueue& stops_with, ElementType type,
                                     ReduceOperation operation, std::span<const Memories> memories) {
  if (auto chosen = choose_kernel(type, operation); !chosen) return chosen;
  if (auto pointed = point_at(memories); !pointed) return pointed;
  auto& stream = static_cast<CudaQueue&>(capturing);
  stream.launch_together(kernel_, part_.block_count, part_.call, static_cast<CudaQueue&>(stops_with));
  if (stream.has_failed()) return tl::unexpected(stream.error());
  return {};
}

Result<void> CudaRankKernel::check_captured() const {
  for (std::uint32_t block = 0; block < program_.blocks.size(); ++block) {
    const BlockState state = std::atomic_ref(reports_[block].state).load(std::memory_order_acquire);
    if (state == BlockState::timed_out) {
      return tl::unexpected(describe_late_block(program_, block, reports_[block], deadline_.count()));
    }
    if (state == BlockState::stopped) {
      return fail(ErrorCode::unavailable, fmt::format("rank {}, block {} was stopped", self_.value(), block));
    }
  }
  return {};
}

std::uint32_t CudaRankKernel::permitted(std::uint32_t stream) const {
  const HostStreamWords& words = words_[stream];
  const std::uint32_t count = std::atomic_ref(*words.permitted).load(std::memory_order_acquire);
  return count - calls_before_ * words.op_count;
}

void CudaRankKernel::note_done(std::uint32_t stream, std::uint32_t ops) {
  const HostStreamWords& words = words_[stream];
  std::atomic_ref(*words.done).store(calls_before_ * words.op_count + ops, std::memory_order_release);
}

std::optional<Error> CudaRankKernel::find_late_host_op() const {
  for (std::size_t block = block_count_; block > program_.blocks.size(); --block) {  // First what hosts did not do.
    const KernelReport& report = reports_[block - 1];
    if (report.state == BlockState::ended) continue;
    const HostOp& op = host_ops_[report.step];
    return Error{ErrorCode::unavailable,
                 fmt::format("rank {}: transfer {} chunk {} {} rank {} {} within {} ms", self_.value(),
                             op.transfer.value(), op.chunk, op.is_outgoing ? "to" : "from", op.peer.value(),
                             block == block_count_ ? "was not done" : "could not begin", deadline_.count()),
                 {}};
  }
  return std::nullopt;
}

Result<void> CudaRankKernel::check() {
  std::optional<std::uint32_t> not_ended;
  std::optional<std::uint32_t> late;
  for (std::uint32_t block = 0; block < block_count_; ++block) {
    const bool is_own =
        block >= program_.blocks.size() || (program_.blocks[block].rank == self_ && !program_.blocks[block].by_host);
    if (!is_own || reports_[block].state == BlockState::ended) continue;
    if (!not_ended) not_ended = block;
    if (!late && reports_[block].state == BlockState::timed_out) late = block;
  }
  if (!not_ended) return {};
  if (!late)
    return fail(ErrorCode::unavailable, fmt::format("rank {}, block {} did not end", self_.value(), *not_ended));
  if (auto op = find_late_host_op()) return tl::unexpected(std::move(*op));
  return tl::unexpected(describe_late_block(program_, *late, reports_[*late], deadline_.count()));
}

void CudaRankKernel::record(Recorder& recorder) const {
  for (const BroughtChunk& brought : brought_) {
    const auto [begin, end] = brought.time([&](std::uint32_t step) {
      return std::pair(static_cast<std::int64_t>(stamps_[step].begin), static_cast<std::int64_t>(stamps_[step].end));
    });
    recorder.add_of_device({brought.transfer, brought.chunk, brought.phase, begin, end, brought.rank.value()},
                           *part_.gpu);
  }
}

}  // namespace espalier::engine::cuda
