#include "engine/cuda/run_on_threads.h"

#include <barrier>
#include <deque>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/cuda/kernel_program.h"
#include "engine/cuda/kernels/host_kernels.h"

namespace espalier::engine::cuda {

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
  std::vector<std::thread> threads;
  threads.reserve(lowered.blocks.size());
  for (const KernelBlock& block : lowered.blocks) {
    threads.emplace_back([&] {
      for (std::uint32_t run = 0; run < runs; ++run) {
        run_block_on_host(call.type, call.operation, kernel, block);
        if (reports[block.number].state != BlockState::ended) break;
        between_calls[block.rank].arrive_and_wait();
      }
      between_calls[block.rank].arrive_and_drop();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::uint32_t block = 0; block < reports.size(); ++block) {
    if (reports[block].state != BlockState::timed_out) continue;
    return tl::unexpected(describe_late_block(program, block, reports[block], call.deadline.count()));
  }
  return {};
}

}  // namespace espalier::engine::cuda
