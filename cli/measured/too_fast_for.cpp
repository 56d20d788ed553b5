#include "cli/measured/too_fast_for.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "base/format_units.h"
#include "cli/flags/inputs.h"
#include "planners/bounds/bound.h"

namespace espalier::cli {
namespace {

/// Measured over the least time that is possible, at the size where that is smallest.
struct Tightest {
  MeasuredTime time;
  double least = 0;  ///< Seconds.
  [[nodiscard]] bool is_too_fast() const {
    constexpr double rounding = 0.995;  // nccl-tests prints four digits, and sizes are whole elements.
    return time.seconds < rounding * least;
  }
};

Tightest find_tightest(double per_byte, std::span<const MeasuredTime> times) {
  Tightest tightest;
  double smallest = 0;
  for (const MeasuredTime& time : times) {
    const double least = per_byte * static_cast<double>(time.size.count);
    if (!(least > 0) || (tightest.least > 0 && time.seconds / least >= smallest)) continue;
    smallest = time.seconds / least;
    tightest = {time, least};
  }
  return tightest;
}

/// Shipped machines that could have been that fast.
std::vector<std::string> machines_that_could(const Console& console, const Topology& machine,
                                             const Collective& collective, std::span<const MeasuredTime> times) {
  std::vector<std::string> relatives, others;
  Console silent = console;
  silent.quiet = true;
  for (const std::string& name : shipped_machines()) {
    if (name == machine.name()) continue;
    TopologyFlags flags;
    flags.argument = name;
    const auto other = load_machine(silent, flags);
    if (!other || other->topology.rank_count() != machine.rank_count()) continue;
    const auto bound = planners::compute_bound(other->topology, collective);
    if (!bound || find_tightest(to_double(bound->time_per_byte), times).is_too_fast()) continue;
    const bool is_relative = name.starts_with(machine.name()) || machine.name().starts_with(name);
    (is_relative ? relatives : others).push_back(name);
  }
  return relatives.empty() ? others : relatives;
}

}  // namespace

void warn_of_too_fast(const Console& console, const Topology& machine, const Collective& collective,
                      std::span<const MeasuredTime> times) {
  const auto bound = planners::compute_bound(machine, collective);
  if (!bound) return;
  const Tightest tightest = find_tightest(to_double(bound->time_per_byte), times);
  if (!tightest.is_too_fast()) return;
  const auto text_of = [](double seconds) { return format_duration(Picoseconds(std::llround(seconds * 1e12))); };
  const auto could = machines_that_could(console, machine, collective, times);
  console.warn(
      fmt::format("faster than {} can be: {} of {} took {}, and no schedule there takes less than {}{}", machine.name(),
                  to_string(collective.kind), format_size(tightest.time.size), text_of(tightest.time.seconds),
                  text_of(tightest.least),
                  could.empty() ? std::string() : fmt::format("; it is possible on {}", fmt::join(could, ", "))));
}

}  // namespace espalier::cli
