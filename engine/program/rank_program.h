#pragma once

// Tested by: tests/property/engine/rank_program_test.cpp

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <vector>

#include "base/result.h"
#include "engine/program/placement.h"
#include "schedule/chunking.h"
#include "schedule/schedule.h"

namespace espalier::engine {

inline constexpr std::uint32_t not_fused = std::numeric_limits<std::uint32_t>::max();

/// Bytes of an op that lie in one piece at both ends.
struct Piece {
  std::int64_t length = 0;
  Location source;  ///< At src.
  Location target;  ///< At dst.
  Location first;   ///< At dst: what a reduction adds to.
};

/// Something an op waits for at its own rank: that a stream has finished this many of its ops.
struct LocalWait {
  std::uint32_t stream = 0;
  std::uint32_t count = 0;
};

/// A chunk of a transfer as one end of it sees it.
struct Op {
  TransferId transfer;
  std::uint32_t chunk = 0;
  std::uint32_t first_piece = 0;
  std::uint32_t piece_count = 0;
  std::uint32_t first_wait = 0;
  std::uint32_t wait_count = 0;
  std::uint32_t fused = not_fused;  ///< Of a reduction at its destination: the fused one that it is part of.
  bool reduces = false;
  std::uint32_t level = 0;  ///< ChunkOrder::level; its round (docs/engine.md, "Rounds").
  std::int64_t bytes = 0;
};

/// A part of a rank's send or receive buffer, in bytes.
struct Block {
  std::int64_t offset = 0;
  std::int64_t bytes = 0;
};

/// All that goes from one rank to another on one stream, in order: this rank is one end.
struct Stream {
  Rank peer;
  std::uint32_t number = 0;  ///< Among those of this pair and direction.
  bool is_outgoing = false;
  std::uint32_t first_op = 0;
  std::uint32_t op_count = 0;
  /// Ops that may be done before the other end acknowledges any: by entering the call it allows them.
  std::uint32_t initial_credits = 0;
  bool keeps_step = false;  ///< Outgoing, over a link that other transfers than its own use too.
  // Of a program with counts.
  Block block;                  ///< What this rank sends to the peer, or receives from it, on all streams of the pair.
  std::int64_t bytes_back = 0;  ///< What goes the other way.
};

/// An op by its place.
struct OpPlace {
  std::uint32_t stream = 0;
  std::uint32_t index = 0;  ///< Within its stream.
};

/// Reductions into the same bytes, fused into one that reads all sources and writes once; and the forwarded copies, ops
/// that send the result on as it is, which the same reduction may write to where they go.
struct FusedReduction {
  std::uint32_t first_member = 0;
  std::uint32_t member_count = 0;
  std::uint32_t first_forward = 0;
  std::uint32_t forward_count = 0;
};

/// Bytes that move within this rank.
struct LocalCopy {
  Location from;
  Location to;
  std::int64_t length = 0;
};

/// The number of the stream that a transfer takes between its two ranks; streams keep the order of their own ops alone.
/// Both ends have to agree.
using StreamChoice = std::function<std::uint32_t(const Transfer&)>;

/// A rank's part of a schedule for one size: what it sends and receives, in order, where the bytes lie, what waits for
/// what. Nothing in it names an address, so it serves any call of the same shape.
///
/// A program with counts (direct_program.h) is of one call: its rank knows its own blocks alone. The peer's end of a
/// piece (the source at a receiver, the target at a sender) then counts from the beginning of the peer's block, and a
/// stream may have no ops, which is as if it were not there.
struct RankProgram {
  std::vector<Stream> streams;
  std::vector<Op> ops;
  std::vector<Piece> pieces;
  std::vector<LocalWait> waits;
  std::vector<FusedReduction> fused_reductions;
  std::vector<OpPlace> members;   ///< Of fused reductions, in program order.
  std::vector<OpPlace> forwards;  ///< Of fused reductions: copies out.
  std::vector<LocalCopy> local_copies;
  std::int64_t send_bytes = 0;  ///< What the caller's buffers have to have.
  std::int64_t receive_bytes = 0;
  std::int64_t scratch_bytes = 0;
  std::optional<std::int64_t> in_place_shift;  ///< Of the send buffer to the receive buffer; nothing: not in place.
  /// Whether it sends what the rank brought after something was added to that: a call in place needs a copy of it.
  bool keeps_input = false;
  std::int64_t max_op_bytes = 0;   ///< Over all ranks; of a program with counts, of this one.
  std::int64_t message_bytes = 0;  ///< What the rank sends or what it receives, the larger; its own part included.
  std::uint32_t ahead = 0;         ///< Pacing::ahead, over the streams that keep step.
  bool has_counts = false;
  std::int64_t element_size = 1;
};

/// Takes a rank's part out of a schedule.
/// Requires: a schedule that verifies. Errors: unsupported where switches take part (relays); too_large.
/// Cost: O(chunks of all ranks).
Result<RankProgram> compile(const Schedule& schedule, const Layout& layout, const Pacing& pacing, Rank rank,
                            const StreamChoice& choose_stream);

}  // namespace espalier::engine
