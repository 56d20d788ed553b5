#include "diagnose/fault.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/format_units.h"
#include "base/units.h"
#include "diagnose/setting.h"
#include "topology/slow.h"
#include "topology/without.h"

namespace espalier::diagnose {

std::string_view name_of(Fault::Kind kind) {
  switch (kind) {
    case Fault::Kind::slow: return "slow";
    case Fault::Kind::gone: return "gone";
    case Fault::Kind::late: return "late";
    case Fault::Kind::setting: break;
  }
  return "setting";
}

std::string describe(const Fault& fault) {
  if (fault.kind == Fault::Kind::late)
    return "a rank that starts " + format_duration(Picoseconds(std::llround(fault.delay * 1e12))) + " late";
  if (fault.kind == Fault::Kind::gone) return fault.part + " gone";
  if (fault.kind == Fault::Kind::setting) return fault.part;
  return fmt::format("{} at {:.0f} % of its rate", fault.part, 100 * fault.rate);
}

Result<Topology> with_faults(const Topology& machine, std::span<const Fault> faults) {
  std::vector<Fault> sorted(faults.begin(), faults.end());
  std::ranges::stable_sort(sorted, std::ranges::greater(), &Fault::rate);  // The slowest counts where they meet.
  std::vector<std::string> gone, slow;
  for (const Fault& fault : sorted) {
    if (fault.kind == Fault::Kind::gone) gone.push_back(fault.part);
    if (fault.kind == Fault::Kind::slow && fault.rate < 1)
      slow.push_back(fmt::format("{}={:.6f}", fault.part, fault.rate));
  }
  auto faulty = slow_down(machine, slow);
  if (faulty && !gone.empty()) faulty = without(*faulty, gone);
  for (const Fault& fault : faults) {
    if (faulty && fault.kind == Fault::Kind::setting) faulty = with_setting(*faulty, fault.part);
  }
  return faulty;
}

double delay_of(std::span<const Fault> faults) {
  double longest = 0;
  for (const Fault& fault : faults) longest = std::max(longest, fault.delay);
  return longest;
}

}  // namespace espalier::diagnose
