#include "cli/pages/comparison_tables.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/counted.h"
#include "cli/reports/compare_output.h"
#include "report/html_text.h"

namespace espalier::cli {
namespace {

std::string in_microseconds(double seconds) { return fmt::format("{:.2f}", seconds * 1e6); }
std::string in_microseconds(Picoseconds time) { return in_microseconds(time.seconds()); }

report::ReportTable::Column time_column(const std::string& name) { return {name + " (us)", true}; }

}  // namespace

void add_curves(std::vector<report::Curve>& curves, const compare::Measurements& rows, const std::string& source) {
  std::map<std::string, report::Curve> by_algorithm;
  for (const compare::Measurement& row : rows.rows) {
    report::Curve& curve = by_algorithm[row.algorithm];
    curve.name = row.algorithm.empty() ? source.substr(source.find(' ') + 1) : row.algorithm + " " + source;
    curve.points.push_back({row.size, row.seconds, row.planner == row.algorithm ? "" : row.planner});
  }
  for (auto& [algorithm, curve] : by_algorithm) {
    std::ranges::stable_sort(curve.points, {}, &report::CurvePoint::size);
    curves.push_back(std::move(curve));
  }
}

report::ReportTable sizes_table(const compare::ResultsComparison& comparison, const SideNames& names) {
  report::ReportTable table{
      "errors-by-size",
      names.caption,
      {{"size (B)", true}, {"algorithm"}, time_column(names.a), time_column(names.b), {"error (%)", true}},
      {}};
  for (const compare::ComparedSize& size : comparison.sizes) {
    table.rows.push_back({std::to_string(size.size.count), size.algorithm, in_microseconds(size.a),
                          in_microseconds(size.b), error_percent(size.error)});
  }
  return table;
}

report::ReportTable busy_links_table(const compare::TimelineComparison& comparison, const SideNames& names) {
  report::ReportTable table{
      "errors-by-link",
      names.caption,
      {{"link"}, {"chunks", true}, time_column(names.a), time_column(names.b), {"error (%)", true}},
      {}};
  for (const compare::LinkComparison& link : comparison.links) {
    table.rows.push_back({link.name, std::to_string(link.chunks), in_microseconds(link.busy.a),
                          in_microseconds(link.busy.b), error_percent(link.busy.error())});
  }
  return table;
}

report::ReportTable ranks_table(const compare::TimelineComparison& comparison, const SideNames& names) {
  report::ReportTable table{"errors-by-rank",
                            names.caption,
                            {{"rank"},
                             {"done in " + names.a + " (us)", true},
                             {"in " + names.b + " (us)", true},
                             {"error (%)", true},
                             {"busy in " + names.a + " (us)", true},
                             {"in " + names.b + " (us)", true},
                             {"error (%)", true}},
                            {}};
  for (const compare::RankComparison& rank : comparison.ranks) {
    table.rows.push_back({rank.name, in_microseconds(rank.finish.a), in_microseconds(rank.finish.b),
                          error_percent(rank.finish.error()), in_microseconds(rank.busy.a),
                          in_microseconds(rank.busy.b), error_percent(rank.busy.error())});
  }
  return table;
}

std::string errors_sentence(const compare::ResultsComparison& comparison, const std::string& file) {
  const compare::ComparedSize& worst = comparison.sizes[comparison.worst];
  return fmt::format("Against {}: over {} the prediction's median error is {:.1f} %, the largest {} % at {}.", file,
                     counted(comparison.sizes.size(), "row"), 100 * comparison.errors.median,
                     error_percent(worst.error), report::size_text(worst.size));
}

}  // namespace espalier::cli
