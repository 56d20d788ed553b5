#include "engine/shm/shm_peer.h"

namespace espalier::engine {

bool ShmPeer::has_entered(const StreamCall& call) {
  const std::uint64_t sequence = call.header->sequence;
  const SharedCall& theirs = this->call(sequence);
  if (theirs.sequence.load(std::memory_order_acquire) != sequence) return false;
  if (!(theirs.header == *call.header)) {
    call.trouble->set({ErrorCode::invalid_input,
                       describe_mismatch(self_.member, *call.header, peer_.member, theirs.header),
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
