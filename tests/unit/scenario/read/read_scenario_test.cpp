#include "scenario/read/read_scenario.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "compute/gpu.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "tests/support/files/schema_keys.h"
#include "tests/support/recorded_messages.h"
#include "tests/unit/scenario/star.h"
#include "topology/yaml/read_topology.h"

namespace espalier::scenario {
namespace {

const std::string source = ESPALIER_SOURCE_DIR;

ScenarioReading read(const std::string& text, std::size_t ranks = 4) {
  ScenarioOptions options;
  options.topology = test::star(ranks);
  return read_scenario_text("espalier_scenario: 1\n" + text, "test", std::nullopt, options);
}

Scenario accept(const std::string& text, std::size_t ranks = 4) {
  ScenarioReading reading = read(text, ranks);
  for (const Diagnostic& diagnostic : reading.diagnostics) ADD_FAILURE() << render(diagnostic, false);
  return reading.scenario ? *std::move(reading.scenario)
                          : Scenario{"", test::star(ranks), {}, {}, {}, {}, {}, {}, 0, {}};
}

TEST(ReadScenario, MakesCallsOfCollectives) {
  const Scenario scenario = accept(R"(
groups: {left: "r[0-1]", pairs: {of: 2}, stripes: {across: 2}}
collectives:
  - {name: a, collective: all_reduce, group: left, size: 1 MiB, repeat: 2, gap: 5 us}
  - {collective: broadcast, size: 64 KiB, root: r2, type: bfloat16, algorithm: tree, start: 1 us}
  - {collective: all_gather, group: pairs, size: 8 B}
  - {collective: all_gather, group: stripes, size: 8 B}
)");
  const Job& job = scenario.job;
  ASSERT_EQ(job.calls().size(), 2U + 1U + 2U + 2U);
  EXPECT_EQ(job.calls()[0].size.count, 1 << 20);
  EXPECT_EQ(job.calls()[2].root, Rank(2));
  EXPECT_EQ(job.calls()[2].element_size, 2);
  EXPECT_EQ(job.label(job.calls()[2].planner), "tree");
  EXPECT_EQ(job.ranks(job.calls()[6].group)[1], Rank(3));
  // 2 ranks: a call, a gap, a call; 4 ranks: a start and a call; 2 x 2 ranks twice.
  EXPECT_EQ(job.tasks().size(), 2U * 3 + 4 * 2 + 4 + 4);
}

TEST(ReadScenario, GossipAndCompressionTakeThePlaceOfAnAllReduce) {
  const Scenario scenario = accept(R"(
collectives:
  - {name: mix, collective: all_reduce, size: 1 MiB, gossip: {accuracy: 1%, graph: ring}, repeat: 2}
  - {name: thin, collective: all_reduce, size: 1 MiB, compression: {low_rank: 4}}
)");
  // A ring of four leaves a third a round: 5 rounds to a hundredth, of eight messages each, twice; and P and Q.
  EXPECT_EQ(scenario.job.calls().size(), 2U * 5 * 8 + 2);
  ASSERT_EQ(scenario.averaged.size(), 2U);
  EXPECT_EQ(scenario.averaged[0].vectors.size(), 2U);
  EXPECT_EQ(scenario.averaged[0].vectors[0].rounds, 5);
  ASSERT_EQ(scenario.other.calls().size(), 3U);
  for (const Call& call : scenario.other.calls()) EXPECT_EQ(call.kind, CollectiveKind::all_reduce);
}

TEST(ReadScenario, TrainingSendsTheFactorsOfItsMatrices) {
  const std::string step =
      "training: {layers: 2, hidden: 64, heads: 4, sequence: 16, batch: 4, flops: 1 TFLOP/s, utilisation: 1, "
      "compression: ";
  const Scenario scenario = accept(step + "{low_rank: 2}}");
  // A layer of width h: four matrices h x h, one h x 4 h and one 4 h x h: rows and columns add up to 9 h each.
  ASSERT_EQ(scenario.job.calls().size(), 2U);
  EXPECT_EQ(scenario.job.calls()[0].size.count, 2 * 2 * 9 * 64 * 2);  // rank, layers, rows, bfloat16
  EXPECT_EQ(scenario.job.calls()[1].size.count, 2 * 2 * 9 * 64 * 2);
  ASSERT_EQ(scenario.other.calls().size(), 1U);
  EXPECT_EQ(scenario.other.calls()[0].size.count, 2 * 12 * 64 * 64 * 2);
}

TEST(ReadScenario, KnowsCircumstances) {
  const Scenario scenario = accept(R"(
seed: 9
chunk: 64 KiB
endpoints: {protocol: ll128, launch: 5 us, copy_engines: 2}
jitter: {hops: 0.02, compute: 0.1}
collectives: [{collective: all_reduce, size: 1 MiB}]
background: [{pairs: 3, size: 1 MiB, load: 0.25}]
stragglers: [{ranks: "r[0,2]", compute: 1.5, start: 3 us}]
events:
  - {at: 1 ms, link: r0-hub, down: true}
  - {at: 2 ms, link: r1>hub, rate: 0.5, for: 1 ms, every: 4 ms, times: 2}
replan: {detection: 10 ms}
)");
  EXPECT_EQ(scenario.settings.chunk.count, 65'536);
  EXPECT_EQ(scenario.settings.endpoints,
            (sim::Endpoints{.payload_ppm = 937'500, .launch = {5'000'000}, .copy_engines = 2}));
  const Disturbances& disturbances = scenario.disturbances;
  EXPECT_EQ(disturbances.seed, 9U);
  EXPECT_EQ(disturbances.conditions.jitter_ppm, 20'000);
  EXPECT_EQ(disturbances.compute_jitter_ppm, 100'000);
  EXPECT_EQ(disturbances.background.at(0).load_ppm, 250'000);
  ASSERT_EQ(disturbances.stragglers.size(), 2U);
  EXPECT_EQ(disturbances.stragglers[1].compute_ppm, 1'500'000);
  ASSERT_EQ(disturbances.conditions.changes.size(), 2U + 4U);
  EXPECT_EQ(disturbances.conditions.changes.back().at.count, 7'000'000'000);
  EXPECT_EQ(disturbances.detection->count, 10'000'000'000);
}

TEST(ReadScenario, ChunksAreOfACallOrOfAUse) {
  const Scenario scenario = accept(R"(
chunk: 64 KiB
collectives:
  - {collective: all_reduce, size: 1 MiB}
  - {collective: all_reduce, size: 1 MiB, chunk: 8 KiB}
training:
  {layers: 4, hidden: 16, heads: 4, sequence: 8, batch: 8, flops: 1 GFLOP/s, pipeline: 2, virtual_stages: 2, data: 2,
   utilisation: 1, chunk: 4 KiB, chunks: {data: 2 KiB}}
)");
  const Job& job = scenario.job;
  EXPECT_EQ(scenario.settings.chunk.count, 65'536);
  EXPECT_EQ(job.calls()[0].chunk.count, 0);
  EXPECT_EQ(job.calls()[1].chunk.count, 8192);
  for (const Call& call : job.calls().subspan(2)) {
    EXPECT_EQ(call.chunk.count, job.label(call.label) == "gradients" ? 2048 : 4096) << job.label(call.label);
  }
}

// A megabyte of packed zeros, in a file of a few kilobytes: the limit is that of all traces, unpacked.
TEST(ReadScenario, TracesHaveOneLimitTogether) {
  const auto folder = std::filesystem::temp_directory_path() / ("espalier_traces_" + std::to_string(getpid()));
  std::filesystem::create_directories(folder);
  std::filesystem::copy_file(source + "/tests/fuzz/corpus/chakra/bomb.et.gz", folder / "step.0.et.gz",
                             std::filesystem::copy_options::overwrite_existing);
  ScenarioOptions options;
  options.topology = test::star(2);
  options.max_trace_bytes = 100'000;
  const auto reading = read_scenario_text("espalier_scenario: 1\ntraining: {trace: step}\n", "test", folder, options);
  std::filesystem::remove_all(folder);
  ASSERT_EQ(reading.diagnostics.size(), 1U);
  EXPECT_EQ(reading.diagnostics[0].message,
            "step.0.et.gz and the traces before it have more than 100000 bytes, unpacked");
  EXPECT_NE(reading.diagnostics[0].help.find("--max-input"), std::string::npos);
}

TEST(ReadScenario, TrainingTakesTheGpuOfTheMachine) {
  const std::string head = "espalier_scenario: 1\ntraining: {layers: 2, hidden: 256, heads: 4, sequence: 128, batch: 4";
  const auto read = [&](const std::string& rest, const std::string& gpu) {
    ScenarioOptions options;
    options.topology = test::star(2);
    options.gpu = gpu;
    return read_scenario_text(head + rest + "}", "test", std::nullopt, options);
  };
  const ScenarioReading taken = read("", "h100-sxm");
  ASSERT_TRUE(taken.scenario && taken.scenario->model);
  ASSERT_NE(taken.scenario->model->gpu, nullptr);
  EXPECT_EQ(taken.scenario->model->gpu->name, "h100-sxm");
  EXPECT_TRUE(taken.diagnostics.empty());

  const ScenarioReading other = read(", gpu: h200", "h100-sxm");
  ASSERT_TRUE(other.scenario && other.scenario->model);
  EXPECT_EQ(other.scenario->model->gpu->name, "h200");
  ASSERT_EQ(other.diagnostics.size(), 1U);
  EXPECT_EQ(other.diagnostics[0].severity, Severity::warning);
  EXPECT_EQ(other.diagnostics[0].code, "N042");
  EXPECT_EQ(other.diagnostics[0].place.line, 2);

  const ScenarioReading rate = read(", flops: 100 TFLOP/s, utilisation: 0.5", "h100-sxm");
  ASSERT_TRUE(rate.scenario && rate.scenario->model);
  EXPECT_EQ(rate.scenario->model->gpu, nullptr);
  EXPECT_FALSE(read("", "").scenario);
}

TEST(ReadScenario, ShippedOnesCanBeRead) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(source + "/configs/scenarios")) {
    if (entry.path().extension() != ".yaml") continue;
    ++files;
    ScenarioOptions options;
    options.open_topology = [](const std::string& name, const std::filesystem::path&) -> Result<ScenarioMachine> {
      TopologyReading reading = read_topology_file(source + "/configs/" + name + ".yaml");
      if (!reading.topology) return fail(ErrorCode::invalid_input, name);
      return ScenarioMachine{*std::move(reading.topology), std::move(reading.gpu)};
    };
    const ScenarioReading reading = read_scenario_file(entry.path(), options);
    for (const Diagnostic& diagnostic : reading.diagnostics) ADD_FAILURE() << render(diagnostic, false);
  }
  EXPECT_EQ(files, 4);
}

nlohmann::json read_schema() {
  std::ifstream stream(source + "/configs/scenarios/scenario.schema.json");
  return nlohmann::json::parse(stream, nullptr, false);
}

TEST(ScenarioSchema, NamesTheKeysOfTheReader) {
  const nlohmann::json schema = read_schema();
  ASSERT_FALSE(schema.is_discarded()) << "not JSON";
  const nlohmann::json& definitions = schema.at("definitions");
  espalier::test::expect_keys(schema, scenario_keys::file);
  espalier::test::expect_keys(definitions.at("endpoints"), scenario_keys::endpoints);
  espalier::test::expect_keys(definitions.at("jitter"), scenario_keys::jitter);
  espalier::test::expect_keys(definitions.at("group"), scenario_keys::group);
  espalier::test::expect_keys(definitions.at("collective"), scenario_keys::collective);
  espalier::test::expect_keys(definitions.at("training"), scenario_keys::training);
  espalier::test::expect_keys(definitions.at("algorithms"), scenario_keys::algorithms);
  espalier::test::expect_keys(definitions.at("chunks"), scenario_keys::chunks);
  espalier::test::expect_keys(definitions.at("experts"), scenario_keys::experts);
  espalier::test::expect_keys(definitions.at("gossip"), scenario_keys::gossip);
  espalier::test::expect_keys(definitions.at("compression").at("anyOf").at(1), scenario_keys::compression);
  espalier::test::expect_keys(definitions.at("background"), scenario_keys::background);
  espalier::test::expect_keys(definitions.at("straggler"), scenario_keys::straggler);
  espalier::test::expect_keys(definitions.at("event"), scenario_keys::event);
  espalier::test::expect_keys(definitions.at("replan"), scenario_keys::replan);
}

TEST(ScenarioDocument, NamesEveryKey) {
  const std::string document = espalier::test::contents(source + "/docs/scenarios.md");
  const auto expect_named = [&](std::span<const std::string_view> keys) {
    for (const std::string_view key : keys) {
      EXPECT_NE(document.find("`" + std::string(key) + "`"), std::string::npos) << key;
    }
  };
  expect_named(scenario_keys::file);
  expect_named(scenario_keys::endpoints);
  expect_named(scenario_keys::jitter);
  expect_named(scenario_keys::group);
  expect_named(scenario_keys::collective);
  expect_named(scenario_keys::training);
  expect_named(scenario_keys::experts);
  expect_named(scenario_keys::algorithms);
  expect_named(scenario_keys::chunks);
  expect_named(scenario_keys::background);
  expect_named(scenario_keys::straggler);
  expect_named(scenario_keys::event);
  expect_named(scenario_keys::replan);
}

}  // namespace
}  // namespace espalier::scenario
