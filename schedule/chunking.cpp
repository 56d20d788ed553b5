#include "schedule/chunking.h"

#include <algorithm>

namespace espalier {
namespace {

/// The inverse of chunk_of: which chunk holds a byte of the range. The first `longer` chunks have an element more.
std::uint32_t chunk_holding(const Pieces& pieces, std::int64_t byte, std::int64_t element_size) {
  const std::int64_t elements = pieces.range.length() / element_size;
  const std::int64_t element = (byte - pieces.range.begin) / element_size;
  const std::int64_t shorter_length = elements / pieces.count;
  const std::int64_t longer = elements % pieces.count;
  const std::int64_t in_longer = longer * (shorter_length + 1);
  if (element < in_longer) return static_cast<std::uint32_t>(element / (shorter_length + 1));
  return static_cast<std::uint32_t>(longer + (element - in_longer) / shorter_length);
}

}  // namespace

std::uint32_t Chunking::find_needed_chunk(const Transfer& earlier, const ByteRange& bytes) const {
  const Pieces other = pieces(earlier);
  const std::int64_t end = std::min(bytes.end, other.range.end);
  if (end <= std::max(bytes.begin, other.range.begin)) return no_chunk;
  return chunk_holding(other, end - 1, layout_.element_size());
}

}  // namespace espalier
