#include "engine/shm/shm_peer.h"

#include <fmt/format.h>

namespace espalier::engine {

bool ShmPeer::has_entered(const StreamCall& call) {
  const std::uint64_t sequence = call.header->sequence;
  const SharedCall& theirs = this->call(sequence);
  if (theirs.sequence.load(std::memory_order_acquire) != sequence) {
    // The flag is written last: who has left and not entered before never will.
    if (has_left() && theirs.sequence.load(std::memory_order_acquire) != sequence) {
      call.trouble->set_broken({ErrorCode::unavailable,
                                fmt::format("rank {} has left the group and makes no more calls", peer_.rank),
                                "make the same calls on every rank before any of them leaves"});
    }
    return false;
  }
  if (!(theirs.header == *call.header)) {
    call.trouble->set({ErrorCode::invalid_input, describe_mismatch(self_.rank, *call.header, peer_.rank, theirs.header),
                       "call the same collectives with the same arguments in the same order on every rank"});
    return false;
  }
  return true;
}

Result<Buffers> ShmPeer::map_memories(std::uint64_t sequence) {
  Buffers buffers;
  const SharedCall& theirs = call(sequence);
  for (std::size_t i = 0; i < buffers.base.size(); ++i) {
    const SharedPlace& place = theirs.memories[i];
    if (place.buffer.is_none()) continue;
    const auto base = domain_->map(peer_.rank, place.buffer);
    if (!base) return tl::unexpected(base.error());
    buffers.base[i] = *base + place.offset;
  }
  return buffers;
}

}  // namespace espalier::engine
