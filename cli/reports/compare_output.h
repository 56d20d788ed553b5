#pragma once

// Tested by: tests/unit/cli/pages/pages_test.cpp

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/output/table.h"
#include "compare/compare_results.h"
#include "compare/compare_timelines.h"

namespace espalier::cli {

/// One of the two files.
struct ComparedFile {
  std::string file;
  std::string what;    ///< A timeline's title, or the collectives of a table.
  std::string origin;  ///< "simulation", "run" or "nccl-tests".
};

/// What --fail-above was held against.
struct Verdict {
  double limit = 0;
  double value = 0;
  std::string measure;  ///< "error of total", "median error".
  [[nodiscard]] bool ok() const { return value <= limit; }
};

/// Everything that `compare` found but the comparison itself.
struct CompareHeader {
  ComparedFile a;
  ComparedFile b;
  std::optional<Verdict> verdict;
  bool shows_bands = false;     ///< Errors of small, middle and large sizes, too.
  std::string first_line = {};  ///< Whether it is as fast as it should be; empty where that cannot be said.
  nlohmann::ordered_json first_json = {};
};

/// Whether the second of two timelines took as long as the first, and whom it waited for if not.
std::string first_line_of(const compare::TimelineComparison& comparison);
/// The links of two timelines, furthest apart first, at most so many.
Table links_table(const compare::TimelineComparison& comparison, std::size_t most);
std::string timelines_text(const CompareHeader& header, const compare::TimelineComparison& comparison);
nlohmann::ordered_json timelines_json(const CompareHeader& header, const compare::TimelineComparison& comparison);

Table results_table(const compare::ResultsComparison& comparison);
std::string results_text(const CompareHeader& header, const compare::ResultsComparison& comparison);
nlohmann::ordered_json results_json(const CompareHeader& header, const compare::ResultsComparison& comparison);

/// {"count", "median", "p90", "worst", "bias"}.
nlohmann::ordered_json errors_json(const compare::ErrorSummary& errors);

/// "+5.4": a relative error in per cent; "-" where the reference is 0.
std::string error_percent(double error);

}  // namespace espalier::cli
