#pragma once

// Tested by: tests/unit/engine/communicator/direct_call_test.cpp

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "engine/shm/control.h"
#include "engine/shm/shared_domain.h"
#include "engine/transport/stream_end.h"

namespace espalier::engine {

/// Another member of a communicator on this machine, as this rank sees it.
class ShmPeer {
 public:
  /// `rank` numbers a process in the domain, `member` its place in the communicator.
  struct Place {
    std::uint32_t rank = 0;
    std::uint32_t member = 0;
  };

  /// `members`: how many there are on this machine; `is_oversubscribed`: more ranks than cores for them.
  ShmPeer(SharedDomain& domain, Place self, Place peer, std::uint32_t members, bool is_oversubscribed,
          SharedControl& own, SharedControl& theirs, std::vector<ShmPeer*>& marked)
      : domain_(&domain),
        members_(members),
        is_oversubscribed_(is_oversubscribed),
        self_(self),
        peer_(peer),
        own_(&own),
        theirs_(&theirs),
        marked_(&marked),
        doorbell_(&domain.doorbell_of(peer.rank)),
        opens_theirs_(own.streams(peer.member).opens_memory != 0),
        opens_ours_(theirs.streams(self.member).opens_memory != 0),
        reads_theirs_(own.streams(peer.member).reads_memory != 0),
        reads_ours_(theirs.streams(self.member).reads_memory != 0) {}

  /// Whether the peer has entered the call; from then on `call` is what it called. Sets error when the ranks
  /// disagree, or the peer has left.
  bool has_entered(const StreamCall& call) {
    const std::uint64_t sequence = call.header->sequence;
    if (agreed_ == sequence) return true;
    if (this->call(sequence).sequence.load(std::memory_order_acquire) != sequence && !has_left()) return false;
    return agrees(call);
  }
  [[nodiscard]] bool has_left() const { return theirs_->has_left.load(std::memory_order_acquire) != 0; }
  [[nodiscard]] const SharedCall& call(std::uint64_t sequence) const {
    return theirs_->calls[sequence % SharedControl::call_window];
  }
  [[nodiscard]] const SharedCall& own_call(std::uint64_t sequence) const {
    return own_->calls[sequence % SharedControl::call_window];
  }
  /// The peer's memories as far as they are shared, mapped here. Requires: has_entered.
  Result<MappedBuffers> map_memories(std::uint64_t sequence) {
    const SharedCall& theirs = call(sequence);
    const bool is_known = mapped_at_ == domain_->unmap_epoch() && mapped_places_ == theirs.memories &&
                          mapped_on_device_ == theirs.on_device;
    return is_known ? Result<MappedBuffers>(mapped_) : find_memories(sequence);
  }

  /// The same of a call with counts per peer, each memory from the block on that is for this rank. Errors: besides,
  /// unavailable for a block that is not within its memory.
  Result<MappedBuffers> map_for_blocks(std::uint64_t sequence);

  /// Whether what the peer called with lies in memory that is mapped here. Requires: has_entered.
  [[nodiscard]] bool shares_buffers(std::uint64_t sequence) const {
    return espalier::engine::shares_all(call(sequence));
  }
  /// The same of this rank.
  [[nodiscard]] bool is_shared_here(std::uint64_t sequence) const {
    return espalier::engine::shares_all(own_call(sequence));
  }
  [[nodiscard]] std::uint64_t blocks_shown() const { return theirs_->blocks_shown.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t blocks_added() const { return theirs_->blocks_added.load(std::memory_order_acquire); }
  /// The peer's places of a BlockExchange, mapped here, once it has entered a call that may be one.
  Result<std::byte*> shown_blocks();
  /// The memory that the peer shows for the kernels of a call, once it does.
  [[nodiscard]] std::optional<SharedBufferId> kernel_memory(std::uint64_t sequence) const {
    if (theirs_->kernel_call.load(std::memory_order_acquire) < sequence) return std::nullopt;
    return theirs_->kernel_memory;
  }
  /// The ring of inputs that the peer shows, mapped here, once it has entered a call that is an exchange.
  Result<const std::byte*> shown_inputs();
  /// Whether it is mapped already.
  [[nodiscard]] bool has_shown_inputs() const { return shown_inputs_ != nullptr; }

  /// This rank's progress on a stream as published to the peer, and the peer's.
  [[nodiscard]] SharedStream& own_stream(std::uint32_t number) { return own_->stream(peer_.member, number); }
  [[nodiscard]] const SharedStream& their_stream(std::uint32_t number) { return theirs_->stream(self_.member, number); }
  /// Whether this rank's device opens memory of the peer's, and the peer's that of this rank's.
  [[nodiscard]] bool opens_theirs() const { return opens_theirs_; }
  [[nodiscard]] bool opens_ours() const { return opens_ours_; }
  /// Whether this rank reads private memory of the peer's, and the peer that of this rank.
  [[nodiscard]] bool reads_theirs() const { return reads_theirs_; }
  [[nodiscard]] bool reads_ours() const { return reads_ours_; }
  /// Of a call with counts per peer: copies from the peer's block for this rank, which is in private memory. Errors:
  /// those of SharedDomain::read.
  Result<void> read_block(std::uint64_t sequence, std::int64_t offset, std::byte* to, std::int64_t bytes) const {
    const auto base = call(sequence).memories[static_cast<std::size_t>(engine::Place::send)].offset;
    const std::int64_t address = base + theirs_blocks(sequence).sent.offset + offset;
    return domain_->read(peer_.rank, static_cast<std::uint64_t>(address), to, bytes);
  }
  [[nodiscard]] SharedDomain& domain() { return *domain_; }
  /// Streams between all members of this machine.
  [[nodiscard]] std::int64_t stream_count() const {
    return std::int64_t{members_} * (members_ - 1) * shm_streams_per_pair;
  }
  [[nodiscard]] bool is_oversubscribed() const { return is_oversubscribed_; }
  [[nodiscard]] Place self() const { return self_; }
  [[nodiscard]] Place place() const { return peer_; }

  /// Notes in the group's list that the peer may be asleep for something that changed; `ring` wakes it.
  void mark() {
    if (is_marked_) return;
    is_marked_ = true;
    marked_->push_back(this);
  }
  void ring() {
    is_marked_ = false;
    doorbell_->ring();
  }

 private:
  /// has_entered, where the peer has entered or has left.
  bool agrees(const StreamCall& call);
  /// Of a call with counts per peer: whether each expects what the other sends. Sets error when not.
  bool agree_on_blocks(const StreamCall& call);
  [[nodiscard]] const SharedBlocks& theirs_blocks(std::uint64_t sequence) const {
    return theirs_->blocks(self_.member, sequence);
  }
  Result<MappedBuffers> find_memories(std::uint64_t sequence);
  Result<std::byte*> keep_mapped(SharedBufferId id, std::shared_ptr<const SharedMemory>& kept);

  SharedDomain* domain_;
  std::uint32_t members_;
  bool is_oversubscribed_;
  Place self_;
  Place peer_;
  SharedControl* own_;
  SharedControl* theirs_;
  std::vector<ShmPeer*>* marked_;  ///< Of the group, who rings them all.
  Doorbell* doorbell_;
  bool opens_theirs_;
  bool opens_ours_;
  bool reads_theirs_;
  bool reads_ours_;
  bool is_marked_ = false;
  std::uint64_t agreed_ = UINT64_MAX;  ///< The last call that the peer was seen to have entered like this rank.

  // What find_memories found last; good while the places and the domain's mappings stay.
  std::array<SharedPlace, 3> mapped_places_;
  std::uint32_t mapped_on_device_ = 0;
  std::optional<std::uint64_t> mapped_at_;  ///< The domain's unmap_epoch then.
  MappedBuffers mapped_;
  std::array<std::int64_t, 3> mapped_rooms_{};        ///< Bytes of each from its base on.
  std::shared_ptr<const SharedMemory> shown_inputs_;  ///< Once they are known.
  std::shared_ptr<const SharedMemory> shown_blocks_;
};

/// The ends of a stream between this rank and a peer that outlives them.
std::unique_ptr<Sender> make_shm_sender(ShmPeer& peer, std::uint32_t number);
std::unique_ptr<Receiver> make_shm_receiver(ShmPeer& peer, std::uint32_t number);

}  // namespace espalier::engine
