#pragma once

// Tested by: tests/unit/sweep/run_sweep_test.cpp

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/id.h"
#include "schedule/collective.h"
#include "sweep/row.h"
#include "topology/without.h"

namespace espalier::sweep {

/// Runs that share their network and collective, and so their plans and bound.
struct Unit {
  std::size_t machine = 0;  ///< Of the spec.
  Parts parts;              ///< What fails.
  std::string impossible;   ///< Why nothing can run: the failure is not on this machine.
  std::uint64_t alike = 1;  ///< As Row::alike.
  CollectiveKind collective = CollectiveKind::all_reduce;
  std::vector<std::int64_t> blocks;  ///< The traffic matrix, row by row; empty: equal blocks.
  Rank root;                         ///< On the whole machine; none where there is none.
  std::vector<Key> keys;
};

}  // namespace espalier::sweep
