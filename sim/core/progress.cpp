#include "sim/core/progress.h"

#include <limits>

#include "base/check.h"

namespace espalier::sim {

void KnownTimes::reset(std::size_t transfers) {
  lines_.assign(transfers, {});
  apart_.clear();
}

std::int64_t& KnownTimes::make_room(Line& line) {
  const std::size_t room = 2 * (std::size_t{line.last_slot} + 1);
  const std::size_t first = apart_.size();
  ESPALIER_CHECK(first + room <= std::numeric_limits<std::uint32_t>::max(), "the chunks under way fit 32 bits");
  apart_.resize(first + room);
  const auto last_slot = static_cast<std::uint32_t>(room - 1);
  for (std::uint32_t chunk = line.known - line.last_slot - 1; chunk < line.known; ++chunk) {
    apart_[first + (chunk & last_slot)] = at(line, chunk);
  }
  line.first_slot = static_cast<std::uint32_t>(first);
  line.last_slot = last_slot;
  return at(line, line.known);
}

}  // namespace espalier::sim
