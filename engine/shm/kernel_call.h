#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/device/device_queue.h"
#include "engine/device/rank_kernel.h"
#include "engine/shm/shm_group.h"
#include "engine/transport/whole_call.h"

namespace espalier::engine {

/// A call that the devices of all members of this machine carry out in each other's memory: once all have entered, and
/// it is known where their buffers are, each rank starts its kernel and waits for its end. Streams to and from other
/// machines are left to the executor, which asks the kernel what may begin and tells it what is done. Where a buffer
/// turns out not to be memory of a device, the program runs instead.
class KernelCall final : public WholeCall {
 public:
  /// `captured_by`: null, or the queue that captures the call, which is done when it has been given to it.
  /// `left_streams`: by stream of the rank's program, whether the executor serves it. Nothing: all members are here.
  KernelCall(ShmGroup& group, std::unique_ptr<RankKernel> kernel, DeviceQueue& queue,
             std::optional<std::vector<bool>> left_streams, DeviceQueue* captured_by);
  ~KernelCall() override;

  Result<void> begin(const StreamCall& call, Recorder* recorder) override;
  Progress advance() override;
  void close() override;
  [[nodiscard]] bool records_chunks() const override { return true; }
  [[nodiscard]] bool leaves_streams() const override { return left_streams_.has_value(); }
  [[nodiscard]] bool leaves_stream(std::uint32_t stream) const override {
    return leaves_streams() && (*left_streams_)[stream];
  }
  [[nodiscard]] std::uint32_t permitted(std::uint32_t stream) const override;
  void note_done(std::uint32_t stream, std::uint32_t ops) override { kernel_->note_done(stream, ops); }
  [[nodiscard]] bool is_device_at_work() const override { return runs_ && leaves_streams(); }
  void abandon() override;
  [[nodiscard]] Result<void> check_captured() const override { return kernel_->check_captured(); }
  [[nodiscard]] std::int64_t bytes_moved() const override { return bytes_moved_; }
  [[nodiscard]] Stall find_stall() const override;

 private:
  [[nodiscard]] bool all_entered();
  /// Whether every member's buffers are memory of its device that others open.
  [[nodiscard]] bool are_all_on_devices() const;
  /// Shows the others this rank's memory by which kernels tell each other how far they are.
  Result<void> show_memory();
  /// Reaches that of the others. False: not all have shown it. Requires: all have entered.
  Result<bool> attach();
  /// False: not yet.
  Result<bool> launch();

  /// Ends the call where the kernel's queue failed.
  void check_queue();

  ShmGroup& group_;
  std::unique_ptr<RankKernel> kernel_;
  DeviceQueue& queue_;
  std::optional<std::vector<bool>> left_streams_;
  DeviceQueue* captured_by_;
  /// Of the kernel: the group's where the executor's is busy meanwhile. Null before the first launch.
  DeviceQueue* kernel_queue_ = nullptr;
  std::vector<RankKernel::Memories> memories_;  ///< By member.
  std::byte* shared_ = nullptr;
  SharedBufferId shared_id_;
  bool is_attached_ = false;

  const StreamCall* call_ = nullptr;
  Recorder* recorder_ = nullptr;
  std::uint64_t turn_ = 0;
  std::size_t members_entered_ = 0;
  bool runs_ = false;  ///< The kernel is with the device.
  std::uint64_t mark_ = 0;
  std::int64_t bytes_moved_ = 0;
};

}  // namespace espalier::engine
