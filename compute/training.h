#pragma once

// Tested by: tests/unit/compute/training_test.cpp

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "compute/layer.h"
#include "compute/memory.h"
#include "compute/pipeline.h"

namespace espalier::compute {

/// Kinds of calls that a training step makes.
enum class CallKind : std::uint8_t { all_reduce, reduce_scatter, all_gather, all_to_all, send };

/// Ranks first + i stride for i below count; `at_once` groups like it next to each other make the call together.
struct CallGroup {
  std::int64_t count = 1;
  std::int64_t stride = 1;
  std::int64_t at_once = 1;
};

/// Seconds of a call of so many bytes: of the whole buffer, as nccl-tests counts them. Null: calls take no time.
using CallSeconds = std::function<double(CallKind, const CallGroup&, double bytes)>;

/// Who keeps weights, gradients and the optimizer's state of a data-parallel group.
enum class Shards : std::uint8_t { none, optimizer, gradients, full };

/// How ranks that share sequences attend to all of their tokens.
enum class ContextExchange : std::uint8_t {
  ring,        ///< Keys and values go round beside attention; backward their gradients, too (ring attention).
  all_gather,  ///< Keys and values are gathered before attention; backward once more, and gradients are scattered.
  all_to_all,  ///< Parts of sequences become parts of heads before attention, and the reverse behind it (Ulysses).
};

/// How a model is trained on many ranks. Ranks are numbered tensor first, then context, data, pipeline.
struct TrainingPlan {
  ModelShape model;
  Slice slice;
  Software software;
  Recompute recompute = Recompute::none;
  std::int64_t pipeline = 1;
  std::int64_t virtual_stages = 1;
  Order order = Order::alternating;
  std::vector<std::int64_t> stage_layers;  ///< By stage, along the model; empty: as even as they go.
  std::int64_t data = 1;
  std::int64_t batch = 1;  ///< Sequences of a step, of all ranks together.
  Shards shards = Shards::none;
  std::int64_t shard_group = 0;  ///< Ranks that share what is sharded; 0: all replicas.
  ContextExchange context_exchange = ContextExchange::ring;
  double gradient_bytes = 0;        ///< Of a gradient when it is added up; 0: as activations.
  bool overlaps_gradients = true;   ///< Gradients are added while the last backward pass goes on.
  bool overlaps_parameters = true;  ///< Parameters are gathered while the next forward pass goes on.
  bool overlaps_tensor = false;     ///< Calls of tensor ranks run beside their products.

  [[nodiscard]] std::int64_t ranks() const { return slice.tensor * slice.context * pipeline * data; }
  [[nodiscard]] std::int64_t micro_batches() const { return batch / (data * slice.micro_batch); }
  [[nodiscard]] PipelineOrder pipeline_order() const { return {pipeline, virtual_stages, micro_batches(), order}; }
};

/// What a step is predicted to take.
struct StepTime {
  double seconds = 0;
  double forward = 0;   ///< Of the slowest place, of all its micro-batches.
  double backward = 0;  ///< The same, with what is computed again.
  double bubble = 0;    ///< What the pipeline adds to the slowest place.
  double data = 0;      ///< Calls of replicas that nothing hides.
  double optimizer = 0;
  MemoryUse memory;  ///< Of the fullest place.
};

/// Bytes of the calls among ranks that share sequences, of a layer and micro-batch.
struct ContextBytes {
  double gathered = 0;       ///< Keys and values of the whole sequences.
  double exchanged_in = 0;   ///< Queries, keys and values of a rank's tokens.
  double exchanged_out = 0;  ///< Attention's output for them.
};
ContextBytes context_bytes(const TrainingPlan& plan);

/// What is wrong with the sizes of a plan. Errors: invalid_input, naming two that do not divide.
Result<void> check(const TrainingPlan& plan);

/// What the update of the weights takes, at the place with the most. Requires: as step_time.
double update_seconds(const Gpu& gpu, const TrainingPlan& plan);

/// A step in closed form: halves of layers with their calls, a place of the pipeline for all of its ranks.
///
/// The pipeline runs one forward, one backward (1F1B), interleaved where places have several stages; the first place
/// has the embedding, the last the loss. Where kernels are small the host's time and the GPU's mix, since calls make
/// each wait for the other. Requires: a plan that `check` takes. Cost: micro-batches times stages.
StepTime step_time(const Gpu& gpu, const TrainingPlan& plan, const CallSeconds& calls);

/// Where published steps lie beside what step_time says of them.
struct StepRange {
  double low = 0;  ///< Nine in ten took from so many times the prediction ...
  double high = 0;
  int runs = 0;
  int sources = 0;
};
/// Of steps like it; nothing where fewer than ten of such a GPU were measured, or none of a model whose attention is
/// not causal.
std::optional<StepRange> measured_range(const Gpu& gpu, const TrainingPlan& plan);
/// The same beside steps that are simulated call by call (scenario/).
std::optional<StepRange> simulated_range(const Gpu& gpu, const TrainingPlan& plan);
/// Why a step is not like those that were measured, in words; empty where it is.
std::string why_unlike_measured(const Gpu& gpu, const TrainingPlan& plan);

/// Memory of a place of the pipeline. Requires: as step_time.
MemoryUse memory_of_place(const TrainingPlan& plan, std::int64_t place);

}  // namespace espalier::compute
