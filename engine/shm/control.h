#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "engine/shm/shared_domain.h"
#include "engine/transport/call.h"

namespace espalier::engine {

/// Transfers that reduce and transfers that copy go on streams of their own between ranks of one machine: the
/// destination reads what it adds, the source writes what it copies.
inline constexpr std::uint32_t shm_lanes = 2;

/// A call as a rank shows it to the others of its machine.
struct alignas(128) SharedCall {
  std::atomic<std::uint64_t> sequence;  ///< Of the call; written last.
  CallHeader header;
  std::array<SharedPlace, 3> memories;  ///< By Place; none where the memory is not shared.
  /// 1 for a rank with a core of its own that sends to one peer only: it does half of every copy that the peer fetches.
  std::uint32_t lends_a_hand;
};
static_assert(sizeof(SharedCall) == 128);

/// What a rank tells another of a lane between them: how many ops, of all calls, it has done its part of. Where the
/// bytes go directly from memory to memory, the passive end's part is to permit it, the active end's to do it.
struct SharedLane {
  std::atomic<std::uint64_t> sent;      ///< Of those that go to the other.
  std::atomic<std::uint64_t> received;  ///< Of those that come from it.
  SharedBufferId staging;  ///< Where staged ops to the other are; written before the first of them is sent.
  std::uint32_t slot_bytes;
  std::uint32_t slot_count;
};

/// All that a rank tells another of their lanes, in one cache line: written here, read there.
struct alignas(128) SharedLanes {
  std::array<SharedLane, shm_lanes> lanes;
};
static_assert(sizeof(SharedLanes) == 128 && sizeof(SharedLane) * shm_lanes <= 64);

/// What a rank shows to the other members of a communicator. Zeroed memory is a valid one. Its lanes follow, for each
/// member.
struct SharedControl {
  /// A rank is never more than this many calls ahead of one that it meets.
  static constexpr std::uint64_t call_window = 8;
  std::array<SharedCall, call_window> calls;
  alignas(128) std::atomic<std::uint64_t> entered;  ///< The newest call.
  std::atomic<std::uint32_t> has_left;              ///< 1 when no more calls will come.

  static constexpr std::int64_t bytes(std::uint32_t members) {
    return static_cast<std::int64_t>(sizeof(SharedControl) + std::size_t{members} * sizeof(SharedLanes));
  }
  [[nodiscard]] SharedLane& lane(std::uint32_t member, std::uint32_t lane) {
    return reinterpret_cast<SharedLanes*>(this + 1)[member].lanes[lane];
  }
};

}  // namespace espalier::engine
