#include "schedule/timeline/run_report.h"

#include "schedule/parts.h"

namespace espalier {

double RunReport::algbw() const {
  return elapsed.count > 0 ? static_cast<double>(size.count) / elapsed.seconds() : 0.0;
}

double RunReport::busbw(const Collective& collective) const { return algbw() * to_double(collective.busbw_factor()); }

double RunReport::of_bound(const Rational& time_per_byte, const Collective& collective) const {
  const Rational least = min_time(time_per_byte, collective, size, element_size);
  if (elapsed.count <= 0) return least == 0 ? 1.0 : 0.0;
  return to_double(least * make_rational(picoseconds_per_second) / make_rational(elapsed.count));
}

}  // namespace espalier
