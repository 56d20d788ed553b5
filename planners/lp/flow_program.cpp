#include "planners/lp/flow_program.h"

#include <utility>

#include "base/check.h"

namespace espalier::planners {

FlowDemands flow_demands(CollectiveKind kind, std::uint32_t rank_count) {
  const bool to_all = kind == CollectiveKind::all_to_all;
  ESPALIER_CHECK(to_all || kind == CollectiveKind::send_recv, "this collective is no flow of distinct blocks");
  FlowDemands flows{{}, to_all, to_all ? rank_count : 1, to_all || rank_count == 2};
  for (std::uint32_t source = 0; source < rank_count; ++source) {
    FlowDemand& demand = flows.demands.emplace_back(FlowDemand{source, {}, 1});
    for (std::uint32_t step = 1; step < (to_all ? rank_count : 2); ++step) {
      demand.targets.push_back((source + step) % rank_count);
    }
  }
  return flows;
}

FlowProgram solve_flow(std::shared_ptr<const OrbitGraph> orbits, const FlowDemands& demands, const ColumnLimits& limits,
                       const PlanContext& context) {
  FlowProgram program{std::move(orbits), {}, {}, 0};
  const Orbits& ranks = program.orbits->ranks;
  for (std::size_t orbit = 0; orbit < ranks.count(); ++orbit) {
    program.demands.push_back(demands.demands[ranks.first[orbit]]);
    program.demands.back().copies = ranks.size[orbit];
  }
  const FlowOracle oracle(*program.orbits, program.demands);
  ColumnLimits told = limits;
  const double unit = program.orbits->graph.unit.convert_to<double>();
  told.on_round = progress_callback(context, demands.keeps_symmetry ? "all_to_all" : "send_recv",
                                    unit * static_cast<double>(demands.blocks_per_buffer));
  program.solution = generate_columns(oracle.program(), oracle, told);
  program.time_per_byte = 1 / (program.solution.limit * program.orbits->graph.unit * demands.blocks_per_buffer);
  return program;
}

}  // namespace espalier::planners
