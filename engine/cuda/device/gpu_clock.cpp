#include "engine/cuda/device/gpu_clock.h"

#include <array>
#include <atomic>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernels/kernel_call.h"
#include "engine/executor/clock.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::uint32_t rounds = 8;
constexpr std::uint64_t answer_deadline_ns = 1'000'000'000;

/// What host and kernel share, in pinned memory: one block whose every step waits for the host's counter and answers.
struct Exchange {
  KernelBlock block;
  std::array<KernelStep, rounds + 1> steps;
  std::array<KernelWait, rounds> waits;
  std::array<KernelStamp, rounds + 1> stamps;
  KernelReport report;
  KernelProgress progress;
  KernelMemory memory;
  std::uint32_t abort_flag = 0;
  alignas(128) std::uint32_t asked = 0;
  alignas(128) std::uint32_t answered = 0;
};

KernelCall call_of(Exchange& exchange) {
  exchange.block = {0, 0, rounds + 1, 0};
  for (std::uint32_t i = 0; i <= rounds; ++i) {
    KernelStep& step = exchange.steps[i];
    step.signal = &exchange.answered;
    if (i == 0) continue;  // The first says that the kernel runs.
    step.first_wait = i - 1;
    step.wait_count = 1;
    exchange.waits[i - 1] = {&exchange.asked, i, 0};
  }
  KernelCall call;
  call.blocks = &exchange.block;
  call.steps = exchange.steps.data();
  call.waits = exchange.waits.data();
  call.stamps = exchange.stamps.data();
  call.memories = &exchange.memory;
  call.reports = &exchange.report;
  call.progress = &exchange.progress;
  call.abort_flag = &exchange.abort_flag;
  call.deadline_ns = answer_deadline_ns;
  call.rank_count = 1;
  return call;
}

/// Waits until the kernel answered so often, or its stream ended.
DriverStatus await_answer(const CudaDevice& gpu, DriverHandle stream, Exchange& exchange, std::uint32_t answers) {
  while (std::atomic_ref(exchange.answered).load(std::memory_order_acquire) < answers) {
    const DriverStatus status = gpu.driver().api().query_stream(stream);
    if (status != status_not_ready) return status;
  }
  return status_success;
}

Result<DeviceClock> exchange_times(CudaDevice& gpu, DriverHandle kernel, DriverHandle stream, Exchange& exchange) {
  const Driver& driver = gpu.driver();
  KernelCall call = call_of(exchange);
  std::array<void*, 1> parameters = {&call};
  auto done =
      driver.check(driver.api().launch(kernel, 1, 1, 1, threads_per_block, 1, 1, 0, stream, parameters.data(), nullptr),
                   "compare clocks");
  if (done) done = driver.check(await_answer(gpu, stream, exchange, 1), "compare clocks");
  std::array<std::int64_t, rounds + 1> before{};
  std::array<std::int64_t, rounds + 1> after{};
  for (std::uint32_t round = 1; done && round <= rounds; ++round) {
    before[round] = now_ns();
    std::atomic_ref(exchange.asked).store(round, std::memory_order_release);
    done = driver.check(await_answer(gpu, stream, exchange, round + 1), "compare clocks");
    after[round] = now_ns();
  }
  if (done) done = gpu.await(stream, DeviceQueue::patience, "compare clocks");
  if (!done) return tl::unexpected(done.error());
  DeviceClock clock{0, INT64_MAX};
  for (std::uint32_t round = 1; round <= rounds; ++round) {
    const std::int64_t error = (after[round] - before[round] + 1) / 2;
    if (error >= clock.error_ns) continue;
    clock = {static_cast<std::int64_t>(exchange.stamps[round].begin) - (before[round] + error), error};
  }
  return clock;
}

}  // namespace

Result<DeviceClock> compare_clocks(CudaDevice& gpu, ElementType type, ReduceOperation operation) {
  const auto kernel = gpu.find_kernel(KernelKind::run, type, operation);
  if (!kernel) return tl::unexpected(kernel.error());
  const auto memory = gpu.allocate(sizeof(Exchange), MemorySpace::pinned);
  if (!memory) return tl::unexpected(memory.error());
  Exchange& exchange = *new (*memory) Exchange();
  gpu.make_current();
  DriverHandle stream = nullptr;
  auto made = gpu.driver().check(gpu.driver().api().make_stream(&stream, 1), "make a stream");
  Result<DeviceClock> clock = made ? exchange_times(gpu, *kernel, stream, exchange) : tl::unexpected(made.error());
  if (stream != nullptr) {
    std::atomic_ref(exchange.abort_flag).store(1);
    static_cast<void>(gpu.await(stream, DeviceQueue::patience, "compare clocks"));
    if (!gpu.is_lost()) gpu.driver().api().destroy_stream(stream);
  }
  gpu.release(*memory, sizeof(Exchange));
  return clock;
}

}  // namespace espalier::engine::cuda
