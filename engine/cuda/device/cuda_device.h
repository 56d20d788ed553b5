#pragma once

// Tested by: tests/unit/engine/cuda/device/cuda_device_test.cpp

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>

#include "engine/cuda/device_program.h"
#include "engine/cuda/driver/driver.h"
#include "engine/cuda/kernels/kernel_call.h"
#include "engine/cuda/kernels/kernel_names.h"
#include "engine/device/device.h"

namespace espalier::engine::cuda {

/// A GPU with the engine's kernels: its primary context, which all threads share. Queues are streams. Kernels reach
/// memory of `allocate` and of GPUs with peer access; copies reach any. Used by any thread.
class CudaDevice final : public Device {
 public:
  /// Requires: `image`, the compiled kernels, outlives the device.
  /// Errors: invalid_input where there is no such GPU; unsupported without kernels; those of the driver.
  static Result<std::unique_ptr<CudaDevice>> open(std::shared_ptr<const Driver> driver, int ordinal,
                                                  std::span<const unsigned char> image);
  ~CudaDevice() override;
  CudaDevice(const CudaDevice&) = delete;
  CudaDevice& operator=(const CudaDevice&) = delete;

  [[nodiscard]] std::string_view name() const override { return "cuda"; }
  Result<std::unique_ptr<DeviceQueue>> make_queue() override;
  Result<std::unique_ptr<DeviceQueue>> adopt_stream(void* stream) override;
  std::unique_ptr<BesideCapture> work_beside_capture() override;
  /// Memory for the processor is pinned, so that kernels reach it.
  Result<std::byte*> allocate(std::int64_t bytes, MemorySpace space) override;
  void release(std::byte* data, std::int64_t bytes) override;
  /// Errors: unsupported where GPU or driver has no dma-bufs; those of the driver.
  Result<DmaBuf> export_memory(const std::byte* data, std::int64_t bytes) override;

  [[nodiscard]] bool shares_memory() const override { return true; }
  /// Errors: those of the driver.
  Result<std::string> share_memory(const std::byte* data, std::int64_t bytes) override;
  /// Errors: unsupported where the GPUs do not reach each other; those of the driver.
  Result<std::byte*> open_memory(std::string_view shared) override;
  void close_memory(std::byte* data) override;
  /// None without cooperative launches, and after `leave_calls_to_host`.
  [[nodiscard]] std::optional<KernelSite> kernel_site() override;
  Result<std::unique_ptr<RankKernel>> make_rank_kernel(const RankKernel::Shape& shape) override;
  /// Its global timer.
  Result<DeviceClock> compare_clock() override;
  Result<void> pin(std::byte* data, std::int64_t bytes) override;
  void unpin(std::byte* data) override;
  [[nodiscard]] bool reaches_unpinned() const override { return reaches_unpinned_; }

  /// Its kernels carry out no whole calls: the host gives it copies and reductions. Before the device joins a job.
  void leave_calls_to_host() { carries_out_calls_ = false; }

  /// Its kernels make large copies in bulk, through shared memory (kernels/bulk_copy.h). Before programs are made
  /// ready. Errors: unsupported where its kernels are compiled for GPUs without them; those of the driver.
  Result<void> use_bulk_copies();
  [[nodiscard]] bool copies_in_bulk() const { return copies_in_bulk_; }
  /// Of a block of the interpreter.
  [[nodiscard]] unsigned shared_bytes() const { return copies_in_bulk_ ? bulk_shared_bytes : 0; }

  [[nodiscard]] const Driver& driver() const { return *driver_; }
  [[nodiscard]] int ordinal() const { return ordinal_; }
  [[nodiscard]] const std::string& model() const { return model_; }
  [[nodiscard]] std::uint32_t multiprocessors() const { return multiprocessors_; }
  [[nodiscard]] DriverHandle context() const { return context_; }
  [[nodiscard]] Result<bool> has_cooperative_launch() const;
  /// Whether kernels of this GPU can be let reach the other's memory.
  [[nodiscard]] Result<bool> can_reach(const CudaDevice& peer) const;

  /// Waits until a stream has done what it was given, at most so long. Errors: unavailable where it has not; those of
  /// the driver. Where it is not known to have done it, the device is lost afterwards.
  Result<void> await(DriverHandle stream, std::chrono::milliseconds longest, std::string_view action);
  /// Whether some work does not end, as far as is known: memory, streams and kernels that it may use stay until the
  /// process ends. The driver would wait for it, too, before it took them back.
  [[nodiscard]] bool is_lost() const { return is_lost_.load(std::memory_order_acquire); }
  void give_up() { is_lost_.store(true, std::memory_order_release); }

  /// Makes the GPU the one that this thread's calls of the driver are for.
  void make_current() const { driver_->api().set_context(context_); }
  Result<DriverHandle> find_kernel(KernelKind kind, ElementType type, ReduceOperation operation);
  /// How many thread blocks of the interpreter it runs at a time. Errors: unsupported without cooperative launches.
  Result<ResidencyLimit> residency(ElementType type, ReduceOperation operation);
  /// Lets this GPU's kernels reach the other's memory. Errors: unsupported where the two are not connected so.
  Result<void> reach(const CudaDevice& peer);

 private:
  CudaDevice(std::shared_ptr<const Driver> driver, int ordinal) : driver_(std::move(driver)), ordinal_(ordinal) {}
  Result<void> set_up(std::span<const unsigned char> image);
  [[nodiscard]] Result<bool> can_reach(int device) const;
  Result<void> reach(int device, DriverHandle context);
  [[nodiscard]] Result<int> attribute(int which) const;

  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  int device_ = 0;
  std::string model_;
  std::uint32_t multiprocessors_ = 0;
  bool reaches_unpinned_ = false;
  bool carries_out_calls_ = true;
  bool copies_in_bulk_ = false;
  std::atomic<bool> is_lost_ = false;
  DriverHandle context_ = nullptr;
  DriverHandle module_ = nullptr;
  std::mutex mutex_;
  std::map<std::string, DriverHandle> kernels_;      ///< By name. Guarded by `mutex_`, as is what follows.
  std::map<std::byte*, MemorySpace> memories_;       ///< Of `allocate`.
  std::multimap<std::byte*, DeviceAddress> opened_;  ///< Of other processes: begins of what the driver opened.
};

}  // namespace espalier::engine::cuda
