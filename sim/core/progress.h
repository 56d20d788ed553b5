#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <vector>

#include "base/id.h"

namespace espalier::sim {

/// A time that is not known yet; later than any other.
inline constexpr std::int64_t unknown_time = std::numeric_limits<std::int64_t>::max();

/// When a chunk's last byte left the source and when it was there at the destination, each `unknown_time` at first.
struct ChunkTimes {
  std::int64_t departed = unknown_time;
  std::int64_t arrived = unknown_time;
};

/// When the chunks of each transfer departed and arrived, as far as it is known.
///
/// Times are known ahead: as soon as a link has taken a chunk, it is certain when the chunk leaves it. What lies wholly
/// in the past is forgotten, so memory goes with the transfers under way and not with all chunks.
class Progress {
 public:
  explicit Progress(std::size_t transfer_count) : blocks_(transfer_count, not_started) {}

  /// Forgets everything, for other transfers; keeps its memory.
  void reset(std::size_t transfer_count);

  /// Makes room for the times of a transfer that starts at `now`. Requires: not started yet.
  void start(TransferId transfer, std::uint32_t chunks, std::int64_t now);

  /// The times of a chunk. Requires: a transfer that was started and whose last chunk has not been `finish`ed.
  [[nodiscard]] ChunkTimes& times(TransferId transfer, std::uint32_t chunk) {
    return arena_[blocks_[transfer.index()] + chunk];
  }

  /// All arrivals of a transfer are known; the last one is at `time`.
  void finish(TransferId transfer, std::uint32_t chunks, std::int64_t time) {
    finished_.push_back({time, transfer, chunks});
  }

  /// The times of a chunk of any transfer: unknown for what has not started; a time in the past may come out as 0.
  [[nodiscard]] ChunkTimes look_up(TransferId transfer, std::uint32_t chunk) const {
    const std::uint32_t block = blocks_[transfer.index()];
    if (block == not_started) return {};
    if (block == forgotten) return {0, 0};
    return arena_[block + chunk];
  }

 private:
  static constexpr std::uint32_t not_started = std::numeric_limits<std::uint32_t>::max();
  static constexpr std::uint32_t forgotten = not_started - 1;
  static constexpr std::uint32_t no_block = not_started;

  struct Finished {
    std::int64_t time;
    TransferId transfer;
    std::uint32_t chunks;
  };

  void forget_before(std::int64_t now);

  static constexpr std::array<std::uint32_t, 33> no_blocks() {
    std::array<std::uint32_t, 33> none{};
    none.fill(no_block);
    return none;
  }

  std::vector<std::uint32_t> blocks_;                        // by transfer: where its times lie in the arena
  std::vector<ChunkTimes> arena_;                            // blocks of 2^k chunks
  std::array<std::uint32_t, 33> free_blocks_ = no_blocks();  // by k: the first free block; a free block names the next
  std::deque<Finished> finished_;
};

}  // namespace espalier::sim
