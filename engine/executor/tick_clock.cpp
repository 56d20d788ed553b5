#include "engine/executor/tick_clock.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <string>

namespace espalier::engine {
namespace {

constexpr int anchor_tries = 8;

bool kernel_counts_ticks() {
#if defined(__x86_64__)
  std::ifstream file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  std::string source;
  return static_cast<bool>(file >> source) && source == "tsc";
#else
  return false;
#endif
}

}  // namespace

TickClock::TickClock() : counts_ticks_(kernel_counts_ticks()) {}

ClockAnchor TickClock::anchor() const {
  if (!counts_ticks_) {
    const std::int64_t ns = now_ns();
    return {ns, ns};
  }
  ClockAnchor best;
  std::int64_t least = INT64_MAX;
  for (int i = 0; i < anchor_tries; ++i) {
    const std::int64_t before = now();
    const std::int64_t ns = now_ns();
    const std::int64_t after = now();
    if (after - before >= least) continue;
    least = after - before;
    best = {before + least / 2, ns};
  }
  return best;
}

std::int64_t ns_at(std::int64_t ticks, const ClockAnchor& first, const ClockAnchor& last) {
  if (first.ticks == last.ticks) return first.ns + (ticks - first.ticks);
  const double rate = static_cast<double>(last.ns - first.ns) / static_cast<double>(last.ticks - first.ticks);
  return first.ns + std::llround(static_cast<double>(ticks - first.ticks) * rate);
}

}  // namespace espalier::engine
