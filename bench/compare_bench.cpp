// How the time and the memory of holding two timelines against each other grow with their spans, for spans as runs give
// them and for shapes that once took quadratic time. The exponent is Google Benchmark's "BigO"; run
// build/bench/bench/bench_compare.

#include <benchmark/benchmark.h>

#include <string>

#include "base/random.h"
#include "compare/compare_timelines.h"

namespace espalier::bench {
namespace {

enum class Shape : std::int64_t {
  run,        ///< A send, its wire and its arrival per chunk on 64 lanes.
  one_chunk,  ///< All spans are of one chunk: of a run whose iterations count anew, all of one lane.
  one_moment  ///< Nothing takes time: all spans begin and end at once.
};

Timeline make_timeline(Shape shape, std::size_t spans) {
  constexpr std::size_t lanes = 64;
  Timeline timeline;
  for (std::size_t i = 0; i < lanes; ++i) {
    timeline.rank_names.push_back("gpu" + std::to_string(i));
    timeline.link_names.push_back("link" + std::to_string(i));
  }
  Random random(1);
  timeline.spans.reserve(spans + 2);
  for (std::size_t i = 0; timeline.spans.size() < spans; ++i) {
    const auto lane = static_cast<std::uint32_t>(shape == Shape::run ? i % lanes : 0);
    const std::size_t step = shape == Shape::run ? i / lanes : i;
    const std::int64_t begin =
        shape == Shape::one_moment ? 0 : static_cast<std::int64_t>(step * 80'000 + random.below(1000));
    const std::int64_t length = shape == Shape::one_moment ? 0 : 79'000;
    const TransferId transfer(shape == Shape::one_chunk ? 0 : i / 16);
    const auto chunk = static_cast<std::uint32_t>(shape == Shape::one_chunk ? 0 : i % 16);
    for (const Phase phase : {Phase::send, Phase::wire, Phase::recv}) {
      timeline.spans.push_back({lane, transfer, chunk, phase, {begin}, {begin + length}});
    }
  }
  timeline.spans.resize(spans);
  return timeline;
}

void find_chain(benchmark::State& state, Shape shape) {
  const Timeline timeline = make_timeline(shape, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(compare::find_critical_chain(timeline).size());
  state.SetComplexityN(state.range(0));
}

void compare(benchmark::State& state, Shape shape) {
  const Timeline timeline = make_timeline(shape, static_cast<std::size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(compare::compare_timelines(timeline, timeline).phases.size());
  state.SetComplexityN(state.range(0));
}

void at_sizes(benchmark::internal::Benchmark* bench) {
  bench->RangeMultiplier(10)->Range(10'000, 1'000'000)->Complexity()->Unit(benchmark::kMillisecond);
}

BENCHMARK_CAPTURE(find_chain, run, Shape::run)->Apply(at_sizes);
BENCHMARK_CAPTURE(find_chain, one_chunk, Shape::one_chunk)->Apply(at_sizes);
BENCHMARK_CAPTURE(find_chain, one_moment, Shape::one_moment)->Apply(at_sizes);
BENCHMARK_CAPTURE(compare, run, Shape::run)->Apply(at_sizes);
BENCHMARK_CAPTURE(compare, one_chunk, Shape::one_chunk)->Apply(at_sizes);
BENCHMARK_CAPTURE(compare, one_moment, Shape::one_moment)->Apply(at_sizes);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
