// How long a traffic matrix takes to plan on boxes with rails, where nothing is symmetric: `balance` alone, with all
// that `plan` adds to it (verify), and the bound.
//
// Usage: bench_matrix [--benchmark_filter=...]

#include <benchmark/benchmark.h>

#include "planners/blocks/balance.h"
#include "planners/bounds/bound.h"
#include "planners/planner.h"
#include "schedule/traffic/traffic_matrix.h"
#include "topology/generate/generate.h"

namespace espalier::bench {
namespace {

Collective skewed(std::size_t ranks) {
  TrafficMatrix traffic = zipf_traffic(ranks, {.exponent = 0.7, .seed = 3, .experts = 8});
  return *make_collective(CollectiveKind::all_to_all, ranks, std::nullopt, std::move(traffic.blocks));
}

void bm_balance(benchmark::State& state) {
  const Topology topology = *generate_rail_boxes({.boxes = state.range(0)});
  const Collective collective = skewed(topology.rank_count());
  for (auto _ : state) {
    const planners::PlanningProblem problem(topology);  // Nothing is known from the call before.
    benchmark::DoNotOptimize(planners::plan_balance(problem, collective));
  }
}
BENCHMARK(bm_balance)->ArgName("boxes")->Arg(4)->Arg(8)->Arg(40)->Unit(benchmark::kMillisecond);

/// The routes of the machine are known, as they are of the second call on.
void bm_balance_again(benchmark::State& state) {
  const Topology topology = *generate_rail_boxes({.boxes = state.range(0)});
  const Collective collective = skewed(topology.rank_count());
  const planners::PlanningProblem problem(topology);
  for (auto _ : state) benchmark::DoNotOptimize(planners::plan_balance(problem, collective));
}
BENCHMARK(bm_balance_again)->ArgName("boxes")->Arg(4)->Arg(8)->Arg(40)->Unit(benchmark::kMillisecond);

void bm_verified(benchmark::State& state) {
  const Topology topology = *generate_rail_boxes({.boxes = state.range(0)});
  const Collective collective = skewed(topology.rank_count());
  const planners::BundledNetwork network(topology);
  const planners::Planner planner = *planners::find_planner("balance");
  for (auto _ : state) benchmark::DoNotOptimize(planners::plan_unbounded(network, collective, planner));
}
BENCHMARK(bm_verified)->ArgName("boxes")->Arg(4)->Arg(8)->Arg(40)->Unit(benchmark::kMillisecond);

void bm_bound(benchmark::State& state) {
  const Topology topology = *generate_rail_boxes({.boxes = state.range(0)});
  const Collective collective = skewed(topology.rank_count());
  for (auto _ : state) benchmark::DoNotOptimize(planners::compute_bound(topology, collective));
}
BENCHMARK(bm_bound)->ArgName("boxes")->Arg(4)->Arg(8)->Arg(40)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
