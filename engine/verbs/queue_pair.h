#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
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

/// A reliable connected queue pair with a ring of registered slots: the sending end fills them, and has each written to
/// the slot of the same number at the receiving end, which answers with credits. At most `slot_count` pieces of work
/// are under way each way.
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
  [[nodiscard]] bool has_room() const { return posted_ - completed_ < slot_count; }
  /// Whether all that was posted is acknowledged.
  [[nodiscard]] bool is_idle() const { return posted_ == completed_; }
  /// Writes the first bytes of a slot to the other end's, with `note`. Unsignalled work counts as completed when later
  /// work is. Requires: room.
  void write_slot(std::uint64_t number, std::size_t bytes, std::uint32_t note, bool is_signalled);
  /// Sends only a note. Requires: room.
  void send(std::uint32_t note);

  /// Notes in the order in which they came; with writes, after the bytes.
  [[nodiscard]] std::uint64_t received() const { return received_; }
  [[nodiscard]] std::uint32_t last_note() const { return last_note_; }
  /// What became of the connection, if it broke: an ending of "the connection to rank 1 ...".
  [[nodiscard]] const std::optional<std::string>& failure() const { return failure_; }

  void handle(const ibv_wc& completion) override;

 private:
  QueuePair(VerbsDevice& device, const VerbsOptions& options) : device_(device), options_(options) {}
  Result<void> set_up();
  void post(ibv_send_wr& work);
  void post_receive();

  VerbsDevice& device_;
  const VerbsOptions& options_;
  std::unique_ptr<std::byte[]> ring_;
  VerbsObject<ibv_mr, ibv_dereg_mr> registration_;
  VerbsObject<ibv_qp, ibv_destroy_qp> pair_;
  std::uint32_t first_packet_ = 0;
  std::uint32_t most_inline_ = 0;
  std::uint64_t remote_ring_ = 0;
  std::uint32_t remote_key_ = 0;
  bool is_reserved_ = false;
  std::uint64_t posted_ = 0;
  std::uint64_t completed_ = 0;
  std::uint64_t received_ = 0;
  std::uint32_t last_note_ = 0;
  std::optional<std::string> failure_;
};

}  // namespace espalier::engine
