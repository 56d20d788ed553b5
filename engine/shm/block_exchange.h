#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/device/device_queue.h"
#include "engine/shm/shm_group.h"
#include "engine/transport/whole_call.h"

namespace espalier::engine {

/// An all_reduce of memory that others cannot reach, block by block. Of each block a rank shows its input to all, adds
/// up its own share of what all show, shows that sum in the same place, and takes the other shares from the others. So
/// it writes each byte of its input once for the others, and its share of the result, however many they are. Where all
/// members turn out to have shared memory, the program runs instead.
///
/// Blocks are numbered through all calls of a group, and block b lies in place b mod 4 of each rank's memory. A rank
/// shows block b + 2 only after it has taken all of block b. Who shows block b has taken all of b - 2, so all had added
/// up b - 2, and shown it, hence had taken all of b - 4, which lay where b goes: nobody overwrites what is read.
class BlockExchange final : public WholeCall {
 public:
  static constexpr std::uint64_t places = 4;

  BlockExchange(ShmGroup& group, const RankProgram& program, DeviceQueue& queue);

  Result<void> begin(const StreamCall& call, Recorder* recorder) override;
  Progress advance() override;
  void close() override;
  [[nodiscard]] std::int64_t bytes_moved() const override { return bytes_moved_; }
  [[nodiscard]] Stall find_stall() const override;

 private:
  enum class Step : std::uint8_t { none, show, add, take };
  /// Elements, in the message or in a block.
  struct Range {
    std::size_t begin = 0;
    std::size_t count = 0;
  };

  [[nodiscard]] Range block(std::uint64_t index) const;
  /// A member's share of a block.
  [[nodiscard]] Range share(std::uint64_t index, std::size_t member) const;
  /// An element of a block in a member's shared memory.
  [[nodiscard]] std::byte* shown_at(std::size_t member, std::uint64_t index, std::size_t element) const;
  [[nodiscard]] std::size_t bytes(std::size_t elements) const { return elements * element_size_; }
  /// An element of a caller's buffer.
  [[nodiscard]] std::byte* at(Place place, std::size_t element) const {
    return call_->buffers->at({place, static_cast<std::int64_t>(bytes(element))});
  }
  [[nodiscard]] std::size_t next_member() const { return (self_ + 1 + shares_taken_) % blocks_.size(); }
  [[nodiscard]] bool is_done() const { return taken_ == block_count_; }

  /// Whether all members have entered; from then on it is known who shares memory.
  [[nodiscard]] bool all_entered();
  /// Maps the blocks of the others. Requires: all members have entered.
  Result<void> attach();
  /// Does the steps that can be done now. False: nothing moved.
  bool advance_steps();
  /// Gives the device the next step. False: it has to wait for another rank.
  bool begin_step();
  bool begin_add();
  bool begin_take();
  void finish_step();

  ShmGroup& group_;
  DeviceQueue& queue_;
  std::size_t element_size_;
  std::int64_t block_bytes_;
  std::size_t self_ = 0;
  std::vector<std::byte*> blocks_;  ///< Of each member, mapped here.
  std::vector<const void*> sources_;

  const StreamCall* call_ = nullptr;
  std::uint64_t first_block_ = 0;  ///< Blocks of earlier calls.
  bool is_private_ = false;        ///< This rank's memory, so that the exchange takes place whatever the others have.
  std::size_t members_entered_ = 0;
  bool is_attached_ = false;  ///< To the blocks of the others.
  std::uint64_t block_count_ = 0;
  std::size_t block_elements_ = 0;
  std::uint64_t shown_ = 0;  ///< Blocks of this call.
  std::uint64_t added_ = 0;
  std::uint64_t taken_ = 0;
  std::size_t members_seen_ = 0;  ///< Who have shown the block that is to be added up.
  std::size_t shares_taken_ = 0;  ///< Of the block that is to be taken.
  Step step_ = Step::none;        ///< What the device has.
  std::uint64_t mark_ = 0;
  std::int64_t bytes_moved_ = 0;
};

}  // namespace espalier::engine
