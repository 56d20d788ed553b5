#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/device/device_queue.h"
#include "engine/device/rank_kernel.h"
#include "engine/shm/shm_group.h"
#include "engine/transport/whole_call.h"

namespace espalier::engine {

/// A call that the devices of all members carry out in each other's memory: once all have entered, and it is known
/// where their buffers are, each rank starts its kernel and waits for its end. Where a buffer turns out not to be
/// memory of a device, the program runs instead.
class KernelCall final : public WholeCall {
 public:
  KernelCall(ShmGroup& group, std::unique_ptr<RankKernel> kernel, DeviceQueue& queue);
  ~KernelCall() override;

  Result<void> begin(const StreamCall& call, Recorder* recorder) override;
  Progress advance() override;
  void close() override;
  [[nodiscard]] bool records_chunks() const override { return true; }
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

  ShmGroup& group_;
  std::unique_ptr<RankKernel> kernel_;
  DeviceQueue& queue_;
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
