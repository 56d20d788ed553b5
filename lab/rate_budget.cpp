#include "lab/rate_budget.h"

#include <algorithm>

namespace espalier::lab {

Rational choose_scale(const Topology& topology, unsigned cores) {
  BigInteger total = 0;
  std::int64_t fastest = 0;
  for (const Link& link : topology.links()) {
    total += link.bandwidth().bytes_per_second;
    fastest = std::max(fastest, link.bandwidth().bytes_per_second);
  }
  const BigInteger budget = BigInteger(budget_per_core.bytes_per_second) * std::max(cores, 1U);
  const auto fits = [&](const Rational& factor) {
    return factor * total <= budget && factor * fastest <= fastest_link.bytes_per_second;
  };
  Rational decade = 1;
  for (;;) {
    for (const Rational& step : {Rational(1), Rational(1, 2), Rational(1, 5)}) {
      if (fits(decade * step)) return decade * step;
    }
    decade /= 10;
  }
}

}  // namespace espalier::lab
