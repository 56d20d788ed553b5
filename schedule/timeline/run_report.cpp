#include "schedule/timeline/run_report.h"

namespace espalier {

double RunReport::algbw() const {
  return elapsed.count > 0 ? static_cast<double>(size.count) / elapsed.seconds() : 0.0;
}

double RunReport::busbw(const Collective& collective) const { return algbw() * to_double(collective.busbw_factor()); }

double RunReport::of_bound(const Rational& time_per_byte) const {
  if (elapsed.count <= 0) return time_per_byte == 0 ? 1.0 : 0.0;
  const Rational bound_ps = time_per_byte * make_rational(size.count) * make_rational(picoseconds_per_second);
  return to_double(bound_ps / make_rational(elapsed.count));
}

}  // namespace espalier
