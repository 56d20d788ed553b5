#pragma once

// Tested by: tests/unit/scenario/workload/training_test.cpp

#include "base/units.h"
#include "compute/training.h"
#include "scenario/workload/training.h"

namespace espalier::scenario {

/// A model's sizes as compute/ takes them.
compute::ModelShape shape_of(const TrainingModel& model);

/// A model's computation and memory as compute/ takes them. Requires: `data` is given.
compute::TrainingPlan plan_of(const TrainingModel& model);

/// What a rank computes between two calls.
struct ComputeTimes {
  Picoseconds attention[2];     ///< Of a layer and a micro-batch: forward, backward with what is computed again.
  Picoseconds core[2];          ///< Of `attention`: between its products. The first pass's is not in the second.
  Picoseconds feed_forward[2];  ///< The same as `attention`.
  Picoseconds dense[2];         ///< Of a layer without experts.
  Picoseconds output[2];        ///< Embedding, output layer and loss.
  Picoseconds weights;  ///< Gradients of a layer's weights, where they are put off: `attention` and `feed_forward` are
                        ///< without them.
  Picoseconds dense_weights;  ///< The same of a layer without experts.
  Picoseconds optimizer;
};

/// By the GPU where one is given and no utilisation, else operations over the rate that is reached.
ComputeTimes times_of(const TrainingModel& model);

}  // namespace espalier::scenario
