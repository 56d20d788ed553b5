#include "cli/measured/too_fast_for.h"

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "base/format_units.h"
#include "cli/jobs/predict_rows.h"
#include "planners/bounds/bound.h"

namespace espalier::cli {

std::optional<ImpossibleTime> find_impossible(const Topology& machine, const compare::Measurements& measured) {
  constexpr double rounding = 0.995;  // nccl-tests prints four digits, and sizes are whole elements.
  std::map<std::string, double> per_byte;
  std::optional<ImpossibleTime> worst;
  double smallest = rounding;
  for (const compare::Measurement& row : measured.rows) {
    if (row.size.count < 1 || !(row.seconds > 0)) continue;
    const auto [known, is_new] = per_byte.emplace(row.collective, 0);
    if (is_new) {
      auto collective = default_collective(row.collective, machine);
      if (collective) collective = with_shares_of(measured, *std::move(collective));
      const auto bound =
          collective ? planners::compute_bound(machine, *collective) : tl::unexpected(collective.error());
      if (bound) known->second = to_double(bound->time_per_byte);
    }
    const double least = known->second * static_cast<double>(row.size.count);
    if (!(least > 0) || row.seconds / least >= smallest) continue;
    smallest = row.seconds / least;
    worst = ImpossibleTime{row.collective, row.size, row.seconds, least};
  }
  return worst;
}

std::string describe(const ImpossibleTime& time) {
  const auto text_of = [](double seconds) { return format_duration(Picoseconds(std::llround(seconds * 1e12))); };
  return fmt::format("{} of {} took {}, and no schedule there takes less than {}", time.collective,
                     format_size(time.size), text_of(time.seconds), text_of(time.min_seconds));
}

}  // namespace espalier::cli
