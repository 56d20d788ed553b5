#pragma once

// Tested by: tests/property/engine/rank_program_test.cpp

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace espalier::engine {

/// Which of a rank's memories: the caller's send or receive buffer, or memory of the engine for what a rank only passes
/// on or adds up for others.
enum class Place : std::uint8_t { send, receive, scratch };

/// A byte of a rank's memory.
struct Location {
  Place place = Place::send;
  std::int64_t offset = 0;
  friend bool operator==(const Location&, const Location&) = default;
};

/// The part of a slice that one transfer moves, at both ends. What a rank brings lies in its send buffer until a
/// transfer brings something; from then on the slice lies in the receive buffer when the rank is promised it, and in
/// scratch memory otherwise. So no send buffer is ever written, unless the caller works in place. What reads the rank's
/// input reads its send buffer at any time.
struct SliceMove {
  Location source;  ///< At src.
  Location target;  ///< At dst.
  Location first;   ///< At dst: what a reduction adds to; the target itself unless this is the first to arrive.
};

/// Where the bytes of a schedule lie at every rank, for one layout.
/// Buffers are those of NCCL (schedule/collective.h): the send buffer of all_gather is the rank's own shard, and so on.
class Placement {
 public:
  /// Replays the transfers. Requires: rules S1 and S2, no relays. Cost: O(slice moves + ranks x slices / 8 bytes).
  Placement(const Schedule& schedule, const Layout& layout);

  /// The moves of a transfer, one per slice of its run.
  [[nodiscard]] const SliceMove* moves(TransferId transfer) const { return &moves_[first_move_[transfer.index()]]; }

  /// Bytes that the rank's buffers have to have.
  [[nodiscard]] std::int64_t send_bytes(Rank rank) const { return send_bytes_[rank.index()]; }
  [[nodiscard]] std::int64_t receive_bytes(Rank rank) const { return receive_bytes_[rank.index()]; }
  [[nodiscard]] std::int64_t scratch_bytes(Rank rank) const { return scratch_bytes_[rank.index()]; }

  /// Where the send buffer begins relative to the receive buffer when the rank works in place; nothing for collectives
  /// that cannot (blocks change places).
  [[nodiscard]] std::optional<std::int64_t> in_place_shift(Rank rank) const { return in_place_shifts_[rank.index()]; }

  /// A part of a rank's result that no transfer brings: it has it already, in its send buffer.
  struct OwnResult {
    Rank rank;
    Location from;
    Location to;
    std::int64_t length = 0;
  };
  [[nodiscard]] const std::vector<OwnResult>& own_results() const { return own_results_; }

 private:
  std::vector<std::uint64_t> first_move_;
  std::vector<SliceMove> moves_;
  std::vector<std::int64_t> send_bytes_;
  std::vector<std::int64_t> receive_bytes_;
  std::vector<std::int64_t> scratch_bytes_;
  std::vector<std::optional<std::int64_t>> in_place_shifts_;
  std::vector<OwnResult> own_results_;
};

}  // namespace espalier::engine
