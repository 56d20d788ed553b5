#pragma once

#include <algorithm>
#include <cstdint>

#include "base/check.h"
#include "schedule/layout.h"
#include "sim/simulate.h"

namespace espalier::test {

/// Cuts a schedule's transfers as docs/simulator.md, "Chunks", says; calls `visit(transfer, index, bytes)` for each
/// chunk in order.
template <class Visit>
void cut_by_definition(const Schedule& schedule, const sim::Options& options, Visit visit) {
  const auto layout = Layout::make(schedule, options.size, options.element_size);
  ESPALIER_CHECK(layout.has_value(), "a test's layout fits");
  std::int64_t longest = 1;
  for (const Transfer& transfer : schedule.transfers) longest = std::max(longest, layout->range(transfer).length());
  const std::int64_t elements_per_chunk = options.chunk.count / options.element_size;
  const std::int64_t most = (longest / options.element_size + elements_per_chunk - 1) / elements_per_chunk;
  for (std::size_t t = 0; t < schedule.transfers.size(); ++t) {
    const ByteRange range = layout->range(schedule.transfers[t]);
    const std::int64_t count = std::max<std::int64_t>(1, std::min(most, range.length() / options.element_size));
    for (std::int64_t c = 0; c < count; ++c) {
      visit(t, static_cast<std::uint32_t>(c), chunk_of(range, count, c, options.element_size));
    }
  }
}

}  // namespace espalier::test
