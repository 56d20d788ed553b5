#include "cli/pages/scenario_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "base/format_units.h"
#include "cli/reports/scenario_output.h"
#include "sim/core/utilisation.h"

namespace espalier::cli {
namespace {

using scenario::JobReport;
using scenario::Scenario;
using scenario::Task;
using scenario::TaskKind;

constexpr std::size_t links_on_page = 64;

double part_of(std::int64_t time, const JobReport& report) {
  return static_cast<double>(time) / static_cast<double>(std::max<std::int64_t>(report.elapsed.count, 1));
}

std::vector<std::string> verdict_on(const Scenario& scenario, const JobReport& report) {
  const scenario::RankSummary time = summarize_ranks(scenario.job, report);
  std::vector<std::string> sentences = {
      fmt::format("{} on {} takes {}: {:.1f} % computing, {:.1f} % exposed communication, {:.1f} % waiting for others, "
                  "{:.1f} % idle.",
                  scenario.name, scenario.topology.name(), format_duration(report.elapsed), 100 * time.compute,
                  100 * time.exposed, 100 * time.waiting, 100 * time.idle)};
  if (scenario.training) {
    const scenario::TrainingFigures& training = *scenario.training;
    sentences.push_back(fmt::format("{:.0f} tokens per second; model FLOPs utilisation {:.1f} %.",
                                    training.tokens_per_second(report.elapsed),
                                    100 * training.model_flops_utilisation(report.elapsed)));
    const double need = static_cast<double>(training.memory.total().count) / 1e9;
    const double capacity = static_cast<double>(training.capacity.count) / 1e9;
    sentences.push_back(capacity == 0 ? fmt::format("A rank needs up to {:.1f} GB of memory.", need)
                                      : fmt::format("A rank needs up to {:.1f} GB of its {:.1f} GB of memory{}.", need,
                                                    capacity, need > capacity ? ", which is too much" : ""));
    sentences.push_back("Error: " + step_range_text(training) + ".");
  }
  if (std::string exposed = max_exposed(summarize_calls(scenario.job, report)); !exposed.empty()) {
    sentences.push_back(std::move(exposed));
  }
  if (scenario.guessed_waits > 0) {
    sentences.push_back("Guessed: " + guessed_waits_text(scenario) + "; it is taken that they did not.");
  }
  for (const scenario::Replanning& replanning : report.replannings) {
    sentences.push_back(fmt::format("At {} {} was found {}; {} began again.", format_duration({replanning.time}),
                                    scenario.topology.link_name(replanning.link), replanning.is_dead ? "dead" : "alive",
                                    counted(replanning.restarted, "call")));
  }
  return sentences;
}

/// Neighbours whose times read the same share a bar.
std::vector<report::RankBar> bars_of(const Scenario& scenario, const JobReport& report) {
  std::vector<bool> works(report.ranks.size(), false);
  for (const Task& task : scenario.job.tasks()) works[task.rank.index()] = true;
  std::vector<report::RankBar> bars;
  std::string first, before;
  for (std::size_t i = 0; i < works.size(); ++i) {
    if (!works[i]) continue;
    const scenario::RankTime& time = report.ranks[i];
    const std::string name = scenario.topology.rank_name(Rank(i));
    const report::RankBar bar{name, part_of(time.compute, report), part_of(time.exposed, report),
                              part_of(time.waiting, report), part_of(time.idle, report)};
    const std::string reads = fmt::format("{:.1f} {:.1f} {:.1f} {:.1f}", 100 * bar.compute, 100 * bar.exposed,
                                          100 * bar.waiting, 100 * bar.idle);
    if (!bars.empty() && reads == before && i > 0 && works[i - 1]) {
      bars.back().name = first + ".." + name;
    } else {
      bars.push_back(bar);
      first = name;
    }
    before = reads;
  }
  return bars;
}

/// A lane per stream of a rank, in the order of ranks and streams.
void add_tasks(report::JobPage& page, const Scenario& scenario, const JobReport& report) {
  const auto tasks = scenario.job.tasks();
  std::map<std::pair<std::size_t, std::uint16_t>, std::uint32_t> lanes;
  for (const Task& task : tasks) lanes[{task.rank.index(), task.stream}] = 0;
  for (auto& [place, lane] : lanes) {
    lane = static_cast<std::uint32_t>(page.lanes.size());
    const std::string name = scenario.topology.rank_name(Rank(place.first));
    page.lanes.push_back(place.second == 0                     ? name
                         : place.second == scenario::no_stream ? name + ", messages"
                                                               : fmt::format("{}, stream {}", name, place.second));
  }
  while (tasks.size() / page.every > report::max_page_spans) page.every *= 2;
  for (std::size_t i = 0; i < tasks.size(); i += page.every) {
    const Task& task = tasks[i];
    const scenario::TaskTime& time = report.tasks[i];
    if (time.start < 0 || time.end <= time.start) continue;
    const auto look = task.kind == TaskKind::compute ? report::TaskLook::compute
                      : task.kind == TaskKind::call  ? report::TaskLook::call
                                                     : report::TaskLook::wait;
    page.tasks.push_back({{time.start},
                          {time.end},
                          lanes.at({task.rank.index(), task.stream}),
                          static_cast<std::uint32_t>(look),
                          static_cast<std::uint32_t>(task.label.index()),
                          0});
  }
  std::ranges::stable_sort(page.tasks, {}, &report::PageSpan::begin);
  for (std::size_t i = 0; i < scenario.job.label_count(); ++i)
    page.labels.push_back(scenario.job.label(scenario::LabelId(i)));
}

report::ReportTable settings_of(const Scenario& scenario, const JobReport& report, const std::string& profile) {
  report::ReportTable table{"assumptions", "How it was predicted", {{"what"}, {"value"}}, {}};
  table.rows.push_back({"machine", scenario.topology.name()});
  table.rows.push_back({"model", std::string(sim::to_string(scenario.settings.model))});
  table.rows.push_back({"software", profile.empty() ? "none beside what the scenario says" : "profile " + profile});
  if (report.chunk.count > 0) table.rows.push_back({"chunk", format_size(report.chunk)});
  if (report.flows > 0) table.rows.push_back({"background", counted(report.flows, "flow")});
  return table;
}

}  // namespace

std::string max_exposed(std::span<const scenario::CallSummary> calls) {
  struct Named {
    std::string label;
    std::vector<std::string_view> kinds;
    double exposed = 0;
  };
  std::vector<Named> names;  // in the order of first calls
  for (const scenario::CallSummary& call : calls) {
    auto name = std::ranges::find(names, call.label, &Named::label);
    if (name == names.end()) name = names.insert(name, {call.label, {}, 0});
    name->kinds.push_back(to_string(call.kind));
    name->exposed += call.exposed;
  }
  const auto most = std::ranges::max_element(names, {}, &Named::exposed);
  if (most == names.end() || most->exposed <= 0) return {};
  const std::string kinds = most->kinds.size() > 1 ? fmt::format(" ({})", fmt::join(most->kinds, " and ")) : "";
  return fmt::format("Most exposed: {}{}, for {:.1f} % of the time.", most->label, kinds, 100 * most->exposed);
}

report::JobPage make_job_page(const Scenario& scenario, const JobReport& report, const std::string& profile) {
  report::JobPage page;
  page.title = scenario.name + " on " + scenario.topology.name();
  page.verdict = verdict_on(scenario, report);
  page.topology = &scenario.topology;
  page.elapsed = report.elapsed;
  for (const sim::LinkUse& use : report.links) page.loads.push_back(part_of(use.busy.count, report));
  page.ranks = bars_of(scenario, report);
  report::ReportTable calls{"calls", "Calls by name", {}, {}};
  calls_table(scenario, report)
      .visit(
          [&](const std::string& title, bool is_number) {
            calls.columns.push_back({title, is_number});
          },
          [&](const std::vector<std::string>& cells) { calls.rows.push_back(cells); });
  page.calls.push_back(std::move(calls));
  report::ReportTable links{"links", "Busiest links", {{"link"}, {"busy (%)", true}}, {}};
  for (const sim::LinkShare& link :
       sim::busiest_links(report.links, report.elapsed, scenario.topology, links_on_page)) {
    links.rows.push_back({link.name, fmt::format("{:.1f}", 100 * link.share)});
  }
  page.links.push_back(std::move(links));
  add_tasks(page, scenario, report);
  page.assumptions.push_back(settings_of(scenario, report, profile));
  page.maker = "Made by espalier " ESPALIER_VERSION ", in one file that needs no network.";
  return page;
}

}  // namespace espalier::cli
