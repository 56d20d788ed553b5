#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/check.h"
#include "schedule/layout.h"
#include "sim/simulate.h"

namespace espalier::test {

/// The bytes of a chunk: a part of each slice of its transfer.
struct ChunkBytes {
  std::vector<ByteRange> parts;

  [[nodiscard]] std::int64_t length() const {
    std::int64_t sum = 0;
    for (const ByteRange& part : parts) sum += part.length();
    return sum;
  }
  [[nodiscard]] bool shares_bytes(const ChunkBytes& other) const {
    for (const ByteRange& a : parts) {
      for (const ByteRange& b : other.parts) {
        if (std::max(a.begin, b.begin) < std::min(a.end, b.end)) return true;
      }
    }
    return false;
  }
};

/// Cuts a schedule's transfers as docs/simulator.md, "Chunks", says; calls `visit(transfer, index, bytes)` for each
/// chunk in order.
template <class Visit>
void cut_by_definition(const Schedule& schedule, const sim::Options& options, Visit visit) {
  const auto layout = Layout::make(schedule, options.size, options.element_size);
  ESPALIER_CHECK(layout.has_value(), "a test's layout fits");
  std::int64_t longest = 1;
  for (const Transfer& transfer : schedule.transfers) longest = std::max(longest, layout->range(transfer).length());
  const std::int64_t elements_per_chunk = options.chunk.count / options.element_size;
  const std::int64_t parts =
      std::max<std::int64_t>(1, (longest / options.element_size + elements_per_chunk - 1) / elements_per_chunk);
  for (std::size_t t = 0; t < schedule.transfers.size(); ++t) {
    for (std::int64_t c = 0; c < parts; ++c) {
      ChunkBytes bytes;
      for (std::uint32_t i = 0; i < schedule.transfers[t].slice_count; ++i) {
        const ByteRange slice = layout->range(SliceId(schedule.transfers[t].first_slice.index() + i), 1);
        const std::int64_t elements = slice.length() / options.element_size;
        const std::int64_t longer = elements % parts;  // So many parts have an element more than the others.
        const auto begin = [&](std::int64_t part) {
          return slice.begin + (part * (elements / parts) + std::min(part, longer)) * options.element_size;
        };
        bytes.parts.push_back({begin(c), begin(c + 1)});
      }
      if (c > 0 && bytes.length() == 0) break;
      visit(t, static_cast<std::uint32_t>(c), bytes);
    }
  }
}

}  // namespace espalier::test
