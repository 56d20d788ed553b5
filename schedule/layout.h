#pragma once

// Tested by: tests/unit/schedule/layout_test.cpp

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "base/units.h"
#include "schedule/schedule.h"

namespace espalier {

/// The bytes [begin, end) of the schedule's buffer (Collective::extent_factor says which buffer that is).
struct ByteRange {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  [[nodiscard]] std::int64_t length() const { return end - begin; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

/// Binds units to bytes for one message size and element type; the only place that does.
///
/// Elements are dealt in two steps: first to the parts that the collective promises (the N shards, the N x N blocks of
/// all_to_all; one part otherwise), equal ones but for the first getting the remainder, shards with shares as
/// `deal_elements` (parts.h) does, the blocks of a traffic matrix as `block_elements` does; then within a part to its
/// units, the remainder spread evenly. So a shard has its share to within one element and so has a slice, for any
/// count, also when there are more units than elements.
class Layout {
 public:
  /// Requires: slices that tile the units (rule S2).
  /// Errors: invalid_input when the size is negative or not a multiple of the element size, or when the units do not
  /// divide into the parts; too_large past `max_message_size`.
  [[nodiscard]] static Result<Layout> make(const Schedule& schedule, Bytes size, std::int64_t element_size);

  [[nodiscard]] Bytes size() const { return size_; }
  [[nodiscard]] std::int64_t element_size() const { return element_size_; }

  [[nodiscard]] std::size_t slice_count() const { return begins_.empty() ? 0 : begins_.size() - 1; }
  /// The bytes of a run of slices.
  [[nodiscard]] ByteRange range(SliceId first, std::uint32_t count) const {
    return {begins_[first.index()], begins_[first.index() + count]};
  }
  [[nodiscard]] ByteRange range(const Transfer& transfer) const {
    return range(transfer.first_slice, transfer.slice_count);
  }

 private:
  Bytes size_;
  std::int64_t element_size_ = 1;
  std::vector<std::int64_t> begins_;  ///< slices + 1 byte offsets.
};

/// Into how many chunks the transfers of a schedule are cut: as many as its longest one needs so that none passes
/// `chunk` bytes, but for an element per slice. All get the same number, so transfers of different length stay in step:
/// trees that share a link take turns chunk by chunk, and so advance in proportion to their weights. Requires: chunk
/// holds at least one element.
std::int64_t chunk_count(const Schedule& schedule, const Layout& layout, Bytes chunk);

/// The index-th of `count` nearly equal parts of a range, cut at whole elements; the first ones get the remainder.
ByteRange part_of(ByteRange range, std::int64_t count, std::int64_t index, std::int64_t element_size);

}  // namespace espalier
