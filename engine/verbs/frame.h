#pragma once

// Tested by: tests/unit/engine/verbs/frame_test.cpp

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/transport/stream_end.h"
#include "engine/verbs/queue_pair.h"

namespace espalier::engine {

constexpr std::uint32_t frame_of_call = 0x6C616365;  ///< "ecal": only says that the sender is in the call.
constexpr std::uint32_t frame_of_op = 0x70706F65;    ///< "eopp"

constexpr std::uint32_t frame_of_direct = 0x72696465;  ///< "edir": its bytes are where they belong already.

/// What is shorter goes through the slots, which takes no asking.
constexpr std::int64_t min_direct = std::int64_t{16} << 10U;
/// Of a direct frame: what moves without a sign of progress.
constexpr std::int64_t max_direct = std::int64_t{1} << 20U;

/// Whether the sender writes the op to where it belongs, if the memory at both ends is registered.
inline bool may_be_direct(const Op& op) { return !op.reduces && op.piece_count == 1 && op.bytes >= min_direct; }

/// At the front of each slot.
struct FrameHeader {
  std::uint32_t magic = frame_of_op;
  std::uint32_t transfer = 0;
  std::uint32_t chunk = 0;
  std::uint32_t length = 0;  ///< Of this frame's bytes.
  std::int64_t offset = 0;   ///< Of this frame's bytes in the op.
  std::int64_t bytes = 0;    ///< Of the op.
  CallHeader call;
};
static_assert(sizeof(FrameHeader) <= slot_header);

/// How many bytes of an op are in the frame that begins at `offset`.
inline std::int64_t frame_payload(std::int64_t bytes, std::int64_t offset) {
  return std::min(bytes - offset, static_cast<std::int64_t>(slot_payload));
}

/// Walks through the bytes of an op's pieces, in order.
class PieceCursor {
 public:
  void begin() {
    piece_ = 0;
    within_ = 0;
  }
  /// Calls `use(location of the rest of a piece, length)` for the next `bytes`.
  template <typename Use>
  void advance(const StreamCall& call, const Op& op, Location Piece::*end, std::int64_t bytes, Use use) {
    while (bytes > 0) {
      const Piece& piece = call.pieces(op)[piece_];
      const std::int64_t length = std::min(bytes, piece.length - within_);
      use(call.buffers->at(piece.*end) + within_, static_cast<std::size_t>(length));
      bytes -= length;
      within_ += length;
      if (within_ < piece.length) continue;
      ++piece_;
      within_ = 0;
    }
  }

 private:
  std::uint32_t piece_ = 0;
  std::int64_t within_ = 0;
};

}  // namespace espalier::engine
