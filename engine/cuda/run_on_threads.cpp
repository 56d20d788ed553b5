#include "engine/cuda/run_on_threads.h"

#include <fmt/format.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "base/check.h"
#include "engine/cuda/element_loops.h"
#include "engine/reduction/copy.h"

namespace espalier::engine::cuda {
namespace {

using SteadyClock = std::chrono::steady_clock;

class ThreadRun {
 public:
  ThreadRun(const DeviceProgram& program, std::span<const RankBuffers> buffers, const DeviceCall& call)
      : program_(program),
        buffers_(buffers),
        call_(call),
        counters_(program.counter_count),
        ends_at_(SteadyClock::now() + call.deadline) {}

  Result<void> run() {
    std::vector<std::thread> threads;
    threads.reserve(program_.blocks.size());
    for (std::uint32_t block = 0; block < program_.blocks.size(); ++block) {
      threads.emplace_back([this, block] { run_block(block); });
    }
    for (std::thread& thread : threads) thread.join();
    if (failure_) return tl::unexpected(*failure_);
    return {};
  }

 private:
  void run_block(std::uint32_t index) {
    const Block& block = program_.blocks[index];
    for (std::uint32_t i = 0; i < block.step_count; ++i) {
      const Step& step = program_.steps[block.first_step + i];
      for (std::uint32_t wait = 0; wait < step.wait_count; ++wait) {
        if (!await(index, program_.waits[step.first_wait + wait])) return;
      }
      carry_out(block.rank, step);
      // One block alone writes a counter, so that an addition need not be one operation.
      if (step.signal != no_counter) {
        std::atomic<std::uint32_t>& counter = counters_[step.signal];
        counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_release);
      }
    }
  }

  bool await(std::uint32_t block, const CounterWait& wait) {
    while (counters_[wait.counter].load(std::memory_order_acquire) < wait.count) {
      if (is_aborted_.load(std::memory_order_relaxed)) return false;
      if (SteadyClock::now() > ends_at_) {
        report(block, wait);
        return false;
      }
      std::this_thread::yield();
    }
    return true;
  }

  void report(std::uint32_t block, const CounterWait& wait) {
    const std::lock_guard lock(mutex_);
    if (!failure_) {
      failure_ = Error{
          ErrorCode::unavailable,
          fmt::format("rank {}, block {}: counter {} did not reach {} within {} ms",
                      program_.blocks[block].rank.value(), block, wait.counter, wait.count, call_.deadline.count()),
          {}};
    }
    is_aborted_.store(true, std::memory_order_relaxed);
  }

  [[nodiscard]] const std::byte* read_at(Rank rank, const Location& location) const {
    const RankBuffers& of = buffers_[rank.index()];
    const std::byte* base = location.place == Place::send ? of.send : written_base(of, location.place);
    return base + location.offset;
  }
  [[nodiscard]] static std::byte* written_base(const RankBuffers& of, Place place) {
    return place == Place::receive ? of.receive : of.scratch;
  }

  void carry_out(Rank rank, const Step& step) const {
    for (std::uint32_t i = 0; i < step.piece_count; ++i) {
      const Piece& piece = program_.pieces[step.first_piece + i];
      std::byte* target = written_base(buffers_[rank.index()], piece.target.place) + piece.target.offset;
      const std::byte* source = read_at(step.peer, piece.source);
      const auto bytes = static_cast<std::size_t>(piece.length);
      if (step.kind == StepKind::reduce) {
        combine_elements(call_.type, call_.operation, target, read_at(rank, piece.first), source,
                         bytes / element_bytes());
      } else if (source != target) {  // In place a rank's own part is where it has to be.
        reduction::copy_bytes(target, source, bytes);
      }
    }
    if (step.kind != StepKind::finish || !program_.reduces || call_.operation != ReduceOperation::avg) return;
    const auto result_bytes = static_cast<std::size_t>(program_.memories[rank.index()].receive);
    if (result_bytes == 0) return;
    divide_elements(call_.type, buffers_[rank.index()].receive, result_bytes / element_bytes(),
                    static_cast<std::uint32_t>(program_.memories.size()));
  }

  [[nodiscard]] std::size_t element_bytes() const { return static_cast<std::size_t>(program_.element_size); }

  const DeviceProgram& program_;
  std::span<const RankBuffers> buffers_;
  const DeviceCall& call_;
  std::vector<std::atomic<std::uint32_t>> counters_;
  std::atomic<bool> is_aborted_{false};
  SteadyClock::time_point ends_at_;
  std::mutex mutex_;
  std::optional<Error> failure_;  ///< Guarded by `mutex_`.
};

}  // namespace

Result<void> run_on_threads(const DeviceProgram& program, std::span<const RankBuffers> buffers,
                            const DeviceCall& call) {
  ESPALIER_CHECK(buffers.size() == program.memories.size(), "there are buffers for every rank");
  ESPALIER_CHECK(size_of(call.type) == program.element_size, "the program is of the type's size");
  return ThreadRun(program, buffers, call).run();
}

}  // namespace espalier::engine::cuda
