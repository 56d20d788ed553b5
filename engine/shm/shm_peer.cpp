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
  CallHeader ours = *call.header;
  if (ours.has_counts != 0) {  // Maybe of a stream: blocks are compared below.
    ours.count = theirs.header.count;
    ours.shares = theirs.header.shares;
  }
  if (!(theirs.header == ours)) {
    call.error->set({ErrorCode::invalid_input, describe_mismatch(self_.rank, ours, peer_.rank, theirs.header),
                     "call the same collectives with the same arguments in the same order on every rank"});
    return false;
  }
  if (ours.has_counts != 0 && !agree_on_blocks(call)) return false;
  agreed_ = sequence;
  return true;
}

bool ShmPeer::agree_on_blocks(const StreamCall& call) {
  const std::uint64_t sequence = call.header->sequence;
  const SharedBlocks& ours = own_->blocks(peer_.member, sequence);
  const SharedBlocks& theirs = theirs_blocks(sequence);
  if (ours.sent.bytes == theirs.received.bytes && ours.received.bytes == theirs.sent.bytes) return true;
  const auto count = [&](const Block& block) {
    return static_cast<std::uint64_t>(block.bytes / size_of(call.header->type));
  };
  const bool is_sent = ours.sent.bytes != theirs.received.bytes;
  const std::string what =
      is_sent ? describe_counts(*call.header, self_.rank, count(ours.sent), peer_.rank, count(theirs.received))
              : describe_counts(*call.header, peer_.rank, count(theirs.sent), self_.rank, count(ours.received));
  call.error->set({ErrorCode::invalid_input, what, count_mismatch_help});
  return false;
}

Result<MappedBuffers> ShmPeer::map_for_blocks(std::uint64_t sequence) {
  auto mapped = map_memories(sequence);
  if (!mapped) return mapped;
  const SharedBlocks& theirs = theirs_blocks(sequence);
  for (const auto& [place, block] :
       {std::pair(engine::Place::send, theirs.sent), std::pair(engine::Place::receive, theirs.received)}) {
    const auto at = static_cast<std::size_t>(place);
    const std::int64_t room = mapped_rooms_[at];
    if (block.bytes == 0 || mapped->base[at] == nullptr) continue;
    if (block.bytes < 0 || block.offset < 0 || block.bytes > room || block.offset > room - block.bytes) {
      return fail(ErrorCode::unavailable,
                  fmt::format("rank {} shows {} bytes at {} of a memory that has {}", peer_.rank, block.bytes,
                              block.offset, room),
                  "look at that rank: its memory is damaged");
    }
    mapped->base[at] += block.offset;
  }
  return mapped;
}

Result<MappedBuffers> ShmPeer::find_memories(std::uint64_t sequence) {
  const SharedCall& theirs = call(sequence);
  const std::uint64_t unmap_epoch = domain_->unmap_epoch();
  mapped_at_.reset();
  mapped_ = {};
  for (std::size_t i = 0; i < mapped_.base.size(); ++i) {
    const SharedPlace& place = theirs.memories[i];
    if (place.buffer.is_none()) continue;
    std::int64_t room = max_message_size.count;  // Of a device, who opens it knows.
    Result<std::byte*> base;
    if ((theirs.on_device >> i & 1) != 0) {
      base = domain_->open_device_memory(peer_.rank, place.buffer);
    } else if (const auto memory = domain_->hold(peer_.rank, place.buffer); !memory) {
      base = tl::unexpected(memory.error());
    } else {
      base = (*memory)->data();
      room = (*memory)->bytes();
    }
    if (!base) return tl::unexpected(base.error());
    mapped_.base[i] = *base + place.offset;
    mapped_rooms_[i] = room - place.offset;
  }
  mapped_places_ = theirs.memories;
  mapped_on_device_ = theirs.on_device;
  mapped_at_ = unmap_epoch;
  return mapped_;
}

Result<const std::byte*> ShmPeer::shown_inputs() { return keep_mapped(theirs_->inputs, shown_inputs_); }

Result<std::byte*> ShmPeer::shown_blocks() { return keep_mapped(theirs_->exchanged_blocks, shown_blocks_); }

Result<std::byte*> ShmPeer::keep_mapped(SharedBufferId id, std::shared_ptr<const SharedMemory>& kept) {
  if (!kept) {
    auto memory = domain_->hold(peer_.rank, id);
    if (!memory) return tl::unexpected(memory.error());
    kept = std::move(*memory);
  }
  return kept->data();
}

}  // namespace espalier::engine
