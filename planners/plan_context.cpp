#include "planners/plan_context.h"

namespace espalier {

std::function<void(const PatternRound&)> teller(const PlanContext& context, std::string_view program,
                                                double bytes_per_unit) {
  if (!context.on_round) return {};
  return [&context, program, bytes_per_unit](const PatternRound& round) {
    context.on_round(
        {program, round.round, round.columns, round.throughput * bytes_per_unit, round.limit * bytes_per_unit});
  };
}

}  // namespace espalier
