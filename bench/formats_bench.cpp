// Readers and hashes written here, against the libraries that do the same: docs/decisions/0010 has the figures.
#include <benchmark/benchmark.h>

#include <boost/container_hash/hash.hpp>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "base/fnv.h"
#include "planners/planner.h"
#include "schedule/json/json_cursor.h"
#include "schedule/json/schedule_json.h"
#include "topology/yaml/read_topology.h"

namespace espalier::bench {
namespace {

/// The plan of an all_reduce on four DGX H100 boxes, as `plan -o` writes it.
const std::string& plan_text() {
  static const std::string text = [] {
    auto reading = read_topology_file(ESPALIER_SOURCE_DIR "/configs/dgx-h100-x4.yaml");
    if (!reading.topology) std::abort();
    const auto made = planners::plan(
        *reading.topology,
        {.kind = CollectiveKind::all_reduce, .rank_count = static_cast<std::uint32_t>(reading.topology->rank_count())},
        *planners::find_planner("ring"));
    std::ostringstream out;
    if (!made || !write_schedule(out, *made, *reading.topology)) std::abort();
    return out.str();
  }();
  return text;
}

void note_bytes(benchmark::State& state, std::size_t bytes) {
  state.SetBytesProcessed(static_cast<std::int64_t>(bytes) * state.iterations());
}

void json_own(benchmark::State& state) {
  const std::string& text = plan_text();
  for (auto _ : state) {
    JsonCursor cursor(text);
    std::string_view whole;
    if (!cursor.read_raw(whole) || !cursor.at_end()) state.SkipWithError("not read");
    benchmark::DoNotOptimize(whole);
  }
  note_bytes(state, text.size());
}

void json_nlohmann_accept(benchmark::State& state) {
  const std::string& text = plan_text();
  for (auto _ : state) {
    if (!nlohmann::json::accept(text)) state.SkipWithError("not read");
  }
  note_bytes(state, text.size());
}

void json_nlohmann_document(benchmark::State& state) {
  const std::string& text = plan_text();
  for (auto _ : state) benchmark::DoNotOptimize(nlohmann::json::parse(text));
  note_bytes(state, text.size());
}

void plan_own(benchmark::State& state) {
  const std::string& text = plan_text();
  for (auto _ : state) {
    if (!read_plan(text, "plan.json")) state.SkipWithError("not read");
  }
  note_bytes(state, text.size());
}

void hash_fnv(benchmark::State& state) {
  const std::string& text = plan_text();
  for (auto _ : state) {
    Fnv1a hash;
    hash.add_text(text);
    benchmark::DoNotOptimize(hash.value());
  }
  note_bytes(state, text.size());
}

void hash_boost(benchmark::State& state) {
  const std::string& text = plan_text();
  for (auto _ : state) benchmark::DoNotOptimize(boost::hash_range(text.begin(), text.end()));
  note_bytes(state, text.size());
}

BENCHMARK(json_own);
BENCHMARK(json_nlohmann_accept);
BENCHMARK(json_nlohmann_document);
BENCHMARK(plan_own);
BENCHMARK(hash_fnv);
BENCHMARK(hash_boost);

}  // namespace
}  // namespace espalier::bench

BENCHMARK_MAIN();
