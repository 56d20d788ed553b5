#include "schedule/trees/coarse_units.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "schedule/parts.h"

namespace espalier {

Schedule with_coarser_units(Schedule schedule, std::int64_t most) {
  if (schedule.units <= most) return schedule;
  const BufferParts parts(schedule.collective, schedule.units);
  std::int64_t common = schedule.units;  // of all ends of parts
  for (std::int64_t part = 0; part < parts.count(); ++part) common = std::gcd(common, parts.begin(part));
  const std::int64_t least = schedule.units / common;
  const std::int64_t units = most / least * least;
  if (units == 0) return schedule;
  const auto place = [&](std::int64_t offset) {
    return static_cast<std::int64_t>(static_cast<__int128>(offset) * units / schedule.units);
  };
  std::vector<Slice> slices = schedule.slices;
  for (Slice& slice : slices) {
    const std::int64_t begin = place(slice.offset);
    slice.length = place(slice.offset + slice.length) - begin;
    slice.offset = begin;
  }
  if (std::ranges::any_of(slices, [](const Slice& slice) { return slice.length == 0; })) return schedule;
  schedule.slices = std::move(slices);
  schedule.units = units;
  return schedule;
}

}  // namespace espalier
