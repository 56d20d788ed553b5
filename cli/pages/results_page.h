#pragma once

// Tested by: tests/unit/cli/pages/pages_test.cpp

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/jobs/stop.h"
#include "cli/output/console.h"
#include "compare/read/read_run.h"
#include "report/results_page.h"

namespace espalier::cli {

/// A file with results: a run, a document of --json, or both where the document is of results. Of a file of a sweep's
/// rows: those of one collective on one machine under the same circumstances.
struct ResultFile {
  std::string name;  ///< Without its folders.
  std::optional<compare::RunFile> run;
  std::optional<nlohmann::ordered_json> document;
  double bound = 0;  ///< As bus bandwidth, where no document says it; 0 where none is known.
  std::string kind;  ///< What it is, where its content does not say.
  std::string note;  ///< What a page has to say of it; may be empty.
};

/// Whether the text begins as such a file does: a timeline, a document of --json, a sweep's rows, what nccl-tests
/// prints.
bool holds_results(std::string_view text);

/// Reads files with results, each seen from its content; timelines begin at 0. `collective`: what nccl-tests measured
/// where neither its output nor the file's name says so; empty: not known. Errors: those of compare::read_run and
/// report::read_document; usage where no file needs `collective`, or it is none.
OrStop<std::vector<ResultFile>> load_results(const Console& console, const std::vector<std::string>& paths,
                                             const std::string& collective);

/// What a page shows of them: rates by collective, the first simulated timeline (else the first), predictions against
/// measurements, what documents say. The files have to outlive the page.
/// Errors: those of drawing two timelines over each other.
Result<report::ResultsPage> make_results_page(const std::vector<ResultFile>& files);

/// `espalier/report/1`.
nlohmann::ordered_json results_page_json(const report::ResultsPage& page, const std::vector<ResultFile>& files);

}  // namespace espalier::cli
