#include "cli/scenarios/scenario_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>

#include "base/counted.h"
#include "base/parallel.h"
#include "cli/output/progress.h"
#include "cli/reports/scenario_output.h"
#include "scenario/run/run_job.h"
#include "sweep/row.h"
#include "topology/yaml/write_topology.h"

namespace espalier::cli {
namespace {

using scenario::Parallelism;

std::optional<Parallelism> parallelism_of(const scenario::Scenario& scenario) {
  if (!scenario.model) return std::nullopt;
  return scenario::parallelism_of(*scenario.model);
}

/// The name of the machine that something was taken from.
std::string whole_name(std::string name, const std::vector<std::string>& without) {
  const std::string taken = fmt::format(" without {}", fmt::join(without, ", "));
  const std::size_t at = without.empty() ? std::string::npos : name.find(taken);
  if (at != std::string::npos) name.erase(at, taken.size());
  return name;
}

std::string scenario_text_of(const std::string& argument) {
  std::ifstream stream(find_shipped(argument, "scenarios").path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

/// The row of a case, without its figures.
ScenarioRow blank_row(const LoadedScenario& loaded, const ScenarioCase& of) {
  const scenario::Scenario& what = loaded.scenario;
  return {what.name,
          whole_name(what.topology.name(), of.topology.without),
          sweep::digest_of(scenario_text_of(of.scenario.file) + "\n" + write_topology(what.topology)),
          fmt::format("{}", fmt::join(of.topology.parameters, " ")),
          fmt::format("{}", fmt::join(of.topology.without, ",")),
          loaded.profile,
          std::string(sim::to_string(what.settings.model)),
          what.disturbances.seed,
          what.topology.rank_count(),
          parallelism_of(what),
          std::nullopt,
          {}};
}

/// Why a scenario does not go with what is left of its machine.
std::string first_error(const std::vector<Diagnostic>& diagnostics) {
  const auto error = std::ranges::find(diagnostics, Severity::error, &Diagnostic::severity);
  return error == diagnostics.end() ? std::string() : error->message;
}

std::string percent_of(double part) { return fmt::format("{:.1f}", 100 * part); }
std::string in_gigabytes(Bytes bytes) { return fmt::format("{:.1f}", static_cast<double>(bytes.count) / 1e9); }

/// "as written", "TOO MUCH".
std::string note_on(const ScenarioRow& row, const SplitComparison& comparison) {
  std::string note = row.parallelism == comparison.written ? "as written" : "";
  if (!row.figures) return note + (note.empty() ? "" : ", ") + row.reason;
  if (row.fewer) {
    note += fmt::format("{}from {} and {} micro-batches", note.empty() ? "" : ", ", row.fewer->few, row.fewer->more);
  }
  if (!row.figures->fits()) note += std::string(note.empty() ? "" : ", ") + "TOO MUCH memory";
  return note;
}

}  // namespace

Picoseconds ScenarioFigures::step() const {
  return training ? Picoseconds{elapsed.count / std::max<std::int64_t>(training->steps, 1)} : elapsed;
}

bool ScenarioFigures::fits() const {
  return !training || training->capacity.count == 0 || training->memory.total() <= training->capacity;
}

std::array<double, call_uses.size()> exposed_by_use(const scenario::Job& job, const scenario::JobReport& report) {
  std::array<double, call_uses.size()> exposed{};
  for (const scenario::CallSummary& call : summarize_calls(job, report)) {
    const auto* const use = std::ranges::find(call_uses, scenario::use_of_call(call.label));
    if (use != call_uses.end()) exposed[static_cast<std::size_t>(use - call_uses.begin())] += call.exposed;
  }
  return exposed;
}

namespace {

/// `part` of its micro-batches are there: calls are cut as those of all of them would be.
Result<ScenarioFigures> run_loaded(const scenario::Scenario& what, double part = 1) {
  scenario::RunSettings settings = what.settings;
  settings.compare_with_alone = false;  // No column says it.
  settings.max_chunk_hops = std::llround(static_cast<double>(settings.max_chunk_hops) * part);
  const auto report = scenario::run_job(what.job, what.topology, what.disturbances, settings);
  if (!report) return tl::unexpected(report.error());
  return ScenarioFigures{report->elapsed, summarize_ranks(what.job, *report), exposed_by_use(what.job, *report),
                         what.training};
}

/// Of a step of so many micro-batches, when each past `few` adds as much to every part of the time.
ScenarioFigures extrapolate(const ScenarioFigures& few, const ScenarioFigures& more,
                            const scenario::FewerBatches& batches, std::int64_t micro_batches) {
  const double further =
      static_cast<double>(micro_batches - batches.more) / static_cast<double>(batches.more - batches.few);
  const auto few_time = static_cast<double>(few.elapsed.count);
  const auto more_time = static_cast<double>(more.elapsed.count);
  const double time = more_time + further * (more_time - few_time);
  const auto part = [&](double of_few, double of_more) {
    const double sum = of_more * more_time + further * (of_more * more_time - of_few * few_time);
    return std::clamp(sum / time, 0.0, 1.0);
  };
  ScenarioFigures figures = more;
  figures.elapsed.count = std::llround(time);
  figures.time.compute = part(few.time.compute, more.time.compute);
  figures.time.exposed = part(few.time.exposed, more.time.exposed);
  figures.time.waiting = part(few.time.waiting, more.time.waiting);
  figures.time.idle = part(few.time.idle, more.time.idle);
  for (std::size_t i = 0; i < figures.exposed_by.size(); ++i) {
    figures.exposed_by[i] = part(few.exposed_by[i], more.exposed_by[i]);
  }
  return figures;
}

/// The longer of the two steps has been loaded.
Result<ScenarioFigures> estimate(const Console& console, const ScenarioCase& one, const scenario::Scenario& more) {
  const auto few = try_load_scenario(console, one.topology, one.scenario, one.parallelism, one.fewer->few);
  if (!few) return fail(ErrorCode::invalid_input, first_error(few.error().diagnostics));
  const std::int64_t all = more.model->micro_batches();
  const auto part = [&](std::int64_t of_all) { return static_cast<double>(of_all) / static_cast<double>(all); };
  const auto of_few = run_loaded(few->scenario, part(one.fewer->few));
  if (!of_few) return of_few;
  const auto of_more = run_loaded(more, part(one.fewer->more));
  if (!of_more) return of_more;
  return extrapolate(*of_few, *of_more, *one.fewer, all);
}

}  // namespace

tl::expected<std::optional<ScenarioRow>, ExitCode> run_case(const Console& console, const ScenarioCase& one,
                                                            const std::function<bool(const ScenarioRow&)>& is_known) {
  const auto micro_batches = one.fewer ? std::optional(one.fewer->more) : std::nullopt;
  const auto loaded = try_load_scenario(console, one.topology, one.scenario, one.parallelism, micro_batches);
  if (!loaded) {
    const LoadFailure& failure = loaded.error();
    ScenarioCase whole = one;
    whole.topology.without.clear();
    const bool is_damage = !one.topology.without.empty() && has_errors(failure.diagnostics);
    const auto intact = is_damage ? try_load_scenario(console, whole.topology, one.scenario, one.parallelism)
                                  : tl::expected<LoadedScenario, LoadFailure>(tl::unexpected(failure));
    if (!intact) {
      console.show(failure.diagnostics);
      return tl::unexpected(failure.code);
    }
    ScenarioRow row = blank_row(*intact, one);
    row.reason = first_error(failure.diagnostics);
    if (is_known && is_known(row)) return std::nullopt;
    return row;
  }
  const scenario::Scenario& what = loaded->scenario;
  ScenarioRow row = blank_row(*loaded, one);
  if (is_known && is_known(row)) return std::nullopt;
  row.fewer = one.fewer;
  auto figures = one.fewer ? estimate(console, one, what) : run_loaded(what);
  if (figures) {
    row.figures = *std::move(figures);
  } else {
    row.reason = figures.error().message;
  }
  return row;
}

tl::expected<std::vector<ScenarioRow>, ExitCode> run_cases(const Console& console,
                                                           const std::vector<ScenarioCase>& cases, unsigned threads) {
  std::vector<std::optional<ScenarioRow>> rows(cases.size());
  std::vector<ExitCode> codes(cases.size(), ExitCode::ok);
  Console quiet = console;  // What there is to say of a scenario has been said once.
  quiet.quiet = true;
  Progress progress(console, "simulating", cases.size());
  run_parallel(cases.size(), threads, [&](std::size_t i) {
    const ScenarioCase& one = cases[i];
    progress.step(one.parallelism ? describe(*one.parallelism) : one.scenario.file);
    auto row = run_case(quiet, one);
    if (row) {
      rows[i] = *std::move(row);
    } else {
      codes[i] = row.error();
    }
  });
  std::vector<ScenarioRow> all;
  for (std::size_t i = 0; i < cases.size(); ++i) {
    if (!rows[i]) return tl::unexpected(codes[i]);
    all.push_back(*std::move(rows[i]));
  }
  return all;
}

nlohmann::ordered_json row_json(const ScenarioRow& row) {
  nlohmann::ordered_json json = {{"scenario", row.scenario},     {"topology", row.topology}, {"digest", row.digest},
                                 {"parameters", row.parameters}, {"without", row.without},   {"profile", row.profile},
                                 {"model", row.model},           {"seed", row.seed},         {"ranks", row.ranks}};
  for (const auto& [name, part] : {std::pair{"tensor", &Parallelism::tensor},
                                   {"pipeline", &Parallelism::pipeline},
                                   {"data", &Parallelism::data},
                                   {"expert", &Parallelism::expert},
                                   {"context", &Parallelism::context},
                                   {"expert_tensor", &Parallelism::expert_tensor},
                                   {"shard_group", &Parallelism::shard_group}}) {
    json[name] = row.parallelism ? nlohmann::ordered_json((*row.parallelism).*part) : nlohmann::ordered_json(nullptr);
  }
  json["status"] = row.figures ? "ok" : "failed";
  for (const char* key : {"time", "step", "compute", "exposed", "waiting", "idle"}) json[key] = nullptr;
  for (const std::string_view use : call_uses) json["exposed_" + std::string(use)] = nullptr;
  for (const char* key : {"tokens_per_second", "model_flops_utilisation", "memory", "capacity", "low", "high"}) {
    json[key] = nullptr;
  }
  json["outside"] = "";
  json["reason"] = row.reason;
  if (!row.figures) return json;
  const ScenarioFigures& figures = *row.figures;
  json["time"] = figures.elapsed.seconds();
  json["step"] = figures.step().seconds();
  json["compute"] = figures.time.compute;
  json["exposed"] = figures.time.exposed;
  json["waiting"] = figures.time.waiting;
  json["idle"] = figures.time.idle;
  if (!figures.training) return json;
  for (std::size_t i = 0; i < call_uses.size(); ++i) {
    json["exposed_" + std::string(call_uses[i])] = figures.exposed_by[i];
  }
  json["tokens_per_second"] = figures.training->tokens_per_second(figures.elapsed);
  json["model_flops_utilisation"] = figures.training->model_flops_utilisation(figures.elapsed);
  json["memory"] = figures.training->memory.total().count;
  if (figures.training->capacity.count > 0) json["capacity"] = figures.training->capacity.count;
  json["outside"] = figures.training->outside;
  if (const auto& range = figures.training->range) {
    json["low"] = figures.step().seconds() * range->low;
    json["high"] = figures.step().seconds() * range->high;
  }
  return json;
}

OrStop<SplitComparison> compare_splits(const Console& console, const TopologyFlags& topology,
                                       const ScenarioFlags& flags, const SplitFlags& splits) {
  if (flags.file == "-") {
    return usage({ErrorCode::invalid_input, "--split reads the scenario for every row, and standard input only once",
                  "write it into a file"});
  }
  const auto written = load_scenario(console, topology, flags);
  if (!written) return tl::unexpected(Stop{{}, written.error() == ExitCode::wrong_usage, true});
  if (!written->scenario.model) {
    return usage({ErrorCode::invalid_input, "--split: " + flags.file + " has no training step that is given as a model",
                  "leave --split out"});
  }
  auto listed = list_splits(splits, *written->scenario.model);
  if (!listed) return usage(listed.error());
  std::vector<ScenarioCase> cases;
  // A row of more tasks would take a quarter of a minute and more.
  constexpr double max_tasks_of_row = 1.5e6;
  for (const Parallelism& parallelism : listed->possible) {
    const auto model = scenario::spread(*written->scenario.model, parallelism);
    cases.push_back({topology, flags, parallelism, scenario::fewer_batches(model, max_tasks_of_row)});
  }
  auto rows = run_cases(console, cases, usable_threads());
  if (!rows) return tl::unexpected(Stop{{}, rows.error() == ExitCode::wrong_usage, true});
  std::ranges::stable_sort(*rows, {}, [](const ScenarioRow& row) {
    return row.figures ? row.figures->elapsed : Picoseconds{std::numeric_limits<std::int64_t>::max()};
  });
  return SplitComparison{*std::move(rows), parallelism_of(written->scenario), listed->refused, std::move(listed->why)};
}

namespace {

struct PartColumn {
  std::string_view title, above;
  std::int64_t Parallelism::*part;
};

/// Parts of a parallelism that have a column: the first always, the others where a row has them.
std::vector<PartColumn> part_columns(const std::vector<ScenarioRow>& rows) {
  constexpr Parallelism usual;
  std::vector<PartColumn> shown;
  for (const PartColumn& column : {PartColumn{"tensor", "ranks of", &Parallelism::tensor},
                                   {"pipeline", "ranks of", &Parallelism::pipeline},
                                   {"data", "ranks of", &Parallelism::data},
                                   {"expert", "ranks of", &Parallelism::expert},
                                   {"context", "ranks of", &Parallelism::context},
                                   {"expert tensor", "ranks of", &Parallelism::expert_tensor},
                                   {"shard group", "", &Parallelism::shard_group}}) {
    const bool is_used = shown.size() < 4 || std::ranges::any_of(rows, [&](const ScenarioRow& row) {
                           return (*row.parallelism).*column.part != usual.*column.part;
                         });
    if (is_used) shown.push_back(column);
  }
  return shown;
}

}  // namespace

Table splits_table(const SplitComparison& comparison, bool has_ranges) {
  Table table;
  const std::vector<PartColumn> parts = part_columns(comparison.rows);
  const bool has_context = std::ranges::count(parts, &Parallelism::context, &PartColumn::part) > 0;
  const std::size_t uses = has_context ? call_uses.size() : call_uses.size() - 1;
  for (const PartColumn& column : parts) {
    table.add_column(std::string(column.title), "", Table::Align::right, std::string(column.above));
  }
  table.add_column("step", "(ms)");
  table.add_column("tokens/s");
  table.add_column("MFU", "(%)");
  table.add_column("compute", "(%)");
  table.add_column("exposed", "(%)");
  for (std::size_t i = 0; i < uses; ++i) {
    table.add_column("in " + std::string(call_uses[i]), "(%)", Table::Align::right, "exposed");
  }
  table.add_column("waiting", "(%)");
  table.add_column("memory", "(GB)");
  table.add_column("of", "(GB)", Table::Align::right, "memory");
  table.add_column("note", "", Table::Align::left);
  if (has_ranges) {
    table.add_column("low", "(ms)");
    table.add_column("high", "(ms)");
    table.add_column("outside", "", Table::Align::left);
  }
  for (const ScenarioRow& row : comparison.rows) {
    std::vector<std::string> cells;
    for (const PartColumn& column : parts) {
      const std::int64_t value = (*row.parallelism).*column.part;
      cells.push_back(value == 0 ? "-" : std::to_string(value));
    }
    if (row.figures) {
      const ScenarioFigures& figures = *row.figures;
      const scenario::TrainingFigures& training = *figures.training;
      cells.push_back(fmt::format("{:.2f}", figures.step().seconds() * 1e3));
      cells.push_back(fmt::format("{:.0f}", training.tokens_per_second(figures.elapsed)));
      cells.push_back(percent_of(training.model_flops_utilisation(figures.elapsed)));
      cells.push_back(percent_of(figures.time.compute));
      cells.push_back(percent_of(figures.time.exposed));
      for (std::size_t i = 0; i < uses; ++i) cells.push_back(percent_of(figures.exposed_by[i]));
      cells.push_back(percent_of(figures.time.waiting));
      cells.push_back(in_gigabytes(training.memory.total()));
      cells.push_back(training.capacity.count > 0 ? in_gigabytes(training.capacity) : "-");
    } else {
      cells.resize(cells.size() + 8 + uses, "-");
    }
    cells.push_back(note_on(row, comparison));
    if (has_ranges && row.figures) {
      const double step = row.figures->step().seconds() * 1e3;
      const auto& range = row.figures->training->range;
      for (const double factor : {range ? range->low : 0, range ? range->high : 0}) {
        cells.push_back(range ? fmt::format("{:.2f}", step * factor) : "");
      }
      cells.push_back(row.figures->training->outside);
    }
    table.add_row(std::move(cells));
  }
  return table;
}

std::string splits_text(const SplitComparison& comparison) {
  const ScenarioRow& first = comparison.rows.front();
  std::string text = fmt::format(
      "# {} on {}  {}  model {}{}  {}\n#\n", first.scenario, first.topology, counted(first.ranks, "rank"), first.model,
      first.profile.empty() ? "" : "  profile " + first.profile, counted(comparison.rows.size(), "parallelism"));
  text += splits_table(comparison, false).text() + "#\n";
  const auto known =
      std::ranges::find_if(comparison.rows, [](const ScenarioRow& row) { return row.figures.has_value(); });
  if (known != comparison.rows.end()) text += "# error: " + step_range_text(*known->figures->training) + "\n";
  if (std::ranges::any_of(comparison.rows, [](const ScenarioRow& row) { return row.figures && row.fewer; })) {
    text += "# estimated: steps of many tasks, from two with so many micro-batches; each further one takes as long\n";
  }
  const auto fits = [](const ScenarioRow& row) { return row.figures && row.figures->fits(); };
  const auto best = std::ranges::find_if(comparison.rows, fits);
  const auto written = std::ranges::find(comparison.rows, comparison.written, &ScenarioRow::parallelism);
  if (best == comparison.rows.end()) {
    text += "# none of them fits into the memory of a rank\n";
  } else {
    text += "# fastest that fits: " + describe(*best->parallelism);
    if (written != comparison.rows.end() && written != best && written->figures) {
      text += fmt::format(", {:.2f} times as fast as written",
                          static_cast<double>(written->figures->elapsed.count) /
                              static_cast<double>(std::max<std::int64_t>(best->figures->elapsed.count, 1)));
    }
    text += "\n";
  }
  if (comparison.refused == 0) return text;
  return text +
         fmt::format("# {} more the model cannot be spread by, such as {}\n", comparison.refused, comparison.why);
}

nlohmann::ordered_json splits_json(const SplitComparison& comparison) {
  nlohmann::ordered_json document = {{"schema", "espalier/parallelisms/1"},
                                     {"scenario", comparison.rows.front().scenario},
                                     {"topology", comparison.rows.front().topology},
                                     {"written", nullptr},
                                     {"rows", nlohmann::ordered_json::array()},
                                     {"refused", comparison.refused},
                                     {"why", comparison.why}};
  if (const auto& written = comparison.written) {
    document["written"] = {{"tensor", written->tensor},
                           {"pipeline", written->pipeline},
                           {"data", written->data},
                           {"expert", written->expert},
                           {"context", written->context},
                           {"expert_tensor", written->expert_tensor},
                           {"shard_group", written->shard_group}};
  }
  for (const ScenarioRow& row : comparison.rows) {
    nlohmann::ordered_json json = row_json(row);
    json["estimated_from"] = nullptr;
    if (row.fewer) json["estimated_from"] = {row.fewer->few, row.fewer->more};
    document["rows"].push_back(std::move(json));
  }
  return document;
}

}  // namespace espalier::cli
