#include "schedule/timeline/part_of_bound.h"

#include <algorithm>
#include <vector>

#include "schedule/parts.h"

namespace espalier {

Bytes evenly_dealt(const Collective& collective, Bytes size, std::int64_t element_size) {
  const std::int64_t elements = size.count / element_size;
  const std::int64_t parts = std::max<std::int64_t>(1, collective.part_count() / collective.extent_factor());
  if (collective.shares.empty()) return {elements / parts * parts * element_size};
  const auto sum = static_cast<__int128>(collective.share_sum());
  std::int64_t even = elements;
  const std::vector<std::int64_t> dealt = deal_elements(collective, elements);
  for (std::size_t rank = 0; rank < dealt.size(); ++rank) {
    const std::int64_t share = collective.share_of(Rank(rank));
    if (share > 0) even = std::min(even, static_cast<std::int64_t>(dealt[rank] * sum / share));
  }
  return {even * element_size};
}

double part_of_bound(const RunReport& run, const Rational& time_per_byte, const Collective& collective,
                     std::int64_t element_size) {
  RunReport sure;
  sure.size = evenly_dealt(collective, run.size, element_size);
  sure.elapsed = run.elapsed;
  return sure.of_bound(time_per_byte);
}

}  // namespace espalier
