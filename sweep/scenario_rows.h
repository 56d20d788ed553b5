#pragma once

// Tested by: tests/unit/sweep/scenario_rows_test.cpp

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "sweep/cells.h"

// Rows of sweeps over scenarios: what decides a run, then what it gave, as text (docs/sweeps.md).
namespace espalier::sweep {

/// Their columns.
const RowForm& scenario_form();

/// What a row is of, that is, all columns that decide its result, and nothing else.
Cells key_of(const Cells& row);

/// By what rows are of, column by column, numbers as numbers.
void sort_scenario_rows(std::vector<Cells>& rows);

/// Puts rows that are read behind `rows`, which has to outlive it.
TakeCells take_scenarios_into(std::vector<Cells>& rows);

/// Rows of one file.
struct NamedCells {
  std::string name;
  std::vector<Cells> rows;
};

struct MergedCells {
  std::vector<Cells> rows;   ///< Sorted, each once.
  std::size_t repeated = 0;  ///< Rows left out since they say what another one says.
};

/// As merge_rows. Errors: invalid_input when two rows of one run disagree, naming both files.
Result<MergedCells> merge_scenario_rows(std::vector<NamedCells> files);

}  // namespace espalier::sweep
