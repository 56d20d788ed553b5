#include "engine/shm/shm_peer.h"

#include <fmt/format.h>

namespace espalier::engine {

bool ShmPeer::agrees(const StreamCall& call) {
  const std::uint64_t sequence = call.header->sequence;
  const SharedCall& theirs = this->call(sequence);
  if (theirs.sequence.load(std::memory_order_acquire) != sequence) {
    // The flag is written last: who has left and not entered before never will.
    if (has_left() && theirs.sequence.load(std::memory_order_acquire) != sequence) {
      call.error->set_broken({ErrorCode::unavailable,
                              fmt::format("rank {} has left the group and makes no more calls", peer_.rank),
                              "make the same calls on every rank before any of them leaves"});
    }
    return false;
  }
  if (!(theirs.header == *call.header)) {
    call.error->set({ErrorCode::invalid_input, describe_mismatch(self_.rank, *call.header, peer_.rank, theirs.header),
                     "call the same collectives with the same arguments in the same order on every rank"});
    return false;
  }
  agreed_ = sequence;
  return true;
}

Result<MappedBuffers> ShmPeer::find_memories(std::uint64_t sequence) {
  const SharedCall& theirs = call(sequence);
  const std::uint64_t unmap_epoch = domain_->unmap_epoch();
  mapped_at_.reset();
  mapped_ = {};
  for (std::size_t i = 0; i < mapped_.base.size(); ++i) {
    const SharedPlace& place = theirs.memories[i];
    if (place.buffer.is_none()) continue;
    const bool is_on_device = (theirs.on_device >> i & 1) != 0;
    const auto base =
        is_on_device ? domain_->open_device_memory(peer_.rank, place.buffer) : domain_->map(peer_.rank, place.buffer);
    if (!base) return tl::unexpected(base.error());
    mapped_.base[i] = *base + place.offset;
  }
  mapped_places_ = theirs.memories;
  mapped_on_device_ = theirs.on_device;
  mapped_at_ = unmap_epoch;
  return mapped_;
}

Result<const std::byte*> ShmPeer::shown_inputs() { return keep_mapped(theirs_->inputs, shown_inputs_); }

Result<std::byte*> ShmPeer::shown_blocks() { return keep_mapped(theirs_->blocks, shown_blocks_); }

Result<std::byte*> ShmPeer::keep_mapped(SharedBufferId id, std::shared_ptr<const SharedMemory>& kept) {
  if (!kept) {
    auto memory = domain_->hold(peer_.rank, id);
    if (!memory) return tl::unexpected(memory.error());
    kept = std::move(*memory);
  }
  return kept->data();
}

}  // namespace espalier::engine
