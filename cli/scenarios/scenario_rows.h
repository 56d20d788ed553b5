#pragma once

// Tested by: tests/unit/cli/scenarios/scenario_rows_test.cpp

#include <array>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/stop.h"
#include "cli/output/table.h"
#include "cli/scenarios/simulate_scenario.h"
#include "cli/scenarios/split_flags.h"
#include "scenario/report/report.h"

namespace espalier::cli {

/// What one run of a scenario is of.
struct ScenarioCase {
  TopologyFlags topology;  ///< Without an argument: the machine that the scenario names.
  ScenarioFlags scenario;
  std::optional<scenario::Parallelism> parallelism;  ///< Instead of the file's.
  std::optional<scenario::FewerBatches> fewer;       ///< Of a long step: it is estimated from these.
};

/// What the calls of a training step are for (scenario::use_of_call), in the order of ScenarioFigures::exposed_by.
inline constexpr std::array<std::string_view, 5> call_uses = {"tensor", "pipeline", "data", "expert", "context"};

/// What a run gave.
struct ScenarioFigures {
  Picoseconds elapsed;
  scenario::RankSummary time;
  std::array<double, call_uses.size()> exposed_by{};  ///< Parts of the time elapsed, in the mean over ranks.
  std::optional<scenario::TrainingFigures> training;

  /// Of one training step; of all, where the scenario has none.
  [[nodiscard]] Picoseconds step() const;
  /// False where a rank needs more memory than it has.
  [[nodiscard]] bool fits() const;
};

/// One run, and what it gave or why it gave nothing.
struct ScenarioRow {
  std::string scenario;
  std::string topology;  ///< The name of the whole machine.
  std::string digest;    ///< sweep::digest_of the scenario's text and the machine that it ran on.
  std::string parameters, without, profile, model;
  std::uint64_t seed = 0;
  std::size_t ranks = 0;
  std::optional<scenario::Parallelism> parallelism;  ///< Of a training step that is given as a model.
  std::optional<ScenarioFigures> figures;
  std::string reason;                           ///< Without figures.
  std::optional<scenario::FewerBatches> fewer;  ///< What the figures are estimated from.
};

/// The part of the time elapsed that is exposed, by what for.
std::array<double, call_uses.size()> exposed_by_use(const scenario::Job& job, const scenario::JobReport& report);

/// Runs a case, unless `is_known` says of its row, which has no figures yet, that it is: nothing then. A run that
/// fails, and a scenario that does not go with what --without leaves of its machine, is a row with the reason. Gives
/// the exit code where the scenario cannot be read at all, which has been shown.
tl::expected<std::optional<ScenarioRow>, ExitCode> run_case(
    const Console& console, const ScenarioCase& one, const std::function<bool(const ScenarioRow&)>& is_known = {});

/// Runs the cases on so many threads; rows in their order. Gives the exit code of a case whose scenario could not be
/// read, which has been shown; a run that fails is a row with the reason.
tl::expected<std::vector<ScenarioRow>, ExitCode> run_cases(const Console& console,
                                                           const std::vector<ScenarioCase>& cases, unsigned threads);

/// A row as one flat object, with the same keys always.
nlohmann::ordered_json row_json(const ScenarioRow& row);

/// What-if: the parallelisms of one training step, fastest first.
struct SplitComparison {
  std::vector<ScenarioRow> rows;
  std::optional<scenario::Parallelism> written;  ///< What the file says.
  std::size_t refused = 0;
  std::string why;  ///< Of the first that the model cannot be spread by.
};

/// Errors: usage where the scenario has no model to spread, or --split is wrong; those of reading have been shown.
OrStop<SplitComparison> compare_splits(const Console& console, const TopologyFlags& topology,
                                       const ScenarioFlags& flags, const SplitFlags& splits);

/// `has_ranges`: with what is known of errors, in columns.
Table splits_table(const SplitComparison& comparison, bool has_ranges);
std::string splits_text(const SplitComparison& comparison);
nlohmann::ordered_json splits_json(const SplitComparison& comparison);

}  // namespace espalier::cli
