#pragma once

// Tested by: tests/unit/compute/pipeline_test.cpp

#include <cstdint>
#include <vector>

#include "compute/attention.h"

namespace espalier::compute {

/// In which order a place of a pipeline takes its passes.
enum class Order : std::uint8_t {
  alternating,       ///< One forward, one backward in turn (1F1B); interleaved where places have several stages.
  forwards_first,    ///< All forwards, then all backwards (GPipe).
  deferred_weights,  ///< As the first, but gradients of weights come later, where places would wait (zero bubble, H1).
};

enum class PassKind : std::uint8_t {
  forward,
  backward,  ///< With deferred weights: gradients of what went in alone.
  weights,   ///< Gradients of weights, of a backward pass before.
};

/// A micro-batch's pass through a stage. Stages are numbered along the model: stage g is at place g mod P.
struct Pass {
  PassKind kind = PassKind::forward;
  std::int64_t micro_batch = 0;
  std::int64_t stage = 0;
};

/// A pipeline's places, stages of each, micro-batches and order.
struct PipelineOrder {
  std::int64_t places = 1;
  std::int64_t virtual_stages = 1;  ///< More than one only in the first order.
  std::int64_t micro_batches = 1;
  Order order = Order::alternating;

  /// How many forwards a place runs before its first backward, at most.
  [[nodiscard]] std::int64_t forwards_ahead(std::int64_t place) const;
  /// Micro-batches of one stage each whose activations a place keeps at once.
  [[nodiscard]] std::int64_t under_way(std::int64_t place) const;
  /// Those by stage of the place, along the model.
  [[nodiscard]] std::vector<std::int64_t> under_way_by_stage(std::int64_t place) const;
  /// A place's passes, one after the other. Sources: D. Narayanan et al., SC 2021, section 2.2 (1F1B, interleaved);
  /// Y. Huang et al., "GPipe", NeurIPS 2019; P. Qi et al., "Zero bubble pipeline parallelism", ICLR 2024, section 2.3
  /// (place p puts gradients of weights off by p micro-batches, so that each keeps as much as the first).
  [[nodiscard]] std::vector<Pass> passes(std::int64_t place) const;
};

/// Stages of a pipeline one behind the other.
struct PipelineShape : PipelineOrder {
  std::vector<BothWays> stages;  ///< Seconds of a micro-batch, along the model.
  std::vector<double> weights;   ///< Of `backward`: gradients of weights. Only with deferred weights.
  double send = 0;               ///< From a stage to the next.
};

/// Seconds until the last place is through with its last pass. Cost: micro-batches times stages.
double pipeline_seconds(const PipelineShape& shape);

}  // namespace espalier::compute
