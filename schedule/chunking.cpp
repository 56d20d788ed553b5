#include "schedule/chunking.h"

#include <algorithm>
#include <utility>

namespace espalier {

Chunking::Chunking(Layout layout, std::int64_t count) : layout_(std::move(layout)), count_(count) {
  all_parts_have_bytes_ = true;
  for (std::size_t i = 0; i < layout_.slice_count() && all_parts_have_bytes_; ++i) {
    all_parts_have_bytes_ = elements(SliceId(i)) >= count_;
  }
}

std::uint32_t Chunking::count_chunks(const Transfer& transfer) const {
  std::int64_t longest = 1;
  for (std::uint32_t i = 0; i < transfer.slice_count && longest < count_; ++i) {
    longest = std::max(longest, elements(SliceId(transfer.first_slice.index() + i)));
  }
  return static_cast<std::uint32_t>(std::min(longest, count_));
}

std::int64_t Chunking::sum_of_parts(const Pieces& pieces, std::uint32_t index) const {
  std::int64_t sum = 0;
  for (std::uint32_t i = 0; i < pieces.slice_count; ++i) {
    const std::int64_t length = elements(SliceId(pieces.first_slice.index() + i));
    sum += length / count_ + (index < length % count_ ? 1 : 0);
  }
  return sum * layout_.element_size();
}

std::uint32_t Chunking::alike_behind(const Pieces& pieces, std::uint32_t index) const {
  // Chunks get shorter where a slice's remainder is used up.
  std::int64_t end = pieces.count;
  for (std::uint32_t i = 0; i < pieces.slice_count && pieces.count > 1; ++i) {
    const std::int64_t longer = elements(SliceId(pieces.first_slice.index() + i)) % count_;
    if (longer > index) end = std::min(end, longer);
  }
  return static_cast<std::uint32_t>(end - index - 1);
}

bool Chunking::shares_bytes(const Transfer& earlier, const Transfer& transfer, std::uint32_t index) const {
  const std::size_t begin = std::max(earlier.first_slice, transfer.first_slice).index();
  const std::size_t end =
      std::min(earlier.first_slice.index() + earlier.slice_count, transfer.first_slice.index() + transfer.slice_count);
  for (std::size_t slice = begin; slice < end; ++slice) {
    if (elements(SliceId(slice)) > index) return true;  // else the parts before have them all
  }
  return false;
}

}  // namespace espalier
