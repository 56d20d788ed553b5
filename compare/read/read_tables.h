#pragma once

// Tested by: tests/unit/compare/read/read_tables_test.cpp

#include <string_view>

#include "base/result.h"
#include "compare/read/measurements.h"
#include "compare/read/nccl_tests.h"

namespace espalier::compare {

/// Whether a table of a benchmark other than nccl-tests stands in the text, by what is printed above its rows.
bool has_other_table(std::string_view text);

/// The rows of all tables of benchmarks in a text, as people paste them one below the other: nccl-tests, and those of
/// others/readers.h. Runs of several tables keep numbers of their own. What cannot be read beside what can is a
/// warning; unequal blocks (alltoallv_perf) are of all rows, so that other tables beside them are left out, too.
/// Errors: those of the readers, where no row is left. Cost: linear in the text for each kind of table in it.
Result<Measurements> read_tables(std::string_view text, std::string_view name, const NcclTestsHints& hints);

}  // namespace espalier::compare
