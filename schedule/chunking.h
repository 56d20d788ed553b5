#pragma once

// Tested by: tests/unit/schedule/chunking_test.cpp

#include <cstdint>
#include <limits>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace espalier {

/// The most rounds that a source may be told to be ahead; more is no window.
inline constexpr std::uint32_t max_ahead = 4096;

/// How a call is cut into chunks, and how far its lanes may run apart (docs/simulator.md, "Rounds").
struct Pacing {
  Bytes chunk;              ///< The largest chunk.
  std::uint32_t ahead = 0;  ///< Rounds that a source may be ahead of the lowest it still has to send; 0: any number.
  friend bool operator==(const Pacing&, const Pacing&) = default;
};

/// One chunk of one transfer.
struct ChunkId {
  TransferId transfer;
  std::uint32_t chunk = 0;
};

/// A transfer as it is cut: its slices, their bytes, and into how many chunks.
struct Pieces {
  SliceId first_slice;
  std::uint32_t slice_count = 0;
  std::int64_t bytes = 0;
  std::uint32_t count = 1;
};

inline constexpr std::uint32_t no_chunk = std::numeric_limits<std::uint32_t>::max();

/// Cuts transfers into chunks: chunk c of a transfer is the c-th part of each of its slices. So what one transfer
/// brings as its c-th chunk, another that has some of its slices, with whatever others, sends on in its c-th chunk:
/// chains of transfers stay in step by content, none waits for another one's last bytes (docs/decisions/0011).
class Chunking {
 public:
  Chunking() = default;
  /// Every slice is cut into `count` nearly equal parts of whole elements, the first ones getting the remainder.
  Chunking(Layout layout, std::int64_t count);

  /// A transfer has `count` chunks, or as many as its longest slice has elements if that is less; one when it is empty.
  [[nodiscard]] Pieces pieces(const Transfer& transfer) const {
    Pieces pieces{transfer.first_slice, transfer.slice_count, layout_.range(transfer).length(), 1};
    if (count_ > 1) pieces.count = all_parts_have_bytes_ ? static_cast<std::uint32_t>(count_) : count_chunks(transfer);
    return pieces;
  }

  /// The bytes of a chunk. Cost: O(slices of the transfer).
  [[nodiscard]] std::int64_t bytes(const Pieces& pieces, std::uint32_t index) const {
    if (pieces.count == 1) return pieces.bytes;
    if (pieces.slice_count == 1) return part(pieces.first_slice, index).length();
    return sum_of_parts(pieces, index);
  }

  /// What a chunk of this index has of a slice.
  [[nodiscard]] ByteRange part(SliceId slice, std::uint32_t index) const {
    return part_of(layout_.range(slice, 1), count_, index, layout_.element_size());
  }

  /// How many chunks right behind this one are as long as it.
  [[nodiscard]] std::uint32_t alike_behind(const Pieces& pieces, std::uint32_t index) const;

  /// The chunk of `earlier` that shares bytes with chunk `index` of `transfer`, which is that of the same index;
  /// `no_chunk` when there is none. Requires: they have slices in common.
  [[nodiscard]] std::uint32_t needed_chunk(const Transfer& earlier, const Transfer& transfer,
                                           std::uint32_t index) const {
    if (all_parts_have_bytes_ || shares_bytes(earlier, transfer, index)) return index;
    return no_chunk;
  }

  /// Whether every chunk of `transfer` shares bytes with that of the same index of `earlier`. Requires: they have
  /// slices in common.
  [[nodiscard]] bool are_in_step(const Transfer& earlier, const Transfer& transfer) const {
    return all_parts_have_bytes_ ||
           (earlier.first_slice == transfer.first_slice && earlier.slice_count == transfer.slice_count);
  }

 private:
  [[nodiscard]] std::int64_t elements(SliceId slice) const {
    return layout_.range(slice, 1).length() / layout_.element_size();
  }
  [[nodiscard]] std::uint32_t count_chunks(const Transfer& transfer) const;
  [[nodiscard]] std::int64_t sum_of_parts(const Pieces& pieces, std::uint32_t index) const;
  [[nodiscard]] bool shares_bytes(const Transfer& earlier, const Transfer& transfer, std::uint32_t index) const;

  Layout layout_;
  std::int64_t count_ = 1;
  bool all_parts_have_bytes_ = false;  ///< Every slice has `count_` elements at least.
};

}  // namespace espalier
