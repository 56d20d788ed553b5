#include <benchmark/benchmark.h>

#include "bench/rings.h"
#include "planners/planner.h"
#include "sim/contention_free/walk_ring.h"
#include "sim/simulate.h"
#include "topology/generate/generate.h"

namespace espalier::bench {
namespace {

/// Runs a simulation again and again and counts its chunk steps.
template <class Simulate>
void measure(benchmark::State& state, Simulate simulate) {
  std::int64_t events = 0;
  for (auto _ : state) {
    const sim::Report report = simulate();
    events += static_cast<std::int64_t>(report.events);
    benchmark::DoNotOptimize(report.elapsed);
  }
  state.SetItemsProcessed(events);
}

constexpr Bytes size{std::int64_t{64} << 20};

/// Ring all-reduce of 64 MiB; the rate is in chunk steps per second, setting up included.
void bm_ring_all_reduce(benchmark::State& state) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const Topology topology = bench::make_ring_topology(ranks);
  const Schedule schedule = bench::make_ring_all_reduce(ranks);
  const sim::Options options{size, Bytes{size.count / state.range(0) / state.range(1)}, 4};
  measure(state, [&] { return *sim::simulate(schedule, topology, options); });
}
BENCHMARK(bm_ring_all_reduce)
    ->ArgNames({"ranks", "chunks"})
    ->Args({8, 1})
    ->Args({64, 1})
    ->Args({256, 1})
    ->Args({1024, 1})
    ->Args({256, 16})
    ->Args({1024, 16})
    ->Unit(benchmark::kMillisecond);

/// The same with 2 % of jitter on every hop: no two of them take the same time.
void bm_ring_with_jitter(benchmark::State& state) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const Topology topology = bench::make_ring_topology(ranks);
  const Schedule schedule = bench::make_ring_all_reduce(ranks);
  sim::Options options{size, size, 4};
  options.conditions.jitter_ppm = 20'000;
  measure(state, [&] { return *sim::simulate(schedule, topology, options); });
}
BENCHMARK(bm_ring_with_jitter)->ArgName("ranks")->Arg(256)->Arg(1024)->Unit(benchmark::kMillisecond);

/// A broadcast of 1 GiB down a chain of 64 ranks: chunks go as runs. Behind a slower link they queue and are held back;
/// with jitter no two are alike, and each is worked out.
void bm_chain_broadcast(benchmark::State& state) {
  constexpr std::size_t ranks = 64;
  const Topology topology = bench::make_chain_topology(ranks, {state.range(1) != 0 ? 60'000'000'000 : 100'000'000'000});
  const Schedule schedule = bench::make_chain_broadcast(ranks);
  const auto simulator = sim::Simulator::make(schedule, topology);
  constexpr std::int64_t gibibyte = std::int64_t{1} << 30;
  sim::Options options{{gibibyte}, {gibibyte / state.range(0)}, 4};
  options.conditions.jitter_ppm = state.range(2) != 0 ? 20'000 : 0;
  measure(state, [&] { return *simulator->run(options); });
}
BENCHMARK(bm_chain_broadcast)
    ->ArgNames({"chunks", "slow", "jitter"})
    ->Args({1024, 0, 0})
    ->Args({1024, 1, 0})
    ->Args({1024, 0, 1})
    ->Args({16384, 0, 0})
    ->Args({16384, 1, 0})
    ->Args({16384, 0, 1})
    ->Unit(benchmark::kMillisecond);

/// A ring that is walked; with jitter, so that every place has to be worked out.
void bm_walked_ring(benchmark::State& state) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const Topology topology = bench::make_ring_topology(ranks);
  const RingWalk walk = bench::make_ring_walk(ranks);
  sim::Options options{size, size, 4};
  options.conditions.jitter_ppm = state.range(1) != 0 ? 20'000 : 0;
  measure(state, [&] { return sim::simulate_ring(walk, topology, options)->report; });
}
BENCHMARK(bm_walked_ring)
    ->ArgNames({"ranks", "jitter"})
    ->Args({256, 0})
    ->Args({1024, 0})
    ->Args({4096, 0})
    ->Args({16384, 0})
    ->Args({256, 1})
    ->Args({1024, 1})
    ->Args({4096, 1})
    ->Args({16384, 1})
    ->Iterations(1)
    ->Unit(benchmark::kMillisecond);

/// All blocks at once through leaf and spine switches, whose links many of them share: the event loop at work.
void bm_all_to_all(benchmark::State& state) {
  const auto topology = generate_leaf_spine({state.range(0) / 16, 16, 4, 4, {}, {1'000'000}});
  const auto collective = make_collective(CollectiveKind::all_to_all, topology->rank_count(), std::nullopt);
  const auto schedule = planners::plan_unbounded(*topology, *collective, *planners::find_planner("pairwise"));
  const auto simulator = sim::Simulator::make(*schedule, *topology);
  const sim::Options options{size, Bytes{size.count / state.range(0) / state.range(1)}, 4};
  measure(state, [&] { return *simulator->run(options); });
}
BENCHMARK(bm_all_to_all)
    ->ArgNames({"ranks", "chunks"})
    ->Args({128, 1})
    ->Args({256, 1})
    ->Args({512, 1})
    ->Args({1024, 1})
    ->Args({128, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
