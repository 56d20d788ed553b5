#pragma once

// Tested by: tests/unit/scenario/workload/training_test.cpp

#include "base/units.h"
#include "compute/training.h"
#include "scenario/workload/training.h"

namespace espalier::scenario {

/// A model's computation and memory as compute/ takes them. Requires: `data` is given.
compute::TrainingPlan plan_of(const TrainingModel& model);

/// What a rank computes between two calls.
struct ComputeTimes {
  Picoseconds attention[2];     ///< Of a layer and a micro-batch: forward, backward with what is computed again.
  Picoseconds feed_forward[2];  ///< The same.
  Picoseconds output[2];        ///< Embedding, output layer and loss.
  Picoseconds weights;  ///< Gradients of a layer's weights, where they are put off: `attention` and `feed_forward` are
                        ///< without them.
  Picoseconds optimizer;
};

/// By the GPU where one is given and no utilisation, else operations over the rate that is reached.
ComputeTimes times_of(const TrainingModel& model);

}  // namespace espalier::scenario
