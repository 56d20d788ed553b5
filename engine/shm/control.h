#pragma once

// Tested by: tests/unit/engine/communicator/exchange_test.cpp

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "engine/program/rank_program.h"
#include "engine/shm/shared_domain.h"
#include "engine/transport/call.h"

namespace espalier::engine {

/// Transfers that reduce and transfers that copy go on streams of their own between ranks of one machine: the
/// destination reads what it adds, the source writes what it copies.
inline constexpr std::uint32_t shm_streams_per_pair = 2;

/// A call as a rank shows it to the others of its machine.
struct alignas(128) SharedCall {
  std::atomic<std::uint64_t> sequence;  ///< Of the call; written last.
  CallHeader header;
  union {
    /// By Place; none where the memory is not shared, with its address as the offset in calls with counts per peer.
    std::array<SharedPlace, 3> memories;
    /// Of a call that is an exchange, an input that fits: it arrives with the call, the first bytes in its cache line.
    std::array<std::byte, 64> input;
  };
  /// 1 for a rank with a core of its own that sends to one peer only: it does half of every copy that the peer fetches.
  std::uint32_t sender_assists;
  std::uint32_t on_device;  ///< Bit by Place: that memory is a device's, and its buffer the name of it.
  /// A bit of `on_device`: all memories that have bytes are a device's, and others may open them.
  static constexpr std::uint32_t all_on_device = 8;
};
static_assert(sizeof(SharedCall) == 128);

/// Whether all that the rank calls with is shared: mapped, or of a device whose memory others may open.
inline bool shares_all(const SharedCall& call) {
  return std::ranges::none_of(call.memories, [](const SharedPlace& place) { return place.buffer.is_none(); });
}

/// A rank's progress on a stream, published to the peer: of how many ops, counted over all calls, it has done its part.
/// Where bytes go directly from memory to memory, the passive end permits an op and the active end copies it.
struct SharedStream {
  std::atomic<std::uint64_t> sent;      ///< Of those that go to the other.
  std::atomic<std::uint64_t> received;  ///< Of those that come from it.
  SharedBufferId staging;  ///< Where staged ops to the other are; written before the first of them is sent.
  std::uint32_t slot_bytes;
  std::uint32_t slot_count;
};

/// The largest input that a rank shows in the call itself.
inline constexpr std::int64_t max_inline_bytes = sizeof(SharedCall::input);
/// The largest input that a rank shows with its call, for all others to read.
inline constexpr std::int64_t max_shown_bytes = std::int64_t{16} << 10;
/// The largest input that is worth showing with so many members. Each rank reads the inputs of all members and saves
/// one more wait for them: between two members that wait is short, and more than this together leaves a core's cache.
constexpr std::int64_t max_shown_bytes_of(std::uint32_t members) {
  constexpr std::int64_t together = std::int64_t{128} << 10;
  return members == 2 ? max_shown_bytes / 4 : std::min(max_shown_bytes, together / members);
}
/// The same of two members whose memory is private: by streams each byte would go through shared memory twice as well.
inline constexpr std::int64_t max_private_shown_bytes = std::int64_t{32} << 10;
/// Bytes of a block of a BlockExchange: the places of all ranks together should stay in the last-level cache.
constexpr std::int64_t exchanged_block_bytes(std::uint32_t members) {
  constexpr std::int64_t all_bytes = std::int64_t{12} << 20;
  constexpr std::int64_t page = 4096;
  return std::max(16 * page, all_bytes / (4 * std::int64_t{members}) / page * page);
}
/// A ring buffer of shown inputs. It is larger than the caches of a core, since a write to lines that another core has
/// just read waits for that core's cache line by line; and the inputs of all calls of the window fit in it.
inline constexpr std::int64_t shown_inputs_bytes = std::int64_t{1} << 20;

/// Of a call with counts per peer: what a rank sends to a peer and what it receives from it, as places in its buffers.
struct SharedBlocks {
  Block sent;
  Block received;
};

/// A rank is never more than this many calls ahead of a member that it exchanges with.
inline constexpr std::uint64_t shm_call_window = 8;

/// A rank's progress on all its streams to one peer, in one cache line: written by the rank, read by the peer.
struct alignas(128) SharedStreams {
  std::array<SharedStream, shm_streams_per_pair> streams;
  // Written as the group is made; 1 for yes.
  std::uint32_t opens_memory;                                     ///< The rank's device opens memory of the peer's.
  std::uint32_t reads_memory;                                     ///< The rank reads private memory of the peer's.
  alignas(128) std::array<SharedBlocks, shm_call_window> blocks;  ///< By call; written before it is shown.
};
static_assert(sizeof(SharedStreams) == 384 && sizeof(SharedStream) * shm_streams_per_pair <= 64);

/// What a rank shows to the other members of a communicator. Zeroed memory is a valid one. Its streams follow, for each
/// member.
struct SharedControl {
  static constexpr std::uint64_t call_window = shm_call_window;
  std::array<SharedCall, call_window> calls;
  alignas(128) std::atomic<std::uint64_t> entered;  ///< The newest call.
  std::atomic<std::uint64_t> exchanged;  ///< The newest exchange or call of kernels: what others showed in it was read.
  /// 1 when no more calls will come. Who waits for this rank looks here, so nothing that it writes often is beside it.
  alignas(128) std::atomic<std::uint32_t> has_left;
  SharedBufferId inputs;            ///< The ring of small inputs; written before the first call that shows one.
  SharedBufferId exchanged_blocks;  ///< The places of a BlockExchange, likewise.
  /// The newest call for whose kernels this rank has shown memory; written after `kernel_memory`.
  alignas(128) std::atomic<std::uint64_t> kernel_call;
  SharedBufferId kernel_memory;  ///< Of its device. Nobody shows another before all have read this one.
  alignas(128) std::atomic<std::uint64_t> blocks_shown;  ///< Of all calls.
  alignas(128) std::atomic<std::uint64_t> blocks_added;

  static constexpr std::int64_t bytes(std::uint32_t members) {
    return static_cast<std::int64_t>(sizeof(SharedControl) + std::size_t{members} * sizeof(SharedStreams));
  }
  // A call that shows its input is in the window until all members have read it, with one part of the ring lost where
  // it turns.
  static_assert((call_window + 2) * std::max(max_shown_bytes, max_private_shown_bytes) <= shown_inputs_bytes);

  [[nodiscard]] SharedStreams& streams(std::uint32_t member) {
    return reinterpret_cast<SharedStreams*>(this + 1)[member];
  }
  [[nodiscard]] SharedStream& stream(std::uint32_t member, std::uint32_t number) {
    return streams(member).streams[number];
  }
  [[nodiscard]] SharedBlocks& blocks(std::uint32_t member, std::uint64_t sequence) {
    return streams(member).blocks[sequence % call_window];
  }
};

}  // namespace espalier::engine
