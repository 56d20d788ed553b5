// How long ranks take to meet, to exchange, and to learn of a failure. Ranks are threads of this process, so that one
// clock times them all; on fewer cores than ranks the scheduler is part of the result.

#include <benchmark/benchmark.h>
#include <poll.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <numeric>
#include <thread>
#include <vector>

#include "engine/rendezvous/control_plane.h"

namespace {

using namespace espalier;
using Clock = std::chrono::steady_clock;
using Planes = std::vector<std::unique_ptr<engine::rendezvous::ControlPlane>>;

template <class Body>
void on_each_rank(std::uint32_t world, Body body) {
  std::vector<std::thread> threads;
  for (std::uint32_t rank = 0; rank < world; ++rank) threads.emplace_back([&body, rank] { body(rank); });
  for (std::thread& thread : threads) thread.join();
}

Planes join_all(std::uint32_t world) {
  auto listener = engine::rendezvous::listen_on("127.0.0.1", 0);
  Planes planes(world);
  on_each_rank(world, [&, port = listener->port](std::uint32_t rank) {
    engine::rendezvous::Options options;
    options.host = "127.0.0.1";
    options.port = port;
    options.rank = rank;
    options.world = world;
    options.secret = "a secret of the benchmark";
    if (rank == 0) options.listener = std::move(*listener);
    auto plane = engine::rendezvous::ControlPlane::join(std::move(options));
    if (plane) planes[rank] = std::move(*plane);
  });
  return planes;
}

double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

void join(benchmark::State& state) {
  for (auto _ : state) {
    const auto begin = Clock::now();
    const Planes planes = join_all(static_cast<std::uint32_t>(state.range(0)));
    state.SetIterationTime(seconds_since(begin));
  }
}
BENCHMARK(join)->Arg(2)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1);

void barrier(benchmark::State& state) {
  const auto world = static_cast<std::uint32_t>(state.range(0));
  const Planes planes = join_all(world);
  std::vector<std::uint32_t> all(world);
  std::iota(all.begin(), all.end(), 0U);
  constexpr int rounds = 50;
  for (auto _ : state) {
    const auto begin = Clock::now();
    on_each_rank(world, [&](std::uint32_t rank) {
      for (int i = 0; i < rounds; ++i) (void)planes[rank]->barrier("b", all, std::chrono::seconds(10));
    });
    state.SetIterationTime(seconds_since(begin));
  }
  state.counters["each"] =
      benchmark::Counter(rounds, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(barrier)->Arg(2)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMillisecond)->MinTime(1);

/// From abort on the last rank until every rank's has_failed is true.
void failure_notice(benchmark::State& state) {
  const auto world = static_cast<std::uint32_t>(state.range(0));
  for (auto _ : state) {
    const Planes planes = join_all(world);
    const auto begin = Clock::now();
    planes[world - 1]->abort("benchmark");
    for (const auto& plane : planes) {
      pollfd entry{plane->failure_fd(), POLLIN, 0};
      poll(&entry, 1, 10000);
    }
    state.SetIterationTime(seconds_since(begin));
  }
}
BENCHMARK(failure_notice)->Arg(8)->Arg(64)->UseManualTime()->Unit(benchmark::kMicrosecond)->Iterations(30);

void clock_error(benchmark::State& state) {
  const Planes planes = join_all(2);
  double error_ns = 0;
  for (auto _ : state) {
    const auto clock = planes[1]->estimate_clock(std::chrono::seconds(10));
    if (clock) error_ns = static_cast<double>(clock->error_ns);
  }
  state.counters["error_ns"] = error_ns;
}
BENCHMARK(clock_error)->UseRealTime()->Unit(benchmark::kMillisecond)->MinTime(0.5);

}  // namespace

BENCHMARK_MAIN();
