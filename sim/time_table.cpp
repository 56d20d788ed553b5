#include "sim/time_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace espalier::sim {

Result<TimeTable> TimeTable::make(std::vector<Point> points) {
  if (points.empty()) return fail(ErrorCode::invalid_input, "a table of times has no points");
  std::int64_t before = 0;
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].size.count <= before) {
      return fail(ErrorCode::invalid_input, "sizes of a table of times do not rise",
                  "sort them, each once, from above zero");
    }
    before = points[i].size.count;
    if (i > 0) points[i].time = std::max(points[i].time, points[i - 1].time);
  }
  return TimeTable(std::move(points));
}

Picoseconds TimeTable::at(Bytes size) const {
  const auto above = std::ranges::upper_bound(points_, size, {}, &Point::size);
  if (above == points_.begin() || points_.size() == 1) return points_.front().time;
  const Point& high = above == points_.end() ? points_.back() : *above;
  const Point& low = *(&high - 1);
  const double part =
      static_cast<double>(size.count - low.size.count) / static_cast<double>(high.size.count - low.size.count);
  const double time =
      static_cast<double>(low.time.count) + part * static_cast<double>(high.time.count - low.time.count);
  constexpr double most = 9.2e18;  // Below what 64 bits hold.
  return Picoseconds{static_cast<std::int64_t>(std::llround(std::min(time, most)))};
}

}  // namespace espalier::sim
