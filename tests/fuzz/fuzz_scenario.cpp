// Any bytes are read as a scenario without harm; what is read is a job that can be run or is refused with words.

#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "scenario/read/read_scenario.h"
#include "topology/topology_builder.h"

namespace {

espalier::Topology make_star() {
  espalier::TopologyBuilder builder;
  const espalier::Wire wire{.bandwidth = {1'000'000'000}, .latency = {1'000'000}, .link_class = ""};
  const espalier::NodeId hub = builder.forwarder(espalier::NodeKind::switch_node, "hub");
  for (int i = 0; i < 4; ++i) builder.cable(builder.rank("gpu" + std::to_string(i)), hub, wire);
  return *std::move(builder).build("star");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace espalier;
  constexpr std::size_t max_tasks = 500, max_run = 100;
  scenario::ScenarioOptions options;
  options.topology = make_star();
  options.task_limit = max_tasks;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto reading = scenario::read_scenario_text(text, "fuzz", std::nullopt, options);
  ESPALIER_CHECK(reading.scenario.has_value() != has_errors(reading.diagnostics), "either a scenario or errors");
  for (const Diagnostic& diagnostic : reading.diagnostics) {
    ESPALIER_CHECK(!diagnostic.code.empty() && !diagnostic.message.empty(), "an error says what is wrong");
    ESPALIER_CHECK(!render(diagnostic, true).empty(), "an error can be shown");
  }
  if (!reading.scenario || reading.scenario->job.tasks().size() > max_run) return 0;
  scenario::RunSettings settings = reading.scenario->settings;
  settings.chunk = max_message_size;
  scenario::Disturbances disturbances = reading.scenario->disturbances;
  disturbances.background.clear();  // it may go on for long
  const auto report = scenario::run_job(reading.scenario->job, reading.scenario->topology, disturbances, settings);
  ESPALIER_CHECK(report.has_value() || !report.error().message.empty(), "a refusal says why");
  return 0;
}
