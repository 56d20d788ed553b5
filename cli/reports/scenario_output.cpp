#include "cli/reports/scenario_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/flags/condition_flags.h"
#include "sim/core/utilisation.h"

namespace espalier::cli {
namespace {

using scenario::CallSummary;
using scenario::JobReport;
using scenario::RankSummary;
using scenario::RankTime;
using scenario::Scenario;

constexpr std::size_t max_rows_shown = 16;
constexpr std::size_t links_shown = 5;

std::string part(std::int64_t time, const JobReport& report) {
  const double whole = static_cast<double>(std::max<std::int64_t>(report.elapsed.count, 1));
  return fmt::format("{:.1f}", 100 * static_cast<double>(time) / whole);
}

std::string gigabytes(Bytes bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes.count) / 1e9); }

/// What the step achieves, and what its fullest ranks need.
std::string training_text(const scenario::TrainingFigures& training, Picoseconds elapsed) {
  const scenario::MemoryNeed& need = training.memory;
  const double rate = training.tokens_per_second(elapsed);
  std::string text =
      fmt::format("# training: {:.0f} tokens/s, {:.1f} per rank; model FLOPs utilisation {:.1f} %\n", rate,
                  rate / static_cast<double>(training.ranks), 100 * training.model_flops_utilisation(elapsed));
  text += fmt::format(
      "# memory of a rank at place {} of the pipeline: {} GB{}: parameters {}, gradients {}, optimizer {}, activations "
      "{}\n",
      training.place, gigabytes(need.total()),
      training.capacity.count == 0
          ? std::string()
          : fmt::format(" of {}{}", gigabytes(training.capacity), training.capacity < need.total() ? ", TOO MUCH" : ""),
      gigabytes(need.parameters), gigabytes(need.gradients), gigabytes(need.optimizer), gigabytes(need.activations));
  return text + "# error: " + step_range_text(training) + "\n";
}

/// How unequal experts are.
std::string routing_text(const scenario::RoutingFigures& routing) {
  std::string text = fmt::format("# experts: the busiest rank has {:.2f} times the mean, at most {:.2f}",
                                 routing.busiest, routing.worst);
  if (routing.dropped > 0) text += fmt::format("; {:.1f} % of tokens' copies dropped", 100 * routing.dropped);
  return text + "\n";
}

nlohmann::ordered_json training_json(const scenario::TrainingFigures& training, Picoseconds elapsed) {
  const scenario::MemoryNeed& need = training.memory;
  nlohmann::ordered_json document = {{"tokens_per_second", training.tokens_per_second(elapsed)},
                                     {"model_flops_utilisation", training.model_flops_utilisation(elapsed)},
                                     {"memory",
                                      {{"place", training.place},
                                       {"total", need.total().count},
                                       {"parameters", need.parameters.count},
                                       {"gradients", need.gradients.count},
                                       {"optimizer", need.optimizer.count},
                                       {"activations", need.activations.count},
                                       {"capacity", nullptr}}}};
  if (training.capacity.count > 0) document["memory"]["capacity"] = training.capacity.count;
  document["range"] =
      step_range_json(training, elapsed.seconds() / static_cast<double>(std::max<std::int64_t>(training.steps, 1)));
  return document;
}

/// "gossip on the network: spectral gap 0.0507, 89 rounds leave 0.0098 of the distance to the mean, 1.2 ms".
std::string way_text(const scenario::AveragingSummary& summary) {
  constexpr std::array<std::string_view, 3> graphs = {"the network", "a ring", "an exponential graph"};
  if (summary.averaging.kind != scenario::AveragingKind::gossip) {
    return fmt::format("compressed, {}: {}", scenario::describe(summary.averaging), format_duration(summary.mean));
  }
  return fmt::format("gossip on {}, spectral gap {:.4f}: {} to consensus within {:.2g} of the distance to the mean, {}",
                     graphs[static_cast<std::size_t>(summary.averaging.graph)], summary.spectral_gap,
                     counted(static_cast<std::size_t>(summary.rounds), "round"), summary.left,
                     format_duration(summary.mean));
}

/// How gossip and compression went, and what an all_reduce in their place gives.
std::string averaging_text(const Scenario& scenario, const JobReport& report, const std::optional<OtherRun>& plain) {
  if (scenario.averaged.empty()) return {};
  std::string text;
  for (const auto& summary : summarize_averaging(scenario.job, report, scenario.averaged)) {
    text += fmt::format("# {}: {}{}\n", summary.label, way_text(summary),
                        summary.times > 1 ? fmt::format(" in the mean of {}", summary.times) : std::string());
  }
  const std::int64_t sent = max_bytes_sent(report, scenario.topology);
  text += fmt::format("# a rank sends at most {} B", sent);
  if (!plain) return text + "\n";
  const double times =
      static_cast<double>(plain->max_bytes_sent) / static_cast<double>(std::max<std::int64_t>(sent, 1));
  return text + fmt::format("; with all_reduce instead: {} B ({:.3g} times as many), elapsed {}\n",
                            plain->max_bytes_sent, times, format_duration(plain->elapsed));
}

/// How much it matters what a profiler's trace does not say.
std::string guesses_text(const Scenario& scenario, const JobReport& report, const std::optional<OtherRun>& most) {
  if (scenario.guessed_waits == 0 || !scenario.averaged.empty() || !most) return {};
  return fmt::format("# {}: elapsed {} if no kernel did, {} if each waited for all that had ended when it began\n",
                     guessed_waits_text(scenario), format_duration(report.elapsed), format_duration(most->elapsed));
}

/// What the traces say of their own run.
std::string recorded_text(const scenario::RecordedTime& recorded) {
  if (recorded.elapsed_us <= 0) return {};
  return fmt::format("# recorded {}: exposed communication {:.1f} %, of which some is waiting for others\n",
                     format_duration(Picoseconds{std::llround(recorded.elapsed_us * 1e6)}),
                     100 * recorded.exposed_us / recorded.elapsed_us);
}

nlohmann::ordered_json averaging_json(const Scenario& scenario, const JobReport& report,
                                      const std::optional<OtherRun>& plain) {
  constexpr std::array<std::string_view, 3> graphs = {"network", "ring", "exponential"};
  nlohmann::ordered_json entries = nlohmann::ordered_json::array();
  for (const auto& summary : summarize_averaging(scenario.job, report, scenario.averaged)) {
    entries.push_back({{"call", summary.label},
                       {"way", scenario::describe(summary.averaging)},
                       {"ranks", summary.ranks},
                       {"times", summary.times},
                       {"mean_time", summary.mean.seconds()}});
    if (summary.averaging.kind != scenario::AveragingKind::gossip) continue;
    entries.back()["graph"] = graphs[static_cast<std::size_t>(summary.averaging.graph)];
    entries.back()["spectral_gap"] = summary.spectral_gap;
    entries.back()["rounds"] = summary.rounds;
    entries.back()["left"] = summary.left;
  }
  nlohmann::ordered_json document = {{"entries", entries},
                                     {"most_bytes_sent", max_bytes_sent(report, scenario.topology)}};
  if (plain) {
    document["with_all_reduce"] = {{"elapsed", plain->elapsed.seconds()}, {"most_bytes_sent", plain->max_bytes_sent}};
  }
  return document;
}

std::string header(const Scenario& scenario, const JobReport& report, const std::string& profile,
                   const std::optional<OtherRun>& plain) {
  const auto& settings = scenario.settings;
  std::string text = fmt::format("# {} on {}  {}  model {}", scenario.name, scenario.topology.name(),
                                 counted(scenario.topology.rank_count(), "rank"), sim::to_string(settings.model));
  if (report.chunk.count > 0) text += "  chunk " + format_size(report.chunk);
  if (!profile.empty()) text += "  profile " + profile;
  text += circumstances_text({settings.endpoints, scenario.disturbances.conditions});
  const RankSummary time = summarize_ranks(scenario.job, report);
  text += fmt::format(
      "\n# elapsed {}: compute {:.1f} %, exposed communication {:.1f} %, waiting for others {:.1f} %, idle {:.1f} %\n",
      format_duration(report.elapsed), 100 * time.compute, 100 * time.exposed, 100 * time.waiting, 100 * time.idle);
  if (scenario.training) text += training_text(*scenario.training, report.elapsed);
  if (scenario.routing) text += routing_text(*scenario.routing);
  text += recorded_text(scenario.recorded);
  return text + averaging_text(scenario, report, plain) + guesses_text(scenario, report, plain);
}

std::string calls_text(const Scenario& scenario, const JobReport& report) {
  if (summarize_calls(scenario.job, report).empty()) return {};
  return "#\n" + calls_table(scenario, report).text();
}

/// Neighbouring ranks whose times read the same.
struct RankRow {
  std::size_t first = 0;
  std::size_t last = 0;
  std::array<std::string, 4> parts;  ///< compute, exposed, waiting, idle

  [[nodiscard]] std::string name(const Topology& topology) const {
    const std::string name = topology.rank_name(Rank(first));
    return first == last ? name : name + ".." + topology.rank_name(Rank(last));
  }
};

/// Ranks with tasks, in order.
std::vector<RankRow> rank_rows(const Scenario& scenario, const JobReport& report) {
  std::vector<bool> works(report.ranks.size(), false);
  for (const scenario::Task& task : scenario.job.tasks()) works[task.rank.index()] = true;
  std::vector<RankRow> rows;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!works[i]) continue;
    const RankTime& time = report.ranks[i];
    RankRow row{
        i,
        i,
        {part(time.compute, report), part(time.exposed, report), part(time.waiting, report), part(time.idle, report)}};
    if (!rows.empty() && rows.back().last + 1 == i && rows.back().parts == row.parts) {
      rows.back().last = i;
    } else {
      rows.push_back(std::move(row));
    }
  }
  return rows;
}

std::string ranks_table(const Scenario& scenario, const JobReport& report) {
  Table table;
  table.add_column("rank", "", Table::Align::left);
  table.add_column("compute", "(%)");
  table.add_column("exposed", "(%)");
  table.add_column("waiting", "(%)");
  table.add_column("idle", "(%)");
  std::vector<RankRow> rows = rank_rows(scenario, report);
  const std::size_t all = rows.size();
  if (all > max_rows_shown) {
    std::ranges::stable_sort(rows, std::greater<>(),
                             [&](const RankRow& row) { return report.ranks[row.first].exposed; });
    rows.resize(max_rows_shown);
  }
  std::size_t shown = 0;
  for (const RankRow& row : rows) {
    table.add_row({row.name(scenario.topology), row.parts[0], row.parts[1], row.parts[2], row.parts[3]});
    shown += row.last - row.first + 1;
  }
  std::string text = "#\n" + table.text();
  if (rows.size() < all) {
    text += fmt::format("# the {} ranks of {} with most exposed communication\n", shown,
                        summarize_ranks(scenario.job, report).ranks);
  }
  return text;
}

std::string links_text(const Scenario& scenario, const JobReport& report) {
  const std::vector<sim::LinkShare> busiest =
      sim::busiest_links(report.links, report.elapsed, scenario.topology, links_shown);
  if (busiest.empty()) return {};
  std::string text = "#\n# busiest links:";
  for (std::size_t i = 0; i < busiest.size(); ++i) {
    text += fmt::format("{} {} {:.1f} %", i == 0 ? "" : ",", busiest[i].name, 100 * busiest[i].share);
  }
  return text + "\n";
}

std::string events_text(const Scenario& scenario, const JobReport& report) {
  std::string text;
  for (const scenario::Replanning& replanning : report.replannings) {
    text += fmt::format("# at {} {} was found {}", format_duration({replanning.time}),
                        scenario.topology.link_name(replanning.link), replanning.is_dead ? "dead" : "alive again");
    if (replanning.restarted > 0)
      text += fmt::format(": {} call{} began again", replanning.restarted, replanning.restarted == 1 ? "" : "s");
    text += '\n';
  }
  if (report.flows > 0) text += fmt::format("# background: {}\n", counted(report.flows, "flow"));
  return text;
}

nlohmann::ordered_json rank_json(const std::string& name, const RankTime& time) {
  return {{"rank", name},
          {"compute", Picoseconds{time.compute}.seconds()},
          {"exposed_communication", Picoseconds{time.exposed}.seconds()},
          {"waiting", Picoseconds{time.waiting}.seconds()},
          {"idle", Picoseconds{time.idle}.seconds()}};
}

}  // namespace

std::string step_range_text(const scenario::TrainingFigures& training) {
  if (!training.range) return "not known: " + training.outside;
  const compute::StepRange& range = *training.range;
  return fmt::format("nine in ten measured steps took {:.2f} to {:.2f} times as long ({} runs, {} sources{})",
                     range.low, range.high, range.runs, range.sources,
                     training.outside.empty() ? "" : "; " + training.outside);
}

nlohmann::ordered_json step_range_json(const scenario::TrainingFigures& training, double step) {
  nlohmann::ordered_json said = nlohmann::ordered_json::object();
  if (training.range) {
    constexpr double part_between = 0.9;
    said = {{"low", step * training.range->low},
            {"high", step * training.range->high},
            {"part", part_between},
            {"runs", training.range->runs},
            {"sources", training.range->sources}};
  }
  if (!training.outside.empty()) said["outside"] = training.outside;
  return said;
}

std::string guessed_waits_text(const Scenario& scenario) {
  return fmt::format("the trace does not say whether kernels waited for other streams in {} cases",
                     scenario.guessed_waits);
}

Table calls_table(const Scenario& scenario, const JobReport& report) {
  const auto summaries = summarize_calls(scenario.job, report);
  Table table;
  table.add_column("call", "", Table::Align::left);
  table.add_column("collective", "", Table::Align::left);
  table.add_column("ranks");
  table.add_column("calls");
  table.add_column("bytes", "(B)");
  table.add_column("mean", "(us)");
  table.add_column("slow-down", "(x)");
  table.add_column("worst", "(x)");
  table.add_column("exposed", "(%)");
  for (const CallSummary& call : summaries) {
    table.add_row({call.label, std::string(to_string(call.kind)), std::to_string(call.group_size),
                   std::to_string(call.calls), std::to_string(call.bytes.count),
                   fmt::format("{:.2f}", call.mean_seconds * 1e6), fmt::format("{:.3f}", call.mean_slowdown),
                   fmt::format("{:.3f}", call.worst_slowdown), fmt::format("{:.1f}", 100 * call.exposed)});
  }
  return table;
}

std::string scenario_text(const Scenario& scenario, const JobReport& report, const std::string& profile,
                          const std::optional<OtherRun>& plain) {
  return header(scenario, report, profile, plain) + calls_text(scenario, report) + ranks_table(scenario, report) +
         links_text(scenario, report) + events_text(scenario, report);
}

nlohmann::ordered_json scenario_json(const Scenario& scenario, const JobReport& report, const std::string& profile,
                                     const std::optional<OtherRun>& plain) {
  nlohmann::ordered_json document = {{"schema", "espalier/scenario/1"},
                                     {"scenario", scenario.name},
                                     {"topology", scenario.topology.name()},
                                     {"model", sim::to_string(scenario.settings.model)},
                                     {"seed", scenario.disturbances.seed},
                                     {"chunk", report.chunk.count},
                                     {"payload", scenario.settings.endpoints.payload_ppm / 1e6},
                                     {"launch", scenario.settings.endpoints.launch.seconds()},
                                     {"copy_engines", scenario.settings.endpoints.copy_engines},
                                     {"per_message", scenario.settings.endpoints.message.seconds()},
                                     {"jitter", scenario.disturbances.conditions.jitter_ppm / 1e6},
                                     {"compute_jitter", scenario.disturbances.compute_jitter_ppm / 1e6},
                                     {"elapsed", report.elapsed.seconds()},
                                     {"tasks", scenario.job.tasks().size()},
                                     {"events", report.events},
                                     {"background_flows", report.flows}};
  if (!profile.empty()) document["profile"] = profile;
  if (scenario.training) document["training"] = training_json(*scenario.training, report.elapsed);
  if (scenario.routing) {
    document["experts"] = {{"busiest_mean", scenario.routing->busiest},
                           {"busiest_most", scenario.routing->worst},
                           {"dropped", scenario.routing->dropped}};
  }
  if (!scenario.averaged.empty()) document["averaging"] = averaging_json(scenario, report, plain);
  if (scenario.guessed_waits > 0 && scenario.averaged.empty() && plain) {
    document["guessed_waits"] = {{"cases", scenario.guessed_waits}, {"elapsed_if_all", plain->elapsed.seconds()}};
  }
  if (scenario.recorded.elapsed_us > 0) {
    document["recorded"] = {{"elapsed", scenario.recorded.elapsed_us / 1e6},
                            {"exposed", scenario.recorded.exposed_us / scenario.recorded.elapsed_us}};
  }
  auto& calls = document["calls"] = nlohmann::ordered_json::array();
  for (const CallSummary& call : summarize_calls(scenario.job, report)) {
    calls.push_back({{"call", call.label},
                     {"collective", to_string(call.kind)},
                     {"ranks", call.group_size},
                     {"calls", call.calls},
                     {"bytes", call.bytes.count},
                     {"mean_time", call.mean_seconds},
                     {"mean_slowdown", call.mean_slowdown},
                     {"worst_slowdown", call.worst_slowdown},
                     {"exposed", call.exposed}});
  }
  auto& ranks = document["ranks"] = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < report.ranks.size(); ++i) {
    ranks.push_back(rank_json(scenario.topology.rank_name(Rank(i)), report.ranks[i]));
  }
  auto& links = document["links"] = nlohmann::ordered_json::array();
  for (const sim::LinkShare& busy :
       sim::busiest_links(report.links, report.elapsed, scenario.topology, report.links.size())) {
    links.push_back(
        {{"link", busy.name}, {"bytes", busy.use.bytes}, {"utilisation", busy.share}, {"links", busy.links}});
  }
  auto& replannings = document["replannings"] = nlohmann::ordered_json::array();
  for (const scenario::Replanning& replanning : report.replannings) {
    replannings.push_back({{"time", Picoseconds{replanning.time}.seconds()},
                           {"link", scenario.topology.link_name(replanning.link)},
                           {"dead", replanning.is_dead},
                           {"restarted", replanning.restarted}});
  }
  return document;
}

}  // namespace espalier::cli
