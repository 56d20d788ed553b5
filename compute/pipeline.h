#pragma once

#include <cstdint>
#include <vector>

#include "compute/attention.h"

namespace espalier::compute {

/// Stages of a pipeline one behind the other; stage g is at place g mod `places`.
struct PipelineShape {
  std::int64_t places = 1;
  std::int64_t virtual_stages = 1;
  std::int64_t micro_batches = 1;
  std::vector<BothWays> stages;  ///< Seconds of a micro-batch, along the model.
  double send = 0;               ///< From a stage to the next.
};

/// Seconds until the last place is through with its last pass: one forward, one backward (1F1B), interleaved where
/// places have several stages. Source: D. Narayanan et al., SC 2021, section 2.2. Cost: micro-batches times stages.
double pipeline_seconds(const PipelineShape& shape);

}  // namespace espalier::compute
