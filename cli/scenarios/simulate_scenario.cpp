#include "cli/scenarios/simulate_scenario.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/flags/missing_file.h"
#include "cli/jobs/stop.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/reports/job_limits_output.h"
#include "cli/reports/scenario_output.h"
#include "planners/graph/rank_groups.h"
#include "profile/costed_network.h"
#include "scenario/read/read_scenario.h"
#include "scenario/report/write_trace.h"
#include "scenario/run/run_job.h"

namespace espalier::cli {
namespace {

/// A topology by the name that a scenario gives it: a file beside the scenario, or a shipped machine; with the
/// parameters, ranks and damage of the command line.
tl::expected<Machine, InputFailure> open_machine(const Console& console, TopologyFlags flags, const std::string& name,
                                                 const std::filesystem::path& folder) {
  std::error_code status;
  const std::filesystem::path beside = folder / name;
  flags.argument = std::filesystem::is_regular_file(beside, status) ? beside.string() : name;
  if (flags.argument == name && !is_shipped_machine(name)) {
    return tl::unexpected(InputFailure{
        {ErrorCode::unavailable, "there is no '" + name + "' beside the scenario, nor a shipped machine of that name",
         missing_file(beside.string(), shipped_machines()).help},
        false,
        false});
  }
  return load_machine(console, flags);
}

/// Lays a profile on the scenario's network. Its calls share that network, so all of them have one way's costs: those
/// of rings with Simple. Where the scenario says what ranks add, that counts instead of the machine's profile. Errors:
/// invalid_input for a profile that is wrong or does not go with the scenario.
OrStop<void> lay_profile(const Console& console, scenario::Scenario& scenario, const ProfileFlags& flags,
                         const std::string& of_machine, std::string& shown) {
  const bool has_endpoints = scenario.settings.endpoints != sim::Endpoints{};
  if (has_endpoints && !of_machine.empty()) {
    console.note("the scenario's 'endpoints' count instead of the machine's profile " + of_machine);
  }
  const auto chosen = flags.resolve({}, has_endpoints ? std::string() : of_machine);
  if (!chosen) return usage(chosen.error());
  if (!*chosen) return {};
  if (has_endpoints) {
    return usage({ErrorCode::invalid_input, "--profile: the scenario says what ranks add itself",
                  "leave its 'endpoints' or --profile out"});
  }
  const profile::Profile& costs = (*chosen)->profile;
  const auto way = costs.ways.find({profile::Shape::ring, sim::Protocol::simple});
  if (way == costs.ways.end()) {
    return usage({ErrorCode::invalid_input, "the profile " + costs.name + " has no rings with Simple",
                  "scenarios have the costs of those"});
  }
  const std::size_t machines = planners::group_domains(scenario.topology).groups.size();
  const std::size_t hosts = planners::group_ranks(scenario.topology).groups.size();
  const std::uint32_t channels = profile::channels_of(costs, scenario.topology, machines);  // Large calls start all.
  const Picoseconds launch =
      profile::launch_of((*chosen)->launch, profile::Shape::ring, scenario.topology.rank_count(), hosts, channels);
  auto setting = profile::make_setting(costs, way->second, sim::Protocol::simple, launch, scenario.topology, machines,
                                       costs.channels);
  if (!setting) return stop(setting.error());
  scenario.topology = std::move(setting->topology);
  scenario.settings.endpoints = setting->endpoints;
  scenario.settings.paths = costs.paths;
  shown = (*chosen)->shown;
  return {};
}

Result<scenario::JobReport> run_with_progress(const Console& console, const scenario::Scenario& scenario,
                                              const scenario::Job& job) {
  scenario::RunSettings settings = scenario.settings;
  constexpr std::size_t per_step = std::size_t{1} << 14U;
  Progress progress(console, "simulating", job.tasks().size() / per_step + 1);
  std::size_t done = 0;
  settings.on_progress = [&](std::size_t over) {
    for (; done + per_step <= over; done += per_step) progress.step(std::to_string(over) + " tasks");
  };
  return scenario::run_job(job, scenario.topology, scenario.disturbances, settings);
}

/// How it goes with the scenario's other job; nothing for a scenario without one.
Result<std::optional<OtherRun>> run_other(const Console& console, const scenario::Scenario& scenario) {
  if (scenario.averaged.empty() && scenario.guessed_waits == 0) return std::nullopt;
  const auto report = run_with_progress(console, scenario, scenario.other);
  if (!report) return tl::unexpected(report.error());
  return OtherRun{report->elapsed, max_bytes_sent(*report, scenario.topology)};
}

ExitCode run(const Console& console, const scenario::Scenario& scenario, const ScenarioFlags& flags,
             const std::string& profile) {
  const auto report = run_with_progress(console, scenario, scenario.job);
  if (!report) return console.refuse(report.error());
  const auto plain = run_other(console, scenario);
  if (!plain) return console.refuse(plain.error());
  if (console.csv) {
    console.print_bytes(calls_table(scenario, *report).csv());
  } else {
    console.print(console.json ? json_text(scenario_json(scenario, *report, profile, *plain))
                               : scenario_text(scenario, *report, profile, *plain));
  }
  if (flags.trace.file.empty()) return ExitCode::ok;
  constexpr std::uint64_t bytes_per_task = 160;
  warn_of_size(console, flags.trace, scenario.job.tasks().size() / flags.trace.every * bytes_per_task);
  const auto written = write_file(flags.trace.file, [&](std::ostream& stream) {
    return scenario::write_trace(stream, scenario.job, scenario.topology, *report, flags.trace.every);
  });
  if (!written) return console.refuse(written.error());
  console.note("trace: " + flags.trace.file + " (open it at ui.perfetto.dev)");
  return ExitCode::ok;
}

ExitCode explain(const Console& console, const scenario::Scenario& scenario, const std::string& profile) {
  if (scenario.guessed_waits > 0)
    console.note(guessed_waits_text(scenario) + " (simulate shows how much that may matter)");
  const auto limits = [&] {
    Progress progress(console, "simulating it and single changes", 0);
    progress.step("itself");
    scenario::RunSettings settings = scenario.settings;
    const std::size_t tasks = std::max<std::size_t>(scenario.job.tasks().size(), 1);
    settings.on_progress = [&](std::size_t over) {
      progress.describe(fmt::format("{} % of a run", 100 * over / tasks));
    };
    return scenario::find_job_limits(
        scenario.job, scenario.topology, scenario.disturbances, settings,
        [&](const std::string& change, std::size_t total) {
          progress.expect(total + 1);
          progress.step(change);
        },
        scenario.routed);
  }();
  if (!limits) return console.refuse(limits.error());
  if (console.csv) {
    console.print_bytes(job_improvements_table(*limits).csv());
    return ExitCode::ok;
  }
  console.print(console.json ? json_text(job_limits_json(scenario, *limits, profile))
                             : job_limits_text(scenario, *limits, profile));
  return ExitCode::ok;
}

}  // namespace

tl::expected<LoadedScenario, LoadFailure> try_load_scenario(const Console& console, const TopologyFlags& topology,
                                                            const ScenarioFlags& flags,
                                                            const std::optional<scenario::Parallelism>& parallelism,
                                                            std::optional<std::int64_t> micro_batches) {
  scenario::ScenarioOptions options;
  options.micro_batches = micro_batches;
  options.seed = flags.seed;
  options.parallelism = parallelism;
  options.with_routes = flags.with_routes;
  options.max_trace_bytes = static_cast<std::size_t>(console.max_input.count);
  if (!flags.model.empty()) options.model = flags.model;
  std::string of_machine;
  if (!topology.argument.empty()) {
    auto loaded = load_machine(console, topology);
    if (!loaded) return tl::unexpected(LoadFailure{refuse(console, loaded.error())});
    options.topology = std::move(loaded->topology);
    options.gpu = std::move(loaded->gpu);
    of_machine = std::move(loaded->profile);
  }
  std::optional<Error> bad_flag;
  options.open_topology = [&](const std::string& name,
                              const std::filesystem::path& folder) -> Result<scenario::ScenarioMachine> {
    auto opened = open_machine(console, topology, name, folder);
    if (opened) {
      of_machine = std::move(opened->profile);
      return scenario::ScenarioMachine{std::move(opened->topology), std::move(opened->gpu)};
    }
    const InputFailure& failure = opened.error();
    if (failure.is_usage) bad_flag = failure.error;
    Error error = failure.error;
    if (failure.shown) error.message = "'" + name + "' has errors";
    return tl::unexpected(std::move(error));
  };
  const ShippedFile file = find_shipped(flags.file, "scenarios");
  scenario::ScenarioReading reading;
  if (flags.file == "-") {
    const auto text = read_whole(console, "-");
    if (!text) return tl::unexpected(LoadFailure{console.refuse(text.error())});
    reading = scenario::read_scenario_text(*text, "<stdin>", std::filesystem::path("."), options);
  } else {
    std::error_code status;
    if (!std::filesystem::exists(file.path, status)) {
      return tl::unexpected(LoadFailure{console.refuse(missing_file(flags.file, shipped_names("scenarios")))});
    }
    reading = scenario::read_scenario_file(file.path, options);
  }
  if (bad_flag)
    return tl::unexpected(LoadFailure{console.refuse_usage(*bad_flag)});  // It is not the scenario that is wrong.
  for (Diagnostic& diagnostic : reading.diagnostics) {
    if (diagnostic.place.file == file.path) diagnostic.place.file = file.shown;
  }
  if (!reading.scenario) return tl::unexpected(LoadFailure{ExitCode::check_failed, std::move(reading.diagnostics)});
  console.show(reading.diagnostics);
  std::string profile;
  if (const auto laid = lay_profile(console, *reading.scenario, flags.profile, of_machine, profile); !laid) {
    return tl::unexpected(LoadFailure{laid.error().is_usage ? console.refuse_usage(laid.error().error)
                                                            : console.refuse(laid.error().error)});
  }
  return LoadedScenario{std::move(*reading.scenario), std::move(profile)};
}

tl::expected<LoadedScenario, ExitCode> load_scenario(const Console& console, const TopologyFlags& topology,
                                                     const ScenarioFlags& flags,
                                                     const std::optional<scenario::Parallelism>& parallelism) {
  auto loaded = try_load_scenario(console, topology, flags, parallelism);
  if (loaded) return *std::move(loaded);
  console.show(loaded.error().diagnostics);
  return tl::unexpected(loaded.error().code);
}

ExitCode simulate_scenario(const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags) {
  const auto loaded = load_scenario(console, topology, flags);
  return loaded ? run(console, loaded->scenario, flags, loaded->profile) : loaded.error();
}

ExitCode with_scenario_run(const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags,
                           const std::function<void(const scenario::Scenario&, const scenario::JobReport&,
                                                    const std::string& profile)>& done) {
  const auto loaded = load_scenario(console, topology, flags);
  if (!loaded) return loaded.error();
  const auto report = run_with_progress(console, loaded->scenario, loaded->scenario.job);
  if (!report) return console.refuse(report.error());
  done(loaded->scenario, *report, loaded->profile);
  return ExitCode::ok;
}

ExitCode explain_scenario(const Console& console, const TopologyFlags& topology, const ScenarioFlags& flags) {
  ScenarioFlags with_routes = flags;
  with_routes.with_routes = true;
  const auto loaded = load_scenario(console, topology, with_routes);
  return loaded ? explain(console, loaded->scenario, loaded->profile) : loaded.error();
}

}  // namespace espalier::cli
