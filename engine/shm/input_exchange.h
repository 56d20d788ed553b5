#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/device_queue.h"
#include "engine/shm/shm_group.h"
#include "engine/transport/whole_call.h"

namespace espalier::engine {

/// A small all_reduce in one step: every member shows its input with its call, and each adds up all of them itself, in
/// the order of the members. One word from rank to rank is the least that a sum of all can do with. An all_to_all
/// likewise: each takes its block of every input.
class InputExchange final : public WholeCall {
 public:
  /// `of_private`: of private memory alone; where a member's is shared, the program runs instead.
  InputExchange(ShmGroup& group, const RankProgram& program, DeviceQueue& queue, bool of_private);

  Result<void> begin(const StreamCall& call, Recorder* recorder) override;
  Progress advance() override;
  void close() override { group_.note_exchanged(call_->header->sequence); }
  [[nodiscard]] std::int64_t bytes_moved() const override { return bytes_moved_; }
  [[nodiscard]] Stall find_stall() const override;

 private:
  enum class Step : std::uint8_t { show, collect, add, declined };

  [[nodiscard]] bool fits_in_call() const { return bytes_ <= max_inline_bytes; }
  /// Where this rank's input is shown. Errors: unavailable.
  Result<std::byte*> find_place();
  /// Shows the call with its input.
  void publish();
  /// Fetches an input along with the word that says that it is there: one wait for the other core, not two.
  void fetch_early(ShmPeer& peer);
  /// Looks for the inputs of the members that are missing. False: some are.
  bool collect();
  /// Gives the device what is to be done with the inputs of all.
  void take_inputs();

  ShmGroup& group_;
  DeviceQueue& queue_;
  std::int64_t bytes_;
  bool of_private_;
  const StreamCall* call_ = nullptr;
  Step step_ = Step::show;
  std::uint64_t mark_ = 0;            ///< Of what the device has.
  std::int64_t offset_ = 0;           ///< Of the input in every member's ring, where it does not fit in the call.
  const std::byte* shown_ = nullptr;  ///< This rank's input, as it is shown.
  std::vector<const void*> inputs_;   ///< Of the members whose inputs are there, in their order.
  std::int64_t bytes_moved_ = 0;
};

}  // namespace espalier::engine
