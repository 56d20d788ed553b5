#include "cli/scenarios/scenario_sweep.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/counted.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/table.h"
#include "cli/scenarios/scenario_rows.h"
#include "sweep/row_text.h"
#include "sweep/spec_values.h"

namespace espalier::cli {
namespace {

constexpr std::string_view row_schema = "espalier/scenario-sweep/1";

/// Every case with every one of the values; as they are where there are no values.
template <class Value, class Set>
void combine(std::vector<ScenarioCase>& cases, const std::vector<Value>& values, const Set& set) {
  if (values.empty()) return;
  std::vector<ScenarioCase> combined;
  for (const ScenarioCase& one : cases) {
    for (const Value& value : values) set(combined.emplace_back(one), value);
  }
  cases = std::move(combined);
}

/// A flag's list of values; none where it was not given.
template <class Parse>
auto values_of(const char* flag, const std::string& list, const Parse& parse)
    -> OrStop<std::decay_t<decltype(*parse(list))>> {
  if (list.empty()) return std::decay_t<decltype(*parse(list))>();
  auto values = parse(list);
  if (values) return *std::move(values);
  return usage({values.error().code, std::string(flag) + ": " + values.error().message, values.error().help});
}

/// Adds a case for each parallelism of a case.
OrStop<void> add_splits(const Console& console, ScenarioCase one, const SplitFlags& splits,
                        std::vector<ScenarioCase>& cases) {
  const auto loaded = load_scenario(console, one.topology, one.scenario);
  if (!loaded) return tl::unexpected(Stop{{}, loaded.error() == ExitCode::wrong_usage, true});
  if (!loaded->scenario.model) {
    return usage({ErrorCode::invalid_input,
                  "--split: " + one.scenario.file + " has no training step that is given as a model",
                  "sweep it by itself, without --split"});
  }
  auto listed = list_splits(splits, *loaded->scenario.model);
  if (!listed) return usage(listed.error());
  for (const scenario::Parallelism& parallelism : listed->possible) {
    one.parallelism = parallelism;
    cases.push_back(one);
  }
  return {};
}

OrStop<std::vector<ScenarioCase>> list_cases(const Console& console, const SweepFlags& flags,
                                             const ScenarioSweep& sweep) {
  const auto parameters = combine_parameters(flags.parameters);
  if (!parameters) return usage(parameters.error());
  const auto models = values_of("--models", flags.models, sweep::parse_models);
  if (!models) return tl::unexpected(models.error());
  const auto seeds = values_of("--seeds", flags.seeds, sweep::parse_seeds);
  if (!seeds) return tl::unexpected(seeds.error());
  std::vector<std::string> failures = {""};  // The whole machine takes part, too.
  failures.insert(failures.end(), flags.without.begin(), flags.without.end());
  ScenarioCase common;
  common.topology.slow = flags.slow;
  std::vector<ScenarioCase> cases = {common};
  combine(cases, sweep.scenarios, [](ScenarioCase& one, const std::string& file) { one.scenario.file = file; });
  combine(cases, flags.topologies, [](ScenarioCase& one, const std::string& name) { one.topology.argument = name; });
  combine(cases, *parameters, [](ScenarioCase& one, const auto& values) { one.topology.parameters = values; });
  combine(cases, failures,
          [](ScenarioCase& one, const std::string& failure) { one.topology.without = sweep::split_list(failure); });
  combine(cases, sweep::split_list(flags.profiles),
          [](ScenarioCase& one, const std::string& profile) { one.scenario.profile.name = profile; });
  combine(cases, *models, [](ScenarioCase& one, sim::ModelKind model) { one.scenario.model = sim::to_string(model); });
  combine(cases, *seeds, [](ScenarioCase& one, std::uint64_t seed) { one.scenario.seed = seed; });
  if (!sweep.splits.are_given()) return cases;
  std::vector<ScenarioCase> all;
  for (ScenarioCase& one : cases) {
    if (auto added = add_splits(console, std::move(one), sweep.splits, all); !added)
      return tl::unexpected(added.error());
  }
  return all;
}

/// Rows are dealt one by one.
std::vector<ScenarioCase> cases_of(const sweep::Shard& shard, const std::vector<ScenarioCase>& all) {
  std::vector<ScenarioCase> cases;
  for (std::size_t i = shard.number - 1; i < all.size(); i += shard.count) cases.push_back(all[i]);
  return cases;
}

std::string cell_of(const nlohmann::ordered_json& value) {
  if (value.is_null()) return {};
  if (!value.is_string()) return value.dump();
  return csv_field(value.get<std::string>());
}

std::string rows_text(const std::vector<ScenarioRow>& rows, sweep::RowFormat format) {
  std::string text;
  for (const ScenarioRow& row : rows) {
    nlohmann::ordered_json json = {{"schema", row_schema}};
    json.update(row_json(row));
    if (format == sweep::RowFormat::json_lines) {
      text += json.dump() + "\n";
      continue;
    }
    std::string names, cells;
    for (const auto& [name, value] : json.items()) {
      names += (names.empty() ? "" : ",") + name;
      cells += (cells.empty() ? "" : ",") + cell_of(value);
    }
    if (text.empty()) text = names + "\n";
    text += cells + "\n";
  }
  return text;
}

}  // namespace

OrStop<void> sweep_scenarios(const Console& console, const SweepFlags& flags, const ScenarioSweep& sweep) {
  sweep::RowFormat format = sweep::RowFormat::csv;
  if (!sweep.out.empty()) {
    const auto by_name = sweep::format_of(sweep.out);
    if (!by_name) return usage({by_name.error().code, "-o: " + by_name.error().message, by_name.error().help});
    format = *by_name;
  }
  if (std::ranges::count(sweep.scenarios, "-") > 0) {
    return usage({ErrorCode::invalid_input,
                  "--scenario: a sweep reads scenarios several times, and standard input only once",
                  "write it into a file"});
  }
  const auto all = list_cases(console, flags, sweep);
  if (!all) return tl::unexpected(all.error());
  const std::vector<ScenarioCase> cases = cases_of(sweep.shard, *all);
  if (sweep.is_dry) {
    console.print(console.json ? json_text({{"schema", "espalier/sweep-count/1"},
                                            {"runs", cases.size()},
                                            {"of", all->size()},
                                            {"networks", std::max<std::size_t>(flags.topologies.size(), 1)}})
                               : fmt::format("{} of {}\n", counted(cases.size(), "run"), all->size()));
    return {};
  }
  const auto rows = run_cases(console, cases, sweep.threads);
  if (!rows) return tl::unexpected(Stop{{}, rows.error() == ExitCode::wrong_usage, true});
  if (sweep.out.empty()) {
    nlohmann::ordered_json document = {{"schema", row_schema}, {"rows", nlohmann::ordered_json::array()}};
    for (const ScenarioRow& row : *rows) document["rows"].push_back(row_json(row));
    console.print_bytes(console.json ? json_text(document) : rows_text(*rows, format));
    return {};
  }
  const auto written = write_file(sweep.out, [&](std::ostream& stream) -> Result<void> {
    stream << rows_text(*rows, format);
    return {};
  });
  if (!written) return stop(written.error());
  const auto failed = std::ranges::count_if(*rows, [](const ScenarioRow& row) { return !row.figures; });
  console.print(console.json ? json_text({{"schema", "espalier/sweep-summary/1"},
                                          {"out", sweep.out},
                                          {"rows", rows->size()},
                                          {"known", 0},
                                          {"failed", failed},
                                          {"unplanned", 0}})
                             : fmt::format("{}: {}{}\n", sweep.out, counted(rows->size(), "row"),
                                           failed > 0 ? fmt::format(", {} failed", failed) : std::string()));
  return {};
}

}  // namespace espalier::cli
