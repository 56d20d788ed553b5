#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <cstddef>
#include <string>
#include <vector>

#include "base/result.h"
#include "sweep/row.h"

namespace espalier::sweep {

/// Rows of one file.
struct NamedRows {
  std::string name;
  std::vector<Row> rows;
};

struct Merged {
  std::vector<Row> rows;     ///< Sorted by their keys, each once.
  std::size_t repeated = 0;  ///< Rows left out since they say what another one says.
};

/// All rows in the order in which one sweep writes them, so that merged shards are, byte for byte, the whole.
/// Errors: invalid_input when two rows of one key disagree, naming both files.
Result<Merged> merge_rows(std::vector<NamedRows> files);

}  // namespace espalier::sweep
