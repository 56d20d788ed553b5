#include "scenario/read/read_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "base/suggest.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "topology/yaml/read_topology.h"
#include "topology/yaml/source_files.h"

namespace espalier::scenario {
namespace {

Result<ScenarioMachine> open_file(const std::string& name, const std::filesystem::path& folder) {
  TopologyReading reading = read_topology_file(folder / name);
  if (reading.topology) return ScenarioMachine{*std::move(reading.topology), std::move(reading.gpu)};
  const Diagnostic& first = reading.diagnostics.front();
  const std::string place =
      first.place.line > 0 ? fmt::format("{}:{}:{}: ", name, first.place.line, first.place.column) : std::string();
  return fail(ErrorCode::invalid_input, place + first.message, first.help);
}

/// The machine that is given, or that the file names.
std::optional<ScenarioMachine> find_topology(const Fields& fields, const ScenarioOptions& options,
                                             const std::optional<std::filesystem::path>& folder) {
  if (options.topology) return ScenarioMachine{*options.topology, options.gpu};
  if (!fields.has("topology")) {
    fields.error(fields.mark(), {scenario_codes::no_topology, "the scenario names no topology, and none is given",
                                 "write 'topology: dgx-h100-x4', or name one on the command line"});
    return std::nullopt;
  }
  const auto name = fields.text("topology");
  if (!name) return std::nullopt;
  const Mark mark = fields.mark_of("topology");
  if (!options.open_topology && !folder) {
    fields.error(
        mark, {scenario_codes::bad_topology, "this text has no folder to read a topology from", "read it from a file"});
    return std::nullopt;
  }
  if (leaves_folder(*name)) {
    fields.error(mark, {scenario_codes::bad_topology, "a topology lies in the scenario's folder or below it",
                        "write 'topology: cluster.yaml', name a shipped machine, or give the topology beside the "
                        "scenario on the command line"});
    return std::nullopt;
  }
  auto topology =
      options.open_topology ? options.open_topology(*name, folder.value_or(".")) : open_file(*name, *folder);
  if (topology) return *std::move(topology);
  fields.error(mark, {scenario_codes::bad_topology, topology.error().message, topology.error().help});
  return std::nullopt;
}

void read_model_kind(ScenarioContext& context, const Fields& fields) {
  const auto written = context.options.model ? context.options.model : fields.text("model");
  if (!written) return;
  std::vector<std::string_view> names;
  for (const sim::ModelKind kind : sim::all_models) {
    names.push_back(sim::to_string(kind));
    if (names.back() == *written) {
      context.scenario.settings.model = kind;
      return;
    }
  }
  context.error(context.options.model ? fields.mark() : fields.mark_of("model"), scenario_codes::unknown_name,
                fmt::format("there is no model '{}'", written->substr(0, 60)), suggest(*written, names));
}

void read_endpoints(ScenarioContext& context, Value value) {
  if (!value) return;
  const Fields fields = context.fields(value, "'endpoints'", scenario_keys::endpoints);
  if (!fields.is_map()) return;
  sim::Endpoints& endpoints = context.scenario.settings.endpoints;
  if (const auto written = fields.text("protocol")) {
    const auto protocol = sim::parse_protocol(*written);
    if (protocol) {
      endpoints = sim::preset(*protocol);
    } else {
      context.error(fields.mark_of("protocol"), scenario_codes::unknown_name, protocol.error());
    }
  }
  if (const auto launch = fields.latency("launch")) endpoints.launch = *launch;
  if (const auto message = fields.latency("per_message")) endpoints.message = *message;
  if (const auto engines = fields.integer("copy_engines", 0, sim::max_copy_engines)) {
    endpoints.copy_engines = static_cast<std::uint32_t>(*engines);
  }
  const auto payload = fields.text("payload");
  if (!payload) return;
  const auto part = sim::parse_payload(*payload);
  if (part) {
    endpoints.payload_ppm = *part;
  } else {
    context.error(fields.mark_of("payload"), scenario_codes::bad_factor, "'payload': " + part.error().message,
                  part.error().help);
  }
}

void read_jitter(ScenarioContext& context, Value value) {
  if (!value) return;
  const Fields fields = context.fields(value, "'jitter'", scenario_keys::jitter);
  if (!fields.is_map()) return;
  Disturbances& disturbances = context.scenario.disturbances;
  disturbances.conditions.jitter_ppm = read_part(context, fields, "hops").value_or(0);
  disturbances.compute_jitter_ppm = read_part(context, fields, "compute").value_or(0);
}

void read_seed(ScenarioContext& context, const Fields& fields) {
  const auto written = fields.integer("seed", 0, std::numeric_limits<std::int64_t>::max());
  const std::uint64_t seed = context.options.seed.value_or(static_cast<std::uint64_t>(written.value_or(0)));
  context.scenario.disturbances.seed = seed;
  context.scenario.disturbances.conditions.seed = seed;
}

void read_parts(ScenarioContext& context, const Fields& fields) {
  read_seed(context, fields);
  read_model_kind(context, fields);
  if (const auto chunk = read_size(context, fields, "chunk")) context.scenario.settings.chunk = *chunk;
  read_endpoints(context, fields.find("endpoints"));
  read_jitter(context, fields.find("jitter"));
  read_groups(context, fields.find("groups"));
  read_collectives(context, context.list(fields, "collectives"));
  read_training(context, fields.find("training"));
  read_background(context, context.list(fields, "background"));
  read_stragglers(context, context.list(fields, "stragglers"));
  read_events(context, context.list(fields, "events"));
  if (const Value value = fields.find("replan")) {
    const Fields replan = context.fields(value, "'replan'", scenario_keys::replan);
    if (replan.is_map() && !replan.has("detection")) replan.missing("detection", "such as 'detection: 10 ms'");
    if (replan.is_map()) context.scenario.disturbances.detection = replan.duration("detection");
  }
  if (!context.findings.empty()) return;
  if (context.scenario.job.tasks().empty()) {
    context.error(fields.mark(), scenario_codes::nothing_to_do, "the scenario has nothing to do",
                  "write 'collectives:' or 'training:'");
    return;
  }
  const auto checked = check_job(context.scenario.job, context.scenario.topology);
  if (!checked) context.error(fields.mark(), scenario_codes::job_refused, checked.error());
}

void check_version(const Fields& fields) {
  if (!fields.has("espalier_scenario")) {
    return fields.missing("espalier_scenario", "begin with 'espalier_scenario: 1'");
  }
  const auto version = fields.text("espalier_scenario");
  if (!version || *version == "1") return;
  fields.error(
      fields.mark_of("espalier_scenario"),
      {scenario_codes::wrong_version, fmt::format("version {} of the format is not known", version->substr(0, 60)),
       "this program reads version 1"});
}

/// The job of a scenario that was read without errors, read otherwise.
Job read_again(const Fields& fields, const Scenario& scenario, const std::optional<std::filesystem::path>& folder,
               const ScenarioOptions& options) {
  Findings none;
  Scenario other{scenario.name, scenario.topology, {}, {}, {}, {}, {}, {}, 0, {}, {}, {}, {}, scenario.machine_gpu};
  ScenarioContext context{none, other, options, folder, Environment(), {}, {}};
  read_parts(context, fields);
  ESPALIER_CHECK(none.empty(), "what was right is right as all_reduce, and with more waits");
  return std::move(other.job);
}

/// The job with other routes to experts, where these make a difference.
void read_routes(const Fields& fields, Scenario& scenario, const std::optional<std::filesystem::path>& folder,
                 const ScenarioOptions& options) {
  if (!scenario.routing || !scenario.routing->is_skewed) return;
  ScenarioOptions otherwise = options;
  otherwise.routes = Routes::balanced;
  scenario.routed.emplace_back("routing to all experts alike", read_again(fields, scenario, folder, otherwise));
  if (!scenario.routing->can_place) return;
  otherwise.routes = Routes::placed;
  scenario.routed.emplace_back("experts on other ranks, by their load",
                               read_again(fields, scenario, folder, otherwise));
}

ScenarioReading read(Findings& findings, const SourceFiles::File& file,
                     const std::optional<std::filesystem::path>& folder, const ScenarioOptions& options) {
  ScenarioReading result;
  const Environment none;
  if (file.document && !is_of_another_form(file.document->root(), "espalier_scenario", findings)) {
    const Fields fields(file.document->root(), "a scenario", scenario_keys::file, none, findings);
    if (fields.is_map()) {
      check_version(fields);
      auto topology = find_topology(fields, options, folder);
      if (topology) {
        Scenario scenario{
            fields.text("name").value_or(""), std::move(topology->topology), {}, {}, {}, {}, {}, {}, 0, {}, {}, {}, {},
            std::move(topology->gpu)};
        if (scenario.name.empty())
          scenario.name = std::filesystem::path(findings.source_name(file.source)).stem().string();
        ScenarioContext context{findings, scenario, options, folder, Environment(), {}, {}};
        read_parts(context, fields);
        if (findings.empty() && (!scenario.averaged.empty() || scenario.guessed_waits > 0)) {
          ScenarioOptions otherwise = options;
          otherwise.averages_plainly = !scenario.averaged.empty();
          if (!otherwise.averages_plainly) otherwise.kernel_waits = WaitReading::most;
          scenario.other = read_again(fields, scenario, folder, otherwise);
        }
        if (findings.empty() && options.with_routes) read_routes(fields, scenario, folder, options);
        if (findings.empty()) result.scenario = std::move(scenario);
      }
    }
  }
  result.diagnostics = findings.take();
  return result;
}

}  // namespace

ScenarioReading read_scenario_file(const std::filesystem::path& path, const ScenarioOptions& options) {
  const std::filesystem::path folder = path.parent_path().empty() ? std::filesystem::path(".") : path.parent_path();
  Findings findings;
  SourceFiles files(folder, findings);
  const SourceFiles::File& file = files.add_file(path);
  return read(findings, file, folder, options);
}

ScenarioReading read_scenario_text(std::string_view text, const std::string& name_for_messages,
                                   const std::optional<std::filesystem::path>& folder, const ScenarioOptions& options) {
  Findings findings;
  SourceFiles files(folder, findings);
  const SourceFiles::File& file = files.add_text(std::string(text), name_for_messages, folder.value_or(".") / "text");
  return read(findings, file, folder, options);
}

}  // namespace espalier::scenario
