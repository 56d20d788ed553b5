#pragma once

// Tested by: tests/unit/engine/verbs/queue_pair_test.cpp

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/verbs/verbs_device.h"

namespace espalier::engine {

constexpr std::uint32_t slot_count = 8;
constexpr std::size_t slot_payload = std::size_t{128} << 10U;
constexpr std::size_t slot_header = 128;  ///< Before the payload, which begins at a cache line.
constexpr std::size_t slot_bytes = slot_header + slot_payload;

/// Where a receiving end's memories are in a call, for its sender to write there.
struct CallMemory {
  struct Place {
    std::uint64_t address = 0;
    std::uint32_t key = 0;
    std::uint32_t is_open = 0;
  };
  std::uint64_t sequence = 0;  ///< The communicator's call; 0: none yet.
  std::array<Place, 3> places;
};

/// A reliable connected queue pair with a ring of registered slots: the sending end fills them, and has each written to
/// the slot of the same number at the receiving end, which answers with credits. At most `slot_count` pieces of frames
/// are under way. The receiving end also tells where its memory is in a call, and how much of it may be written.
class QueuePair final : public CompletionHandler {
 public:
  /// Errors: too_large or unavailable, for want of what the device gives.
  static Result<std::unique_ptr<QueuePair>> create(VerbsDevice& device, const VerbsOptions& options);
  ~QueuePair() override;

  static constexpr std::size_t address_size = 48;
  /// What the other end needs to connect.
  [[nodiscard]] std::string address() const;
  /// Errors: invalid_input for what is no address; unavailable when the device refuses it.
  Result<void> connect(std::string_view address);

  [[nodiscard]] std::byte* slot(std::uint64_t number) const { return ring_.get() + number % slot_count * slot_bytes; }
  /// For two pieces of work.
  [[nodiscard]] bool has_room() const { return posted_ - completed_ + 2 <= max_work; }
  /// Whether all that was posted is acknowledged.
  [[nodiscard]] bool is_idle() const { return posted_ == completed_; }
  /// Of the pieces of work, in the order in which they were posted: how many there are, and are acknowledged.
  [[nodiscard]] std::uint64_t posted() const { return posted_; }
  [[nodiscard]] std::uint64_t completed() const { return completed_; }

  /// Writes the first bytes of a slot to the other end's, and `more` behind them. Unsignalled work counts as completed
  /// when later work is; memory that is not the slot's must stay until then. Requires: room.
  void write_slot(std::uint64_t number, std::size_t bytes, const std::optional<ibv_sge>& more, bool is_signalled);
  /// Writes to the other end's registered memory; unsignalled, so a slot must follow. Requires: room.
  void write(ibv_sge from, std::uint64_t to, std::uint32_t key);
  /// Returns slots, so many since the beginning. Requires: room.
  void send_credits(std::uint64_t slots) { send(Note::slots, slots); }
  /// Allows the call's first ops to be written to where they belong. Requires: room, and `tell` before.
  void allow(std::uint32_t ops) { send(Note::allowed, ops); }
  /// Requires: room, and that the call two before has ended at both ends.
  void tell(const CallMemory& memory);

  /// Slots that the other end wrote.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  /// Of so many that were written: how many slots the other end has not returned.
  [[nodiscard]] std::uint32_t outstanding(std::uint64_t written) const {
    return (static_cast<std::uint32_t>(written) - returned_) & note_mask;
  }
  /// What the other end told last, and how many ops of that call it has allowed since.
  [[nodiscard]] const CallMemory& memory() const { return memory_; }
  [[nodiscard]] std::uint32_t allowed() const { return allowed_; }
  /// What became of the connection, if it broke: an ending of "the connection to rank 1 ...".
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

  void handle(const ibv_wc& completion) override;
  void handle(ibv_event_type failure) override;

 private:
  /// What a note is about: its two highest bits.
  enum class Note : std::uint32_t { slots, allowed, memory };
  static constexpr std::uint32_t note_mask = (1U << 30U) - 1;
  static constexpr std::uint32_t max_work = 3 * slot_count;

  QueuePair(VerbsDevice& device, const VerbsOptions& options) : device_(device), options_(options) {}
  Result<void> set_up();
  [[nodiscard]] std::size_t memory_offset(std::uint64_t sequence) const {
    return slot_count * slot_bytes + sequence % 2 * sizeof(CallMemory);
  }
  static std::uint32_t encode(Note kind, std::uint64_t value);
  void send(Note kind, std::uint64_t value);
  void hear(std::uint32_t note);
  void post(ibv_send_wr& work);
  void post_receive();

  VerbsDevice& device_;
  const VerbsOptions& options_;
  std::unique_ptr<std::byte[]> ring_;
  VerbsObject<ibv_mr, ibv_dereg_mr> registration_;
  VerbsObject<ibv_qp, ibv_destroy_qp> pair_;
  std::uint32_t first_packet_ = 0;
  std::uint32_t max_inline_ = 0;
  std::uint64_t remote_ring_ = 0;
  std::uint32_t remote_key_ = 0;
  bool is_reserved_ = false;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t received_ = 0;
  std::uint32_t returned_ = 0;
  std::uint32_t allowed_ = 0;
  CallMemory memory_;
  std::optional<std::string> failure_;
};

}  // namespace espalier::engine
