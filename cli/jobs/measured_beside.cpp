#include "cli/jobs/measured_beside.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <sstream>

#include "base/counted.h"
#include "cli/jobs/simulate_sizes.h"
#include "cli/reports/compare_output.h"
#include "compare/compare_results.h"
#include "compare/compare_timelines.h"
#include "compare/overlay_svg.h"
#include "report/html_text.h"

namespace espalier::cli {
namespace {

compare::Measurements predicted_rows(const Simulation& simulation) {
  compare::Measurements predicted;
  predicted.file = "predicted";
  predicted.origin = "simulation";
  predicted.topology = simulation.topology->name();
  for (const CandidateRun& result : simulation.results) {
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

/// A curve per algorithm of the file.
void add_curves(std::vector<report::Curve>& curves, const compare::Measurements& rows) {
  std::map<std::string, report::Curve> by_algorithm;
  for (const compare::Measurement& row : rows.rows) {
    report::Curve& curve = by_algorithm[row.algorithm];
    curve.name = row.algorithm.empty() ? rows.file : fmt::format("{} in {}", row.algorithm, rows.file);
    curve.points.push_back({row.size, row.seconds, row.planner == row.algorithm ? "" : row.planner});
  }
  for (auto& [algorithm, curve] : by_algorithm) {
    std::ranges::stable_sort(curve.points, {}, &report::CurvePoint::size);
    curves.push_back(std::move(curve));
  }
}

std::string in_microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }

report::ReportTable sizes_table(const compare::ResultsComparison& comparison, const std::string& file) {
  report::ReportTable table{
      "errors-by-size",
      "Predicted against " + file,
      {{"size (B)", true}, {"algorithm"}, {"predicted (us)", true}, {"measured (us)", true}, {"error (%)", true}},
      {}};
  for (const compare::ComparedSize& size : comparison.sizes) {
    table.rows.push_back({std::to_string(size.size.count), size.algorithm, in_microseconds(size.a),
                          in_microseconds(size.b), error_percent(size.error)});
  }
  return table;
}

report::ReportTable busy_links_table(const compare::TimelineComparison& comparison, const std::string& file) {
  report::ReportTable table{
      "errors-by-link",
      "Busy times of links, simulated against " + file,
      {{"link"}, {"chunks", true}, {"simulated (us)", true}, {"measured (us)", true}, {"error (%)", true}},
      {}};
  for (const compare::LinkComparison& link : comparison.links) {
    table.rows.push_back({link.name, std::to_string(link.chunks), in_microseconds(link.busy.a.seconds()),
                          in_microseconds(link.busy.b.seconds()), error_percent(link.busy.error())});
  }
  return table;
}

std::string errors_sentence(const compare::ResultsComparison& comparison, const std::string& file) {
  const compare::ComparedSize& worst = comparison.sizes[comparison.worst];
  return fmt::format("Against {}: over {} the prediction's median error is {:.1f} %, the largest {} % at {}.", file,
                     counted(comparison.sizes.size(), "row"), 100 * comparison.errors.median,
                     error_percent(worst.error), report::size_text(worst.size));
}

/// The simulated spans over the measured ones.
Result<void> add_overlay(report::Measured& measured, const CandidateRun& result, const Simulation& simulation,
                         const CandidateRuns::Options& how, const MeasuredFile& file) {
  auto simulated = run_in_detail(result, *simulation.topology, how);
  if (!simulated) return tl::unexpected(simulated.error());
  std::ostringstream drawing;
  const auto drawn =
      compare::write_overlay_svg(drawing, *simulated->timeline, *file.timeline, {"simulated", file.rows.file});
  if (!drawn) return drawn;
  measured.overlay = drawing.str();
  const auto comparison = compare::compare_timelines(std::move(*simulated->timeline), *file.timeline);
  measured.tables.push_back(busy_links_table(comparison, file.rows.file));
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

Result<report::Measured> lay_beside(const Simulation& simulation, const CandidateRuns::Options& how,
                                    const std::vector<MeasuredFile>& files) {
  report::Measured measured;
  const compare::Measurements predicted = predicted_rows(simulation);
  const CandidateRun* const measured_run = find_measured_run(simulation, files);
  for (const MeasuredFile& file : files) {
    add_curves(measured.curves, file.rows);
    // What was measured without a name was NCCL, which a profile predicts by that name.
    const bool is_of_nccl =
        std::ranges::all_of(file.rows.rows, &std::string::empty, &compare::Measurement::algorithm) &&
        std::ranges::count(simulation.algorithms, "nccl") > 0;
    const auto comparison = compare::compare_results(predicted, file.rows, is_of_nccl ? "nccl" : "");
    if (!comparison) return tl::unexpected(comparison.error());
    measured.findings.push_back(errors_sentence(*comparison, file.rows.file));
    measured.tables.push_back(sizes_table(*comparison, file.rows.file));
    if (!file.timeline || measured_run == nullptr || !measured.overlay.empty()) continue;
    const auto drawn = add_overlay(measured, *measured_run, simulation, how, file);
    if (!drawn) return tl::unexpected(drawn.error());
  }
  return measured;
}

const CandidateRun* find_measured_run(const Simulation& simulation, const std::vector<MeasuredFile>& files) {
  const auto file = std::ranges::find_if(files, [](const MeasuredFile& one) { return one.timeline.has_value(); });
  if (file == files.end()) return nullptr;
  const compare::Measurement& row = file->rows.rows.front();
  const auto result = std::ranges::find_if(simulation.results, [&](const CandidateRun& run) {
    return run.size == row.size && (run.algorithm == row.algorithm || run.planner() == row.algorithm);
  });
  return result == simulation.results.end() ? nullptr : &*result;
}

}  // namespace espalier::cli
