// How near memcpy the reduction kernels run. Rates are bytes read and written per second, so a kernel of one source at
// memory's speed shows 3 bytes for the 2 that a copy of the same size moves.
#include <benchmark/benchmark.h>

#include <string>
#include <vector>

#include "engine/reduction/copy.h"
#include "engine/reduction/reduce.h"

namespace espalier::bench {
namespace {

/// Touched buffers that start at different lines, as separate allocations do.
std::vector<std::vector<std::byte>> make_buffers(std::size_t count, std::size_t bytes) {
  return std::vector<std::vector<std::byte>>(count, std::vector<std::byte>(bytes + 64));
}

void report(benchmark::State& state, std::size_t traffic) {
  state.SetBytesProcessed(static_cast<std::int64_t>(traffic) * static_cast<std::int64_t>(state.iterations()));
}

using Copy = void (*)(void*, const void*, std::size_t);

void bm_copy(benchmark::State& state, Copy copy) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  auto buffers = make_buffers(2, bytes);
  for (auto _ : state) {
    copy(buffers[0].data(), buffers[1].data(), bytes);
    benchmark::ClobberMemory();
  }
  report(state, 2 * bytes);
}

void memcpy_bytes(void* to, const void* from, std::size_t bytes) { __builtin_memcpy(to, from, bytes); }

void bm_reduce(benchmark::State& state, ElementType type, ReduceOperation operation,
               engine::reduction::InstructionSet set) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  const auto source_count = static_cast<std::size_t>(state.range(1));
  auto buffers = make_buffers(1 + source_count, bytes);
  std::vector<const void*> sources;
  for (std::size_t i = 1; i <= source_count; ++i) sources.push_back(buffers[i].data());
  const engine::reduction::ReduceFunction reduce = engine::reduction::find_reduce(type, operation, set);
  const std::size_t elements = bytes / static_cast<std::size_t>(size_of(type));
  for (auto _ : state) {
    reduce(buffers[0].data(), buffers[0].data(), sources.data(), source_count, elements);
    benchmark::ClobberMemory();
  }
  report(state, (2 + source_count) * bytes);
}

void bm_divide(benchmark::State& state, ElementType type) {
  const auto bytes = static_cast<std::size_t>(state.range(0));
  auto buffers = make_buffers(1, bytes);
  const std::size_t elements = bytes / static_cast<std::size_t>(size_of(type));
  for (auto _ : state) {
    engine::reduction::divide_by(type, buffers[0].data(), elements, 8);
    benchmark::ClobberMemory();
  }
  report(state, 2 * bytes);
}

constexpr std::int64_t sizes[] = {64 << 10, 1 << 20, 16 << 20};

void register_copies() {
  constexpr std::int64_t copy_sizes[] = {1 << 10, 64 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20};
  for (std::int64_t bytes : copy_sizes) {
    benchmark::RegisterBenchmark("memcpy", bm_copy, memcpy_bytes)->Arg(bytes);
    benchmark::RegisterBenchmark("copy_bytes", bm_copy, engine::reduction::copy_bytes)->Arg(bytes);
    benchmark::RegisterBenchmark("copy_bytes_uncached", bm_copy, engine::reduction::copy_bytes_uncached)->Arg(bytes);
  }
}

void register_reductions(ElementType type, ReduceOperation operation, engine::reduction::InstructionSet set) {
  const std::string name =
      std::string(to_string(operation)) + "/" + std::string(to_string(type)) + "/" + std::string(to_string(set));
  for (std::int64_t bytes : sizes) {
    for (std::int64_t sources : {1, 3, 7}) {
      benchmark::RegisterBenchmark(name.c_str(), bm_reduce, type, operation, set)->Args({bytes, sources});
    }
  }
}

void register_all() {
  register_copies();
  for (ElementType type : all_element_types) {
    for (ReduceOperation operation : all_reduce_operations) {
      if (operation == ReduceOperation::avg) continue;
      for (engine::reduction::InstructionSet set : engine::reduction::all_instruction_sets) {
        if (engine::reduction::is_supported(set)) register_reductions(type, operation, set);
      }
    }
    const std::string name = "divide_by/" + std::string(to_string(type));
    for (std::int64_t bytes : sizes) {
      benchmark::RegisterBenchmark(name.c_str(), bm_divide, type)->Arg(bytes);
    }
  }
}

}  // namespace
}  // namespace espalier::bench

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  espalier::bench::register_all();
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
