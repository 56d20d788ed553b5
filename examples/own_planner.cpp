#include <espalier/forecast.h>
#include <espalier/literals.h>
#include <espalier/planner.h>
#include <espalier/simulate.h>
#include <espalier/value.h>
#include <fmt/format.h>

#include <cstdlib>

// A planner of one's own, beside what Espalier's reach: own_planner [MACHINE [TREES]]. It plans an all_gather by TREES
// trees from each rank, each of cheapest paths that keep off the links of the trees before it.
namespace {

using namespace espalier;

Result<Schedule> plan_by_trees(const planners::PlanningProblem& problem, const Collective& collective, int trees) {
  if (collective.kind != CollectiveKind::all_gather) {
    return fail(ErrorCode::unsupported, "this planner makes all_gathers alone");
  }
  constexpr std::uint32_t routes_kept = 4;  // From rank to rank, where several are as cheap.
  const auto& graph = problem.logical_graph(Direction::forward, Bytes{}, routes_kept);
  planners::LinkLoads loads(problem.topology().link_count(), 0);
  Forest forest;
  for (int tree = 0; tree < trees; ++tree) {
    for (std::uint32_t root = 0; root < collective.rank_count; ++root) {
      forest.out_trees.push_back(planners::cheapest_tree(graph, Rank(root), false, 1, loads));
    }
  }
  return schedule_from_trees(collective, problem.topology(), "trees", forest);
}

}  // namespace

int main(int argc, char** argv) {
  using namespace espalier::literals;
  const Machine machine = value(read_machine(argc > 1 ? argv[1] : "dgx1v-nvlink"));
  const int trees = argc > 2 ? std::atoi(argv[2]) : 6;
  const Topology& topology = machine.topology;
  const planners::Planner planner{"trees", "trees of cheapest paths",
                                  [trees](const auto& problem, const auto& collective, const auto&) {
                                    return plan_by_trees(problem, collective, trees);
                                  }};
  const Collective collective = value(
      make_collective(CollectiveKind::all_gather, static_cast<std::uint32_t>(topology.rank_count()), std::nullopt));
  // Verified, and with the bound beside it.
  const Schedule schedule = value(planners::plan(topology, collective, planner));
  const auto run = value(sim::simulate(schedule, topology, {.size = 1_GiB, .chunk = 64_KiB}));

  const Forecast forecast = value(Forecast::make(machine, "all_gather", {.profile = "ideal"}));
  const Prediction best = value(forecast.best(1_GiB));
  fmt::print("trees: {:.1f} GB/s busbw, {}: {:.1f}, bound: {:.1f}\n", run.busbw(collective) / 1e9, best.algorithm,
             best.busbw / 1e9, forecast.busbw_limit() / 1e9);
}
