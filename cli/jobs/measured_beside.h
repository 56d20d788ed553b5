#pragma once

// Tested by: tests/options/options_test.py

#include <string>
#include <vector>

#include "cli/jobs/run_files.h"
#include "cli/reports/simulation_output.h"
#include "compare/read/measurements.h"
#include "forecast/candidate_runs.h"
#include "report/plan_report.h"

namespace espalier::cli {

/// A file with what was measured: the rows of one collective, and the timeline where it is one.
struct MeasuredFile {
  compare::Measurements rows;
  std::optional<Timeline> timeline;
};

/// The files' rows of the collective; those that do not name one are taken for it.
/// Errors: those of load_runs; invalid_input for a file without such rows.
OrStop<std::vector<MeasuredFile>> load_measured(const Console& console, const std::vector<std::string>& paths,
                                                CollectiveKind collective);

/// The sizes that were measured, in order, each once; only whole numbers of elements.
std::vector<Bytes> measured_sizes(const std::vector<MeasuredFile>& files, std::int64_t element_size);

/// The measurements laid beside the predictions: curves, errors, and for the first timeline whose run was predicted the
/// spans over each other. Errors: those of compare_results and of simulating that run again.
Result<report::Measured> lay_beside(const Simulation& simulation, const forecast::RunOptions& how,
                                    const std::vector<MeasuredFile>& files);

/// The predicted run of the first timeline among the files, or nullptr.
const forecast::CandidateRun* find_measured_run(const Simulation& simulation, const std::vector<MeasuredFile>& files);

}  // namespace espalier::cli
