#include <benchmark/benchmark.h>

#include "bench/rings.h"
#include "sim/simulate.h"

namespace espalier {
namespace {

/// Ring all-reduce of 64 MiB; the rate is in chunk steps per second, setting up included.
void bm_ring_all_reduce(benchmark::State& state) {
  const auto ranks = static_cast<std::size_t>(state.range(0));
  const Topology topology = bench::make_ring_topology(ranks);
  const Schedule schedule = bench::make_ring_all_reduce(ranks);
  const Bytes shard{(std::int64_t{64} << 20) / state.range(0)};
  const sim::Options options{Bytes{std::int64_t{64} << 20}, Bytes{shard.count / state.range(1)}, 4, false, false};
  std::int64_t events = 0;
  for (auto _ : state) {
    const auto report = sim::simulate(schedule, topology, options);
    events += static_cast<std::int64_t>(report->events);
    benchmark::DoNotOptimize(report->elapsed);
  }
  state.SetItemsProcessed(events);
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

}  // namespace
}  // namespace espalier

BENCHMARK_MAIN();
