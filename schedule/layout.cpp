#include "schedule/layout.h"

#include <algorithm>
#include <string>

#include "schedule/parts.h"

namespace espalier {
namespace {

/// Where the index-th of `parts` nearly equal parts of `total` begins when the first ones get the remainder.
std::int64_t part_begin(std::int64_t total, std::int64_t parts, std::int64_t index) {
  return index * (total / parts) + std::min(index, total % parts);
}

/// Where unit `unit` of `units` begins in a part of `length` elements when the remainder is spread over them: no run of
/// units has an element more or less than its share, even if there are more units than elements.
std::int64_t unit_begin(std::int64_t length, std::int64_t units, std::int64_t unit) {
  return static_cast<std::int64_t>((static_cast<__int128>(length) * unit + units - 1) / units);
}

/// Maps a position in units to one in elements (see Layout).
class UnitMap {
 public:
  UnitMap(const Collective& collective, const BufferParts& parts, std::int64_t elements)
      : parts_(parts),
        extent_factor_(collective.shares.empty() ? collective.extent_factor() : 1),
        parts_per_buffer_(parts.count() / extent_factor_),
        elements_(elements) {
    if (collective.shares.empty()) return;
    shard_begins_.push_back(0);
    for (const std::int64_t count :
         collective.has_matrix() ? block_elements(collective, elements) : deal_elements(collective, elements)) {
      shard_begins_.push_back(shard_begins_.back() + count);
    }
  }

  /// Requires: unit is at most the number of all units.
  [[nodiscard]] std::int64_t elements_before(std::int64_t unit) const {
    if (unit == parts_.begin(parts_.count())) return part_start(parts_.count());
    const std::int64_t part = parts_.at(unit);
    const std::int64_t begin = part_start(part);
    const std::int64_t length = part_start(part + 1) - begin;
    return begin + unit_begin(length, parts_.length(part), unit - parts_.begin(part));
  }

 private:
  [[nodiscard]] std::int64_t part_start(std::int64_t part) const {
    if (!shard_begins_.empty()) return shard_begins_[static_cast<std::size_t>(part)];
    return (part / parts_per_buffer_) * elements_ + part_begin(elements_, parts_per_buffer_, part % parts_per_buffer_);
  }

  const BufferParts& parts_;
  std::int64_t extent_factor_;
  std::int64_t parts_per_buffer_;
  std::int64_t elements_;
  std::vector<std::int64_t> shard_begins_;  ///< With shares: in elements, parts + 1 entries.
};

}  // namespace

Result<Layout> Layout::make(const Schedule& schedule, Bytes size, std::int64_t element_size) {
  if (element_size <= 0) return fail(ErrorCode::invalid_input, "an element has at least one byte");
  if (size.count < 0 || size.count % element_size != 0) {
    return fail(ErrorCode::invalid_input, "a message of " + std::to_string(size.count) +
                                              " bytes is not a whole number of " + std::to_string(element_size) +
                                              "-byte elements");
  }
  if (const auto wrong = why_bad_shares(schedule.collective)) return fail(ErrorCode::invalid_input, *wrong);
  if (size > max_message_size || make_rational(size.count) * schedule.collective.extent() > make_rational(INT64_MAX)) {
    return fail(ErrorCode::too_large,
                "a message of " + std::to_string(size.count) + " bytes is past the limit of 1 PiB");
  }
  const BufferParts parts(schedule.collective, std::max<std::int64_t>(schedule.units, 0));
  if (parts.count() <= 0 || schedule.units <= 0 || !parts.are_whole()) {
    return fail(ErrorCode::invalid_input, "the schedule's " + std::to_string(schedule.units) +
                                              " units do not divide into its " + std::to_string(parts.count()) +
                                              (schedule.collective.shares.empty() ? " equal parts" : " shares"));
  }
  Layout layout;
  layout.size_ = size;
  layout.element_size_ = element_size;
  const UnitMap map(schedule.collective, parts, size.count / element_size);
  layout.begins_.reserve(schedule.slices.size() + 1);
  for (const Slice& slice : schedule.slices) {
    layout.begins_.push_back(map.elements_before(slice.offset) * element_size);
  }
  layout.begins_.push_back(map.elements_before(schedule.units) * element_size);
  return layout;
}

std::int64_t chunk_count(const Schedule& schedule, const Layout& layout, Bytes chunk) {
  std::int64_t longest = 0;
  for (const Transfer& transfer : schedule.transfers) longest = std::max(longest, layout.range(transfer).length());
  const std::int64_t elements = longest / layout.element_size();
  const std::int64_t chunk_elements = chunk.count / layout.element_size();
  return std::max<std::int64_t>(1, (elements + chunk_elements - 1) / chunk_elements);
}

ByteRange part_of(ByteRange range, std::int64_t count, std::int64_t index, std::int64_t element_size) {
  const std::int64_t elements = range.length() / element_size;
  return {range.begin + part_begin(elements, count, index) * element_size,
          range.begin + part_begin(elements, count, index + 1) * element_size};
}

}  // namespace espalier
