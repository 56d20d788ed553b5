// What an event costs that NCCL hands to the profiler: start and stop of one proxy step.
#include <benchmark/benchmark.h>
#include <dlfcn.h>
#include <unistd.h>

#include <cstdlib>

#include "nccl_plugins/profiler/interface.h"

namespace espalier::nccl_plugins::profiler {
namespace {

constexpr int events = 1'000'000;

void no_log(LogLevel /*level*/, unsigned long /*subsystem*/, const char* /*file*/, int /*line*/, const char* /*format*/,
            ...) {}

void event(benchmark::State& state) {
  setenv("ESPALIER_PROFILER_FILE", "/nowhere/run", 1);  // Nothing is written.
  setenv("ESPALIER_PROFILER_MAX_EVENTS", "1048576", 1);
  void* const library = dlopen(ESPALIER_NCCL_PROFILER, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return state.SkipWithError(dlerror());
  const auto& plugin = *static_cast<const InterfaceV5*>(dlsym(library, "ncclProfiler_v5"));
  void *context = nullptr, *call = nullptr, *operation_event = nullptr;
  int mask = 0;
  plugin.init(&context, 0xAB, &mask, "bench", 1, 2, 0, no_log);
  DescriptorV5 collective{};
  collective.type = collective_event;
  collective.collective.function = "AllReduce";
  collective.collective.type = "ncclFloat32";
  collective.collective.algorithm = "RING";
  collective.collective.protocol = "SIMPLE";
  plugin.start(context, &call, &collective);
  DescriptorV5 operation{};
  operation.type = proxy_operation_event;
  operation.parent = call;
  operation.proxy_operation = {getpid(), 0, 1, events, 4096, 1};
  plugin.start(context, &operation_event, &operation);
  DescriptorV5 step{};
  step.type = proxy_step_event;
  step.parent = operation_event;
  for (auto _ : state) {
    void* started = nullptr;
    plugin.start(context, &started, &step);
    plugin.stop(started);
  }
  plugin.finalize(context);
  dlclose(library);
}
BENCHMARK(event)->Iterations(events);

}  // namespace
}  // namespace espalier::nccl_plugins::profiler

BENCHMARK_MAIN();
