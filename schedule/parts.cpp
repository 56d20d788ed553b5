#include "schedule/parts.h"

#include <algorithm>
#include <numeric>

namespace espalier {

BufferParts::BufferParts(const Collective& collective, std::int64_t units) : count_(collective.part_count()) {
  if (collective.shares.empty()) {
    are_whole_ = count_ > 0 && units % count_ == 0;
    each_ = are_whole_ ? units / count_ : 0;
    return;
  }
  const std::int64_t sum = collective.share_sum();
  are_whole_ = true;
  begins_.push_back(0);
  std::int64_t shares_before = 0;
  for (const std::int64_t share : collective.shares) {
    shares_before += share;
    const __int128 product = static_cast<__int128>(units) * shares_before;
    are_whole_ = are_whole_ && product % sum == 0;
    begins_.push_back(static_cast<std::int64_t>(product / sum));
  }
}

std::int64_t BufferParts::at(std::int64_t unit) const {
  if (begins_.empty()) return unit / each_;
  return std::upper_bound(begins_.begin(), begins_.end(), unit) - begins_.begin() - 1;
}

std::vector<std::int64_t> deal_elements(const Collective& collective, std::int64_t elements) {
  const std::int64_t sum = collective.share_sum();
  std::vector<std::int64_t> dealt;
  std::vector<std::int64_t> remainders;
  std::int64_t left = elements;
  for (std::size_t rank = 0; rank < collective.rank_count; ++rank) {
    const __int128 product = static_cast<__int128>(elements) * collective.share_of(Rank(rank));
    dealt.push_back(static_cast<std::int64_t>(product / sum));
    remainders.push_back(static_cast<std::int64_t>(product % sum));
    left -= dealt.back();
  }
  std::vector<std::size_t> order(dealt.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return remainders[a] > remainders[b]; });
  // Fewer are left over than shards were rounded down, so those of no share get none.
  for (std::size_t i = 0; i < static_cast<std::size_t>(left); ++i) ++dealt[order[i]];
  return dealt;
}

std::vector<std::int64_t> block_elements(const Collective& collective, std::int64_t elements) {
  const __int128 line = collective.largest_line();
  std::vector<std::int64_t> counts;
  counts.reserve(collective.shares.size());
  for (const std::int64_t share : collective.shares) {
    counts.push_back(static_cast<std::int64_t>((static_cast<__int128>(elements) * share + line - 1) / line));
  }
  return counts;
}

Bytes evenly_dealt(const Collective& collective, Bytes size, std::int64_t element_size) {
  const std::int64_t elements = size.count / element_size;
  if (collective.has_matrix()) return size;  // No block has less than its share.
  if (collective.shares.empty()) {
    const std::int64_t parts = std::max<std::int64_t>(1, collective.part_count() / collective.extent_factor());
    return {parts == 1 ? size.count : elements / parts * parts * element_size};
  }
  const __int128 sum = collective.share_sum();
  const std::vector<std::int64_t> dealt = deal_elements(collective, elements);
  __int128 even = size.count;
  for (std::size_t rank = 0; rank < dealt.size(); ++rank) {
    const std::int64_t share = collective.share_of(Rank(rank));
    if (share > 0) even = std::min(even, sum * dealt[rank] * element_size / share);
  }
  return {static_cast<std::int64_t>(even)};
}

Rational min_time(const Rational& time_per_byte, const Collective& collective, Bytes size, std::int64_t element_size) {
  return time_per_byte * make_rational(evenly_dealt(collective, size, element_size).count);
}

double part_of_bound(const Rational& time_per_byte, const Collective& collective, Bytes size, std::int64_t element_size,
                     double seconds) {
  const Rational least = min_time(time_per_byte, collective, size, element_size);
  if (seconds <= 0) return least == 0 ? 1.0 : 0.0;
  return to_double(least) / seconds;
}

}  // namespace espalier
