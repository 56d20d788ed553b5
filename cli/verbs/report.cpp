#include <fmt/format.h>

#include <filesystem>
#include <tuple>

#include "base/parse_units.h"
#include "cli/flags/inputs.h"
#include "cli/flags/prediction_flags.h"
#include "cli/jobs/measured_beside.h"
#include "cli/jobs/simulate_sizes.h"
#include "cli/measured/error_ranges.h"
#include "cli/measured/machine_verdict.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/picture_file.h"
#include "cli/output/trace_file.h"
#include "cli/pages/results_page.h"
#include "cli/pages/scenario_page.h"
#include "cli/reports/describe_bound.h"
#include "cli/reports/provenance_output.h"
#include "cli/reports/scenario_output.h"
#include "cli/reports/simulation_output.h"
#include "cli/verbs/commands.h"
#include "report/job_page.h"
#include "report/plan_report.h"
#include "report/svg_picture.h"
#include "report/verdict.h"

namespace espalier::cli {
namespace {

/// A run that serves chunks more often is no longer looked at closely where another size will do: in a page it would be
/// less than one chunk in ten.
constexpr std::uint64_t max_close_events = 4 * report::max_page_spans;

/// Of a run that a verdict speaks of.
constexpr std::size_t named_links = 4;

struct ReportFlags : PredictionFlags {
  using PredictionFlags::PredictionFlags;

  std::string output = "report.html";
  std::vector<std::string> more_files;  ///< With results, beyond the first two.
  std::string of_nccl_tests;            ///< What they measured, where results do not say.
  std::vector<std::string> measured;
  std::string timeline_size;
  std::string svg, png;  ///< Folders of pictures.
  TraceFlags trace;
};

/// What a report is made of, in the order in which it is found.
struct Findings {
  Simulation simulation;
  std::vector<MeasuredFile> measured;
};

/// The run that is looked at closely: that of a measured timeline, of --timeline, or the fastest at the largest size
/// whose timeline fits into the page.
OrStop<const forecast::CandidateRun*> find_close_run(const ReportFlags& flags, const Findings& findings) {
  const Simulation& simulation = findings.simulation;
  const auto winner = [&](std::size_t row) { return &simulation.results[simulation.winners[row]]; };
  if (flags.timeline_size.empty()) {
    if (const forecast::CandidateRun* const run = find_measured_run(simulation, findings.measured)) return run;
    std::size_t row = simulation.winners.size() - 1;
    while (row > 0 && winner(row)->report.events > max_close_events) --row;
    return winner(row);
  }
  const auto size = parse_size(flags.timeline_size);
  if (!size) return usage({size.error().code, "--timeline: " + size.error().message, size.error().help});
  for (std::size_t row = 0; row < simulation.winners.size(); ++row) {
    if (winner(row)->size == *size) return winner(row);
  }
  return usage({ErrorCode::invalid_input, "--timeline: " + flags.timeline_size + " is not among the sizes",
                "it is one of those that -b, -e and -f or -s give"});
}

report::ReportTable settings_table(const ReportFlags& flags, const Simulation& simulation) {
  report::ReportTable table{"assumptions", "How it was predicted", {{"what"}, {"value"}}, {}};
  const auto add = [&](std::string what, std::string value) {
    if (!value.empty()) table.rows.push_back({std::move(what), std::move(value)});
  };
  add("machine", flags.input.argument);
  add("parameters", fmt::format("{}", fmt::join(flags.input.parameters, ", ")));
  add("ranks", flags.input.ranks);
  add("taken away", fmt::format("{}", fmt::join(flags.input.without, ", ")));
  add("slowed down", fmt::format("{}", fmt::join(flags.input.slow, ", ")));
  add("model", std::string(sim::to_string(simulation.model)) + (simulation.model == sim::ModelKind::link
                                                                    ? ": chunks take turns on a link"
                                                                    : ": flows share a link max-min fairly"));
  add("software", simulation.profile.empty() ? "none beside the links" : "profile " + simulation.profile);
  const std::string circumstances = circumstances_text(simulation.circumstances, "; ");
  add("circumstances", circumstances.empty() ? "as the topology says" : circumstances.substr(2));
  add("element type", simulation.type);
  for (const planners::Refusal& refusal : simulation.refused) add("no " + refusal.planner, refusal.error.message);
  return table;
}

report::ReportTable origins_table(const Input& input) {
  report::ReportTable table{"provenance", "Where the values of links came from", {}, {}};
  for (const std::string title : provenance_columns) table.columns.push_back({title, title == "links"});
  table.rows = provenance_rows(input.topology, input.provenance);
  return table;
}

std::vector<report::Curve> predicted_curves(const Simulation& simulation) {
  std::vector<report::Curve> curves;
  for (const std::string& algorithm : simulation.algorithms) {
    report::Curve curve{algorithm, {}};
    for (const forecast::CandidateRun& result : simulation.results) {
      if (result.algorithm != algorithm) continue;
      const std::string by = result.by() == algorithm ? "" : result.by();
      curve.points.push_back({result.size, result.report.elapsed.seconds(), by});
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

report::PlanReport make_report(const ReportFlags& flags, const Input& input, const Simulation& simulation) {
  report::PlanReport report;
  report.topology = &input.topology;
  report.collective = simulation.collective;
  report.element_size = simulation.element_size;
  report.bound = simulation.bound;
  if (!report.bound.cut.empty()) report.cut = cut_text(report.bound, input.topology);
  report.predicted = predicted_curves(simulation);
  for (const std::size_t index : simulation.winners) {
    const forecast::CandidateRun& winner = simulation.results[index];
    report.fastest.push_back({winner.size, winner.planner(), winner.report.elapsed.seconds(),
                              sim::busiest_links(winner.report, input.topology, named_links)});
  }
  for (const forecast::Crossover& crossover : simulation.crossovers) {
    report.crossovers.push_back({crossover.from, crossover.to, crossover.size});
  }
  report.assumptions.push_back(settings_table(flags, simulation));
  report.assumptions.push_back(origins_table(input));
  for (const Diagnostic& finding : input.findings) {
    report.warnings.push_back(fmt::format("{}: {}; {}.", finding.code, finding.message, finding.help));
  }
  report.maker = "Made by espalier " ESPALIER_VERSION ", in one file that needs no network.";
  return report;
}

Result<void> write_page(const Console& console, const ReportFlags& flags, const std::string& page,
                        const std::vector<std::string>& verdict) {
  const auto written = write_file(flags.output, [&](std::ostream& out) -> Result<void> {
    out << page;
    return {};
  });
  if (!written || flags.output == "-") return written;
  if (!console.json) {
    for (const std::string& sentence : verdict) console.print(sentence + "\n");
  }
  console.note("wrote " + flags.output + " (open it in a browser)");
  return {};
}

/// Every picture as a file of its own in a folder. One that is too large is left out, and it says so.
template <class Report>
Result<void> write_pictures(const Console& console, const ReportFlags& flags, const Report& report) {
  if (flags.svg.empty() && flags.png.empty()) return {};
  for (const report::Picture& picture : report::pictures_of(report)) {
    for (const auto& [folder, form, end] :
         {std::tuple(flags.svg, PictureForm::svg, ".svg"), std::tuple(flags.png, PictureForm::png, ".png")}) {
      if (folder.empty()) continue;
      const std::string path = folder + "/" + picture.name + end;
      const auto wrote = write_picture(console, path, form, picture.svg);
      if (!wrote && wrote.error().code != ErrorCode::too_large) return wrote;
      if (!wrote) console.warn(path + " is left out: " + wrote.error().message);
    }
  }
  return {};
}

/// What may be at fault with the machine, where a file says so: a sentence, and marks in the picture.
void add_suspects(const Console& console, const ReportFlags& flags, const Input& input, const Prediction& prediction,
                  const Findings& findings, report::Measured& measured) {
  const auto& software = prediction.options.profile;
  for (const MeasuredFile& file : findings.measured) {
    const auto found = picture_suspects(
        console,
        {input.topology, flags.input.argument, {}, software, software != nullptr ? "nccl" : "auto", file.rows});
    if (!found) continue;
    measured.findings.push_back(found->sentence);
    measured.suspected = found->machine;
    return;
  }
}

OrStop<void> report_on(const Console& console, const CLI::App& command, const ReportFlags& flags, Input& input) {
  auto prediction = flags.resolve(input);
  if (!prediction) return usage(prediction.error());
  Findings findings;
  if (!flags.measured.empty()) {
    const auto kind = input.schedule ? Result<CollectiveKind>(input.schedule->collective.kind)
                                     : parse_collective(flags.collective.name);
    if (!kind) return usage(kind.error());
    auto measured = load_measured(console, flags.measured, *kind);
    if (!measured) return tl::unexpected(measured.error());
    findings.measured = std::move(*measured);
    bool are_sizes_given = false;
    for (const char* option : {"--minbytes", "--maxbytes", "--stepfactor", "--stepbytes", "--size"}) {
      are_sizes_given |= was_given(command, option);
    }
    if (!are_sizes_given) prediction->sizes = measured_sizes(findings.measured, prediction->options.element_size);
  }
  const auto work = find_work(console, flags, input, *prediction);
  if (!work) return tl::unexpected(work.error());
  forecast::CandidateRuns runs(input.topology, work->candidates, prediction->options);
  auto simulation = simulate_sizes(console, flags, input.topology, *work, *prediction, runs);
  if (!simulation) return tl::unexpected(simulation.error());
  findings.simulation = std::move(*simulation);
  report::PlanReport report = make_report(flags, input, findings.simulation);
  for (const std::string& sentence : errors_sentences(findings.simulation.errors, findings.simulation.algorithms))
    report.doubts.push_back(sentence + ".");
  const auto close_run = find_close_run(flags, findings);
  if (!close_run) return tl::unexpected(close_run.error());
  auto detail = forecast::run_in_detail(**close_run, input.topology, prediction->options);
  if (!detail) return stop(detail.error());
  if (const std::string why = stored_form_text(**close_run, *detail); !why.empty()) {
    console.note(why);
    report.assumptions.front().rows.push_back({"timeline", why});
  }
  report.run = report::CloseRun{(*close_run)->by(), std::move(*detail)};
  if (!findings.measured.empty()) {
    auto measured = lay_beside(findings.simulation, prediction->options, findings.measured);
    if (!measured) return stop(measured.error());
    report.measured = std::move(*measured);
    add_suspects(console, flags, input, *prediction, findings, *report.measured);
  }
  if (console.json) console.print(json_text(simulation_json(findings.simulation)));
  if (const auto written = write_page(console, flags, report_page(report), verdict_of(report)); !written)
    return stop(written.error());
  if (const auto written = write_pictures(console, flags, report); !written) return stop(written.error());
  if (flags.trace.file.empty()) return {};
  const auto traced = write_trace_file(console, flags.trace, *report.run->report.timeline);
  if (!traced) return stop(traced.error());
  console.note("trace: " + flags.trace.file + " (open it at ui.perfetto.dev)");
  return {};
}

/// The page of a scenario.
ExitCode report_on_scenario(const Console& console, const ReportFlags& flags) {
  ExitCode done = ExitCode::ok;
  const auto show = [&](const scenario::Scenario& scenario, const scenario::JobReport& run,
                        const std::string& profile) {
    const report::JobPage page = make_job_page(scenario, run, profile);
    if (console.json) console.print(json_text(scenario_json(scenario, run, profile)));
    auto written = write_page(console, flags, job_page(page), page.verdict);
    if (written) written = write_pictures(console, flags, page);
    if (!written) done = console.refuse(written.error());
  };
  const ExitCode ran = with_scenario_run(console, flags.input, flags.of_scenario(), show);
  return ran == ExitCode::ok ? done : ran;
}

/// Whether the first argument is a file with results rather than a machine or a plan.
bool is_of_results(const Console& console, const ReportFlags& flags) {
  std::error_code status;
  if (!flags.scenario.file.empty() || !std::filesystem::is_regular_file(flags.input.argument, status)) return false;
  const auto text = read_whole(console, flags.input.argument);
  return text && holds_results(*text);
}

/// The page of files with results.
ExitCode report_on_results(const Console& console, const CLI::App& command, const ReportFlags& flags) {
  const Mode mode{"files with results",
                  "the machine and its plans are not in them",
                  {"TOPOLOGY|PLAN", "COLLECTIVE", "FILE", "--collective", "--output", "--svg", "--png"},
                  {}};
  if (const auto conflict = find_idle_option(command, mode)) return console.refuse_usage(*conflict);
  std::vector<std::string> paths = {flags.input.argument};
  if (!flags.collective.name.empty()) paths.push_back(flags.collective.name);
  paths.insert(paths.end(), flags.more_files.begin(), flags.more_files.end());
  const auto files = load_results(console, paths, flags.of_nccl_tests);
  if (!files) {
    return files.error().is_usage ? console.refuse_usage(files.error().error) : console.refuse(files.error().error);
  }
  const auto page = make_results_page(*files);
  if (!page) return console.refuse(page.error());
  if (console.json) console.print(json_text(results_page_json(*page, *files)));
  auto written = write_page(console, flags, results_page(*page), page->verdict);
  if (written) written = write_pictures(console, flags, *page);
  return written ? ExitCode::ok : console.refuse(written.error());
}

ExitCode run(const Console& console, const CLI::App& command, const ReportFlags& flags) {
  if (const auto conflict = flags.find_conflict()) return console.refuse_usage(*conflict);
  if (console.json && flags.output == "-") {
    return console.refuse_usage(
        {ErrorCode::invalid_input, "--json and -o - would both write to standard output", "write the page to a file"});
  }
  if (!flags.scenario.file.empty()) return report_on_scenario(console, flags);
  if (is_of_results(console, flags)) return report_on_results(console, command, flags);
  if (!flags.more_files.empty()) {
    return console.refuse_usage({ErrorCode::invalid_input,
                                 flags.more_files.front() + " is one word too many: " + flags.input.argument +
                                     " is no file with results, which there may be several of",
                                 "name measurements with --measured FILE"});
  }
  auto input = load_input(console, flags.input, flags.plan_topology);
  if (!input) return refuse(console, input.error());
  if (const auto conflict = flags.find_conflict(*input)) return console.refuse_usage(*conflict);
  const auto done = report_on(console, command, flags, *input);
  if (done) return ExitCode::ok;
  return done.error().is_usage ? console.refuse_usage(done.error().error) : console.refuse(done.error().error);
}

}  // namespace

void add_report_command(CLI::App& app, Session& session) {
  PredictingVerb verb{"report", "Report on", "ring,tree,packing,auto", "Comma-separated", "", {}, {}, false,
                      true,     true};
  verb.of_scenarios = {"--output", "--svg", "--png"};
  verb.of_runs = {"--output", "--measured", "--timeline", "--svg", "--png", "--trace", "--trace-every"};
  const auto flags = std::make_shared<ReportFlags>(std::move(verb));
  CLI::App* command = app.add_subcommand(
      "report",
      "One HTML page of a machine, its plans, their predictions, timeline and measurements, or of files with results");
  flags->add_to(*command);
  command->add_option("FILE", flags->more_files, "Of results in the place of a machine: more of them")
      ->option_text("...");
  command->add_option("-o,--output", flags->output, "Write the page to this file (- is standard output)")
      ->option_text("FILE (report.html)");
  command
      ->add_option(
          "--measured", flags->measured,
          "What was measured, laid beside: results or a timeline of run, or nccl-tests output; may be repeated")
      ->option_text("FILE")
      ->allow_extra_args(false);
  command
      ->add_option("--collective", flags->of_nccl_tests,
                   "Of results: what nccl-tests measured, where neither its output nor the file's name says so")
      ->option_text("NAME");
  command
      ->add_option("--timeline", flags->timeline_size,
                   "Which of the sizes has its timeline in the page; the largest that fits when absent")
      ->option_text("SIZE");
  command->add_option("--svg", flags->svg, "Also write every picture into this folder as SVG")
      ->check(CLI::ExistingDirectory)
      ->option_text("FOLDER");
  command->add_option("--png", flags->png, "Also write every picture into this folder as PNG, by librsvg")
      ->check(CLI::ExistingDirectory)
      ->option_text("FOLDER");
  flags->trace.add_to(*command, "the run in the page, whole");
  command->footer(
      examples({"espalier report dgx1v-degraded all_gather -b 1K -e 1G -f 4 -o report.html",
                "espalier report plan.json -s 256M -o plan.html", "espalier report dgx1v all_reduce --png . --svg .",
                "espalier report --scenario training-step -o step.html",
                "espalier report simulated.json measured.json sim-trace.json run-trace.json -o runs.html",
                "espalier report dgx-h100 all_reduce --profile nccl-hopper --measured all_reduce_perf.log"}) +
      "\nThe page is one file that loads nothing. Without sizes it has those that were measured. docs/report.md says "
      "what it shows.");
  command->callback([flags, command, &session] {
    session.run = [flags, command, &session] { return run(session.console, *command, *flags); };
  });
}

}  // namespace espalier::cli
