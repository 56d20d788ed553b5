#include "planners/lp/flow_program.h"

#include <utility>

#include "base/check.h"

namespace espalier::planners {

namespace {

FlowDemands matrix_demands(const Collective& collective) {
  FlowDemands flows{{}, false, collective.largest_line(), false};
  for (std::uint32_t source = 0; source < collective.rank_count; ++source) {
    FlowDemand demand{source, {}, 1, {}};
    for (std::uint32_t step = 1; step < collective.rank_count; ++step) {
      const std::uint32_t target = (source + step) % collective.rank_count;
      const std::int64_t block = collective.block(Rank(source), Rank(target));
      if (block == 0) continue;
      demand.targets.push_back(target);
      demand.amounts.push_back(block);
    }
    if (!demand.targets.empty()) flows.demands.push_back(std::move(demand));
  }
  return flows;
}

}  // namespace

FlowDemands flow_demands(const Collective& collective) {
  if (collective.has_matrix()) return matrix_demands(collective);
  const std::uint32_t rank_count = collective.rank_count;
  const bool to_all = collective.kind == CollectiveKind::all_to_all;
  ESPALIER_CHECK(to_all || collective.kind == CollectiveKind::send_recv, "this is no flow of distinct blocks");
  FlowDemands flows{{}, to_all, to_all ? std::int64_t{rank_count} : 1, to_all || rank_count == 2};
  for (std::uint32_t source = 0; source < rank_count; ++source) {
    FlowDemand& demand = flows.demands.emplace_back(FlowDemand{source, {}, 1, {}});
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
  if (demands.keeps_symmetry) {
    for (std::size_t orbit = 0; orbit < ranks.count(); ++orbit) {
      program.demands.push_back(demands.demands[ranks.first[orbit]]);
      program.demands.back().copies = ranks.size[orbit];
    }
  } else {
    program.demands = demands.demands;
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
