#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/device/device.h"
#include "engine/shm/shm_peer.h"
#include "engine/transport/call.h"

namespace espalier::engine {

/// An all_reduce of memory that others cannot reach, block by block. Of each block a rank shows its input to all, adds
/// up its own share of what all show, shows that sum in the same place, and takes the other shares from the others. So
/// it writes each byte of its input once for the others, and its share of the result, however many they are.
///
/// Blocks are numbered through all calls of a group, and block b lies in place b mod 4 of each rank's memory. A rank
/// shows block b + 2 only after it has taken all of block b. Who shows block b has taken all of b - 2, so all had added
/// up b - 2, and shown it, hence had taken all of b - 4, which lay where b goes: nobody overwrites what is read.
class BlockExchange {
 public:
  static constexpr std::uint64_t places = 4;

  struct Call {
    CallHeader header;
    std::size_t element_size = 1;
    std::int64_t block_bytes = 0;
    std::span<const std::unique_ptr<ShmPeer>> members;  ///< Null for this rank.
    SharedControl* own = nullptr;
    std::byte* own_blocks = nullptr;
    std::uint64_t first_block = 0;  ///< Blocks of earlier calls.
    const std::byte* send = nullptr;
    std::byte* receive = nullptr;
  };

  /// From here on blocks are shown, as far as there are places.
  void begin(const Call& call);
  /// From here on those of the others are read. Requires: all members have entered the call.
  Result<void> meet();
  /// Does what can be done now. False: nothing moved.
  bool advance(Device& device);
  [[nodiscard]] bool is_done() const { return taken_ == block_count_; }
  [[nodiscard]] bool is_device_at_work() const { return step_ != Step::none; }
  [[nodiscard]] std::uint64_t block_count() const { return block_count_; }
  /// Whom the next step waits for.
  [[nodiscard]] std::uint32_t awaited() const;

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
  [[nodiscard]] std::size_t bytes(std::size_t elements) const { return elements * call_.element_size; }
  [[nodiscard]] std::size_t next_member() const { return (self_ + 1 + shares_taken_) % call_.members.size(); }

  /// Gives the device the next step. False: it has to wait for another rank.
  bool begin_step(Device& device);
  bool begin_add(Device& device);
  bool begin_take(Device& device);
  void finish_step();

  Call call_;
  std::size_t self_ = 0;
  std::vector<std::byte*> blocks_;  ///< Of each member, mapped here.
  bool has_met_ = false;            ///< The others.
  std::vector<const void*> sources_;
  std::uint64_t block_count_ = 0;
  std::size_t block_elements_ = 0;
  std::uint64_t shown_ = 0;  ///< Blocks of this call.
  std::uint64_t added_ = 0;
  std::uint64_t taken_ = 0;
  std::size_t members_seen_ = 0;  ///< Who have shown the block that is to be added up.
  std::size_t shares_taken_ = 0;  ///< Of the block that is to be taken.
  Step step_ = Step::none;        ///< What the device has.
  std::uint64_t mark_ = 0;
};

}  // namespace espalier::engine
