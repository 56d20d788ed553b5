#include "planners/plan_context.h"

namespace espalier::planners {

std::function<void(const ColumnRound&)> progress_callback(const PlanContext& context, std::string_view program,
                                                          double bytes_per_unit) {
  if (!context.on_round) return {};
  return [&context, program, bytes_per_unit](const ColumnRound& round) {
    context.on_round(
        {program, round.round, round.columns, round.throughput * bytes_per_unit, round.limit * bytes_per_unit});
  };
}

}  // namespace espalier::planners
