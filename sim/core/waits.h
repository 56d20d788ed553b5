#pragma once

// Tested by: tests/unit/sim/critical_path/critical_path_test.cpp

#include <cstdint>

#include "base/id.h"
#include "schedule/chunking.h"

namespace espalier::sim {

/// One execution of a compiled schedule in a model.
using RunId = Id<struct RunTag>;

/// A wait whose cause is asked for. When the same runs are run again, the model says who had what was waited for
/// (Model::probe).
struct Probe {
  RunId run;
  ChunkId chunk;               ///< Who waits; in the model fair the flow that is held back.
  std::uint32_t resource = 0;  ///< What it waits for; in the model fair the slowest of its way.
  /// In the model link: whom the resource serves meanwhile. In the model fair only the length counts: how much longer
  /// the flow took than alone.
  std::int64_t begin = 0;
  std::int64_t end = 0;

  [[nodiscard]] std::int64_t length() const { return end - begin; }
};

/// A part of a wait, and for whom.
struct Blame {
  std::uint32_t probe = 0;     ///< Its index among those asked for.
  std::uint32_t resource = 0;  ///< Where; in the model fair the bottleneck that the two flows shared.
  RunId run;                   ///< Who was in the way: a transfer of this run, from whom to whom.
  Rank src;
  Rank dst;
  std::int64_t time = 0;
};

}  // namespace espalier::sim
