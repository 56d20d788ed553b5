#pragma once

// Tested by: tests/unit/compute/layer_test.cpp

#include "compute/model.h"

namespace espalier::compute {

/// Bytes that a layer keeps for its backward pass, of one micro-batch.
double kept_bytes(const ModelShape& model, const Slice& slice, const Software& software, Recompute recompute,
                  bool is_dense);

/// What a rank's memory holds at the fullest moment of a step.
struct MemoryUse {
  double weights = 0;
  double gradients = 0;
  double optimizer = 0;    ///< Moments, and weights in fp32 where those above are not.
  double activations = 0;  ///< Kept for backward passes.
  double working = 0;      ///< The loss, the layer that is computed, what libraries keep for themselves.

  [[nodiscard]] double total() const { return weights + gradients + optimizer + activations + working; }
};

/// What a rank keeps of a model.
struct Held {
  double weights = 0;       ///< Numbers.
  double replicas = 1;      ///< Ranks that share the optimizer's state of them.
  double sharers = 1;       ///< Ranks that share weights and gradients themselves.
  double layers = 0;        ///< Kept at once, micro-batches times layers.
  double dense_layers = 0;  ///< Of these, without experts.
  double embedding = 0;     ///< Of the weights: numbers of the embedding, where the rank has it.
  bool has_output = true;   ///< It computes the loss.
  std::int64_t micro_batches = 1;
};

/// The fullest of three moments: the loss behind the forward pass, the first layer of the backward pass, the update.
/// Source: measured peaks of training steps (docs/accuracy.md); which values a layer keeps, V. Korthikanti et al.,
/// "Reducing activation recomputation in large transformer models", MLSys 2023.
MemoryUse peak_memory(const ModelShape& model, const Slice& slice, const Software& software, Recompute recompute,
                      const Held& held);

}  // namespace espalier::compute
