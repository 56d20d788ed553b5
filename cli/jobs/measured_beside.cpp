#include "cli/jobs/measured_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <sstream>

#include "cli/jobs/simulate_sizes.h"
#include "cli/pages/comparison_tables.h"
#include "compare/compare_results.h"
#include "compare/compare_timelines.h"
#include "compare/overlay_svg.h"

namespace espalier::cli {
namespace {

compare::Measurements predicted_rows(const Simulation& simulation) {
  compare::Measurements predicted;
  predicted.file = "predicted";
  predicted.origin = "simulation";
  predicted.topology = simulation.topology->name();
  predicted.shares = simulation.collective.shares;
  for (const forecast::CandidateRun& result : simulation.results) {
    compare::Measurement row;
    row.collective = to_string(simulation.collective.kind);
    row.ranks = simulation.collective.rank_count;
    row.size = result.size;
    row.type = simulation.type;
    row.algorithm = result.algorithm;
    row.planner = result.planner();
    row.seconds = result.report.elapsed.seconds();
    predicted.rows.push_back(std::move(row));
  }
  return predicted;
}

/// The simulated spans over the measured ones.
Result<void> add_overlay(report::Measured& measured, const forecast::CandidateRun& result, const Simulation& simulation,
                         const forecast::RunOptions& how, const MeasuredFile& file) {
  auto simulated = forecast::run_in_detail(result, *simulation.topology, how);
  if (!simulated) return tl::unexpected(simulated.error());
  std::ostringstream drawing;
  const auto drawn =
      compare::write_overlay_svg(drawing, *simulated->timeline, *file.timeline, {"simulated", file.rows.file});
  if (!drawn) return drawn;
  measured.overlay = drawing.str();
  const auto comparison = compare::compare_timelines(std::move(*simulated->timeline), *file.timeline);
  measured.tables.push_back(busy_links_table(
      comparison, {"Busy times of links, simulated against " + file.rows.file, "simulated", "measured"}));
  return {};
}

}  // namespace

OrStop<std::vector<MeasuredFile>> load_measured(const Console& console, const std::vector<std::string>& paths,
                                                CollectiveKind collective) {
  auto runs = load_runs(console, paths, "");
  if (!runs) return tl::unexpected(runs.error());
  std::vector<MeasuredFile> files;
  for (auto& [path, run] : *runs) {
    MeasuredFile file;
    if (auto* const timeline = std::get_if<Timeline>(&run)) {
      auto rows = compare::measurements_of(*timeline, path);
      if (!rows) return stop(rows.error());
      file = {std::move(*rows), std::move(*timeline)};
    } else {
      file.rows = std::get<compare::Measurements>(std::move(run));
    }
    std::string others;
    for (compare::Measurement& row : file.rows.rows) {
      if (row.collective.empty()) row.collective = to_string(collective);
      if (row.collective != to_string(collective)) others = row.collective;
    }
    std::erase_if(file.rows.rows,
                  [&](const compare::Measurement& row) { return row.collective != to_string(collective); });
    if (file.rows.rows.empty()) {
      return stop({ErrorCode::invalid_input, fmt::format("{} has no times of {}", path, to_string(collective)),
                   others.empty() ? "" : "it has those of " + others});
    }
    files.push_back(std::move(file));
  }
  return files;
}

std::vector<Bytes> measured_sizes(const std::vector<MeasuredFile>& files, std::int64_t element_size) {
  std::vector<Bytes> sizes;
  for (const MeasuredFile& file : files) {
    for (const compare::Measurement& row : file.rows.rows) {
      if (row.size.count > 0 && row.size.count % element_size == 0) sizes.push_back(row.size);
    }
  }
  std::ranges::sort(sizes);
  sizes.erase(std::ranges::unique(sizes).begin(), sizes.end());
  return sizes;
}

Result<report::Measured> lay_beside(const Simulation& simulation, const forecast::RunOptions& how,
                                    const std::vector<MeasuredFile>& files) {
  report::Measured measured;
  const compare::Measurements predicted = predicted_rows(simulation);
  const forecast::CandidateRun* const measured_run = find_measured_run(simulation, files);
  for (const MeasuredFile& file : files) {
    add_curves(measured.curves, file.rows, "in " + file.rows.file);
    // What was measured without a name was NCCL, which a profile predicts by that name.
    const bool is_of_nccl =
        std::ranges::all_of(file.rows.rows, &std::string::empty, &compare::Measurement::algorithm) &&
        std::ranges::count(simulation.algorithms, "nccl") > 0;
    const auto comparison = compare::compare_results(predicted, file.rows, is_of_nccl ? "nccl" : "");
    if (!comparison) return tl::unexpected(comparison.error());
    measured.findings.push_back(errors_sentence(*comparison, file.rows.file));
    measured.tables.push_back(
        sizes_table(*comparison, {"Predicted against " + file.rows.file, "predicted", "measured"}));
    if (!file.timeline || measured_run == nullptr || !measured.overlay.empty()) continue;
    const auto drawn = add_overlay(measured, *measured_run, simulation, how, file);
    if (!drawn) return tl::unexpected(drawn.error());
  }
  return measured;
}

const forecast::CandidateRun* find_measured_run(const Simulation& simulation, const std::vector<MeasuredFile>& files) {
  const auto file = std::ranges::find_if(files, [](const MeasuredFile& one) { return one.timeline.has_value(); });
  if (file == files.end()) return nullptr;
  const compare::Measurement& row = file->rows.rows.front();
  const auto result = std::ranges::find_if(simulation.results, [&](const forecast::CandidateRun& run) {
    return run.size == row.size && (run.algorithm == row.algorithm || run.planner() == row.algorithm);
  });
  return result == simulation.results.end() ? nullptr : &*result;
}

}  // namespace espalier::cli
