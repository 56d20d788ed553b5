#include "cli/scenarios/scenario_sweep.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/counted.h"
#include "cli/output/json_text.h"
#include "cli/output/output_file.h"
#include "cli/output/progress.h"
#include "cli/scenarios/scenario_cases.h"
#include "sweep/cell_file.h"
#include "sweep/guarded/guarded_items.h"
#include "sweep/scenario_rows.h"

namespace espalier::cli {
namespace {

sweep::Cells cells_of(const ScenarioRow& row) {
  nlohmann::ordered_json json = row_json(row);
  json["schema"] = sweep::scenario_form().schema;
  sweep::Cells cells;
  for (const sweep::Column& column : sweep::scenario_form().columns) {
    const auto& value = json.at(std::string(column.name));
    cells.push_back(value.is_null() ? "" : value.is_string() ? value.get<std::string>() : value.dump());
  }
  return cells;
}

/// The rows of a sweep over scenarios, and the file that they go to as they come.
struct ScenarioRows {
  std::optional<sweep::CellFile> file;
  std::vector<sweep::Cells> rows;
  std::size_t known = 0;  ///< Rows that were there already, also such that are not of this sweep.
};

OrStop<sweep::RowFormat> find_format(const ScenarioSweep& sweep) {
  const bool is_straight = sweep.out.empty() || is_written_straight(sweep.out);
  if (is_straight && sweep.resume) {
    return usage(
        {ErrorCode::invalid_input, "--resume: " + sweep.out + " keeps no rows to go on with", "name a file with -o"});
  }
  if (is_straight) return sweep::RowFormat::csv;
  const auto by_name = sweep::format_of(sweep.out);
  if (!by_name) return usage({by_name.error().code, "-o: " + by_name.error().message, by_name.error().help});
  return *by_name;
}

OrStop<ScenarioRows> open_rows(const Console& console, const ScenarioSweep& sweep, sweep::RowFormat format) {
  ScenarioRows rows;
  if (sweep.out.empty() || is_written_straight(sweep.out)) return rows;
  auto file = sweep::CellFile::open(sweep.out, sweep::scenario_form(), {format, false}, sweep.resume,
                                    sweep::take_scenarios_into(rows.rows));
  if (!file) {
    const bool is_usage = file.error().code == ErrorCode::invalid_input && !sweep.resume;
    return is_usage ? usage(file.error()) : stop(file.error());
  }
  if (file->was_torn()) console.note("a torn line at the end of " + sweep.out + " was removed");
  rows.file = *std::move(file);
  rows.known = rows.rows.size();
  return rows;
}

constexpr const char* wrong_usage = "usage";
constexpr const char* unreadable = "unreadable";

/// The row of a case as a line, empty where it is known. Errors: `wrong_usage` or `unreadable`; why has been shown.
Result<std::string> line_of_case(const Console& console, const ScenarioCase& one, const std::set<sweep::Cells>& known) {
  const auto row =
      run_case(console, one, [&](const ScenarioRow& of) { return known.contains(sweep::key_of(cells_of(of))); });
  if (!row) return fail(ErrorCode::invalid_input, row.error() == ExitCode::wrong_usage ? wrong_usage : unreadable);
  if (!*row) return std::string();
  return nlohmann::json(cells_of(**row)).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The row of a case whose process ended.
std::optional<sweep::Cells> lost_row(const Console& console, const ScenarioCase& one, std::string_view said) {
  std::optional<ScenarioRow> lost;
  static_cast<void>(run_case(console, one, [&](const ScenarioRow& of) {
    lost = of;
    return true;
  }));
  if (!lost) return std::nullopt;
  lost->reason = fmt::format("internal error: {}", said);
  return cells_of(*lost);
}

/// Runs what has no row yet, in processes of their own; a row is in the file as soon as it is known.
OrStop<void> run_into(const Console& console, const std::vector<ScenarioCase>& cases, unsigned threads,
                      ScenarioRows& rows) {
  std::set<sweep::Cells> known;
  for (const sweep::Cells& row : rows.rows) known.insert(sweep::key_of(row));
  Console quiet = console;  // Warnings would come again for every row.
  quiet.quiet = true;
  std::vector<std::size_t> items(cases.size());
  std::ranges::generate(items, [i = std::size_t{0}]() mutable { return i++; });
  sweep::GuardedItems guarded(items, threads,
                              [&](std::size_t item) { return line_of_case(quiet, cases[item], known); });
  Progress progress(console, "simulating", cases.size());
  const auto take = [&](sweep::Cells row) -> Result<void> {
    rows.rows.push_back(std::move(row));
    return rows.file ? rows.file->append(rows.rows.back()) : Result<void>();
  };
  const auto ran = guarded.read(
      [&](std::size_t item, std::string_view line) -> Result<void> {
        progress.step(cases[item].scenario.file);
        return line.empty() ? Result<void>() : take(nlohmann::json::parse(line).get<sweep::Cells>());
      },
      [&](std::size_t item, std::string_view said) -> Result<void> {
        auto row = lost_row(quiet, cases[item], said);
        if (!row) return fail(ErrorCode::unavailable, fmt::format("{}: {}", cases[item].scenario.file, said));
        return take(*std::move(row));
      });
  sweep::sort_scenario_rows(rows.rows);
  if (ran) return {};
  const std::string& why = ran.error().message;
  if (why == wrong_usage || why == unreadable) return tl::unexpected(Stop{{}, why == wrong_usage, true});
  return stop(ran.error());
}

void print_counts(const Console& console, const ScenarioSweep& sweep, const ScenarioRows& rows) {
  std::map<std::string, std::size_t> failed;  // by reason
  std::size_t failures = 0;
  for (const sweep::Cells& row : rows.rows) {
    if (row.back().empty()) continue;
    ++failed[row.back()];
    ++failures;
  }
  if (console.json) {
    return console.print(json_text({{"schema", "espalier/sweep-summary/1"},
                                    {"out", sweep.out},
                                    {"rows", rows.rows.size()},
                                    {"known", rows.known},
                                    {"failed", failures},
                                    {"unplanned", 0}}));
  }
  std::string text = fmt::format("{}: {}", sweep.out, counted(rows.rows.size(), "row"));
  if (rows.known > 0) text += fmt::format(", {} of them there before", rows.known);
  if (failures > 0) text += fmt::format(", {} failed", failures);
  constexpr std::size_t max_shown = 8;
  std::size_t shown = 0;
  for (const auto& [reason, count] : failed) {
    text += ++shown > max_shown ? fmt::format("\n  ... {} more reasons", failed.size() - max_shown)
                                : fmt::format("\n  {} x {}", count, reason);
    if (shown > max_shown) break;
  }
  console.print(text + "\n");
}

}  // namespace

OrStop<void> sweep_scenarios(const Console& console, const SweepFlags& flags, const ScenarioSweep& sweep) {
  if (std::ranges::count(flags.scenarios, "-") > 0) {
    return usage({ErrorCode::invalid_input,
                  "--scenario: a sweep reads scenarios several times, and standard input only once",
                  "write it into a file"});
  }
  const auto format = find_format(sweep);
  if (!format) return tl::unexpected(format.error());
  const auto all = list_cases(console, flags, sweep.splits);
  if (!all) return tl::unexpected(all.error());
  const std::vector<ScenarioCase> cases = keep_shard(sweep.shard, *all);
  if (sweep.is_dry) {
    console.print(console.json ? json_text({{"schema", "espalier/sweep-count/1"},
                                            {"runs", cases.size()},
                                            {"of", all->size()},
                                            {"networks", std::max<std::size_t>(flags.topologies.size(), 1)}})
                               : fmt::format("{} of {}\n", counted(cases.size(), "run"), all->size()));
    return {};
  }
  auto rows = open_rows(console, sweep, *format);
  if (!rows) return tl::unexpected(rows.error());
  if (auto ran = run_into(console, cases, sweep.threads, *rows); !ran) return ran;
  if (sweep.out.empty() && console.json) {
    console.print_bytes(document_text(sweep::scenario_form(), rows->rows));
    return {};
  }
  const auto written = write_file(sweep.out.empty() ? "-" : sweep.out, [&](std::ostream& stream) {
    return write_cells(stream, sweep::scenario_form(), rows->rows, {*format, false});
  });
  if (!written) return stop(written.error());
  if (sweep.out.empty()) return {};
  print_counts(console, sweep, *rows);
  return {};
}

}  // namespace espalier::cli
