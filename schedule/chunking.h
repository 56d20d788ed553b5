#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <utility>

#include "schedule/layout.h"
#include "schedule/schedule.h"

namespace espalier {

/// One chunk of one transfer.
struct ChunkId {
  TransferId transfer;
  std::uint32_t chunk = 0;
};

/// The bytes of a transfer and how many chunks they are cut into.
struct Pieces {
  ByteRange range;
  std::uint32_t count = 1;
};

inline constexpr std::uint32_t no_chunk = std::numeric_limits<std::uint32_t>::max();

/// Cuts transfers into chunks (schedule/layout.h) and says which chunk of an earlier transfer a later chunk needs.
class Chunking {
 public:
  Chunking() = default;
  Chunking(Layout layout, std::int64_t count) : layout_(std::move(layout)), count_(count) {}

  [[nodiscard]] Pieces pieces(const Transfer& transfer) const {
    const ByteRange range = layout_.range(transfer);
    if (count_ == 1) return {range, 1};
    return {range, static_cast<std::uint32_t>(chunk_count(range, count_, layout_.element_size()))};
  }

  [[nodiscard]] ByteRange chunk(const Pieces& pieces, std::uint32_t index) const {
    if (pieces.count == 1) return pieces.range;
    return chunk_of(pieces.range, pieces.count, index, layout_.element_size());
  }

  /// How many chunks right behind this one are as long as it.
  [[nodiscard]] std::uint32_t alike_behind(const Pieces& pieces, std::uint32_t index) const {
    const auto longer = static_cast<std::uint32_t>(pieces.range.length() / layout_.element_size() % pieces.count);
    return (index < longer ? longer : pieces.count) - index - 1;
  }

  /// The last chunk of `earlier` that shares bytes with chunk `index` of `transfer`, which has these `bytes`;
  /// `no_chunk` when none does. Chunks of one transfer depart and arrive in order, so the last one is the one to wait
  /// for.
  [[nodiscard]] std::uint32_t needed_chunk(const Transfer& earlier, const Transfer& transfer, const ByteRange& bytes,
                                           std::uint32_t index) const {
    if (bytes.length() == 0) return no_chunk;
    if (are_cut_alike(earlier, transfer)) return index;
    return find_needed_chunk(earlier, bytes);
  }

  /// Whether both are of the same run of slices, and so cut in the same way: the usual case of data handed on.
  [[nodiscard]] static bool are_cut_alike(const Transfer& one, const Transfer& other) {
    return one.first_slice == other.first_slice && one.slice_count == other.slice_count;
  }

 private:
  [[nodiscard]] std::uint32_t find_needed_chunk(const Transfer& earlier, const ByteRange& bytes) const;

  Layout layout_;
  std::int64_t count_ = 1;  ///< Chunks of the longest transfer.
};

}  // namespace espalier
