#pragma once

// Tested by: tests/unit/cli/pages/pages_test.cpp

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "cli/pages/results_page.h"

namespace espalier::cli {

/// Whether a file's text is of a sweep's rows: CSV, JSON lines, or the document of `sweep --json`.
bool is_of_sweep(std::string_view text);

/// Its rows as simulations, each of one collective on one machine under the same circumstances; the first has a note of
/// the rows that gave nothing. Errors: those of sweep::read_rows.
Result<std::vector<ResultFile>> read_sweep_results(std::string_view text, const std::string& name);

}  // namespace espalier::cli
