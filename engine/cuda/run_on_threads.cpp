#include "engine/cuda/run_on_threads.h"

#include <barrier>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/cuda/kernel_program.h"
#include "engine/cuda/kernels/host_kernels.h"

namespace espalier::engine::cuda {
namespace {

/// A thread per block. They stay for the next calls: to make one takes longer than what most blocks do, above all under
/// a sanitizer.
class BlockThreads {
 public:
  BlockThreads() = default;
  ~BlockThreads() {
    {
      const std::scoped_lock lock(mutex_);
      ends_ = true;
    }
    wake_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }
  BlockThreads(const BlockThreads&) = delete;
  BlockThreads& operator=(const BlockThreads&) = delete;

  /// work(0), work(1), ..., all at the same time. They begin together, and nothing that one does is ordered before
  /// what another does by anything here: a sanitizer is to see what `work` orders.
  void run(std::size_t count, const std::function<void(std::size_t)>& work) {
    const std::scoped_lock one_at_a_time(calls_);
    std::unique_lock lock(mutex_);
    while (threads_.size() < count) {
      threads_.emplace_back([this, index = threads_.size(), seen = call_] { serve(index, seen); });
    }
    work_ = &work;
    count_ = count;
    left_ = count;
    start_.emplace(static_cast<std::ptrdiff_t>(count));
    ++call_;
    wake_.notify_all();
    done_.wait(lock, [&] { return left_ == 0; });
  }

 private:
  void serve(std::size_t index, std::uint64_t seen) {
    std::unique_lock lock(mutex_);
    for (;;) {
      wake_.wait(lock, [&] { return ends_ || (call_ != seen && index < count_); });
      if (ends_) return;
      seen = call_;
      const std::function<void(std::size_t)>& work = *work_;
      lock.unlock();
      start_->arrive_and_wait();
      work(index);
      lock.lock();
      if (--left_ == 0) done_.notify_one();
    }
  }

  std::mutex calls_;
  std::mutex mutex_;  ///< Of all below.
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<std::thread> threads_;
  const std::function<void(std::size_t)>* work_ = nullptr;
  std::size_t count_ = 0;
  std::size_t left_ = 0;
  std::optional<std::barrier<>> start_;  ///< Of the call under way.
  std::uint64_t call_ = 0;
  bool ends_ = false;
};

}  // namespace

KernelMemory kernel_memory(const RankBuffers& buffers, const MemorySizes& sizes, std::uint64_t* mailbox) {
  return {reinterpret_cast<const unsigned char*>(buffers.send), reinterpret_cast<unsigned char*>(buffers.receive),
          reinterpret_cast<unsigned char*>(buffers.scratch), sizes.receive, mailbox};
}

Result<void> run_on_threads(const DeviceProgram& program, std::span<const RankBuffers> buffers, const DeviceCall& call,
                            std::uint32_t runs) {
  ESPALIER_CHECK(buffers.size() == program.memories.size(), "there are buffers for every rank");
  ESPALIER_CHECK(size_of(call.type) == program.element_size, "the program is of the type's size");
  std::vector<std::uint32_t> counters(program.counter_count * counter_stride, 0);
  std::vector<std::uint32_t*> addresses;
  for (std::size_t i = 0; i < program.counter_count; ++i) addresses.push_back(&counters[i * counter_stride]);
  const KernelProgram lowered = lower(program, addresses);
  std::vector<KernelMemory> memories;
  std::vector<std::vector<std::uint64_t>> mailboxes;
  for (std::size_t rank = 0; rank < buffers.size(); ++rank) {
    mailboxes.emplace_back(static_cast<std::size_t>(program.memories[rank].mailbox) / sizeof(std::uint64_t), 0);
    memories.push_back(kernel_memory(buffers[rank], program.memories[rank], mailboxes.back().data()));
  }
  std::vector<KernelReport> reports(program.blocks.size());
  std::vector<KernelProgress> progress(program.blocks.size());
  std::uint32_t abort_flag = 0;
  KernelCall kernel;
  kernel.blocks = lowered.blocks.data();
  kernel.steps = lowered.steps.data();
  kernel.pieces = lowered.pieces.data();
  kernel.waits = lowered.waits.data();
  kernel.destinations = lowered.destinations.data();
  kernel.targets = lowered.targets.data();
  kernel.memories = memories.data();
  kernel.reports = reports.data();
  kernel.progress = progress.data();
  kernel.abort_flag = &abort_flag;
  kernel.deadline_ns = static_cast<std::uint64_t>(std::chrono::nanoseconds(call.deadline).count());
  kernel.rank_count = static_cast<std::uint32_t>(buffers.size());
  kernel.divides = program.reduces && call.operation == ReduceOperation::avg ? 1 : 0;

  std::vector<std::ptrdiff_t> blocks_of(buffers.size(), 0);
  for (const KernelBlock& block : lowered.blocks) ++blocks_of[block.rank];
  std::deque<std::barrier<>> between_calls;
  for (const std::ptrdiff_t blocks : blocks_of) between_calls.emplace_back(blocks);
  static BlockThreads threads;
  threads.run(lowered.blocks.size(), [&](std::size_t index) {
    const KernelBlock& block = lowered.blocks[index];
    for (std::uint32_t run = 0; run < runs; ++run) {
      run_block_on_host(call.type, call.operation, kernel, block);
      if (reports[block.number].state != BlockState::ended) break;
      between_calls[block.rank].arrive_and_wait();
    }
    between_calls[block.rank].arrive_and_drop();
  });
  for (std::uint32_t block = 0; block < reports.size(); ++block) {
    if (reports[block].state != BlockState::timed_out) continue;
    return tl::unexpected(describe_late_block(program, block, reports[block], call.deadline.count()));
  }
  return {};
}

}  // namespace espalier::engine::cuda
