#pragma once

// Tested by: tests/unit/cli/pages/pages_test.cpp

#include <string>
#include <vector>

#include "compare/compare_results.h"
#include "compare/compare_timelines.h"
#include "report/plan_report.h"

namespace espalier::cli {

/// The caption of a table, and what its two sides are called: a prediction, and what it is held against.
struct SideNames {
  std::string caption, a, b;
};

/// A curve per algorithm of the rows, named by it and `source`: "on dgx1v", "in measured.json".
void add_curves(std::vector<report::Curve>& curves, const compare::Measurements& rows, const std::string& source);

report::ReportTable sizes_table(const compare::ResultsComparison& comparison, const SideNames& names);
report::ReportTable busy_links_table(const compare::TimelineComparison& comparison, const SideNames& names);
/// When each rank was done, and how long it was busy.
report::ReportTable ranks_table(const compare::TimelineComparison& comparison, const SideNames& names);

/// "Against FILE: over 6 rows the prediction's median error is 3.4 %, the largest ...".
std::string errors_sentence(const compare::ResultsComparison& comparison, const std::string& file);

}  // namespace espalier::cli
