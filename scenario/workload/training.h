#pragma once

// Tested by: tests/unit/scenario/workload/training_test.cpp

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/element.h"
#include "base/result.h"
#include "compute/attention.h"
#include "compute/gpu.h"
#include "compute/model.h"
#include "compute/pipeline.h"
#include "compute/training.h"
#include "scenario/workload/averaging.h"
#include "scenario/workload/expert_routing.h"
#include "scenario/workload/flop_rate.h"
#include "scenario/workload/job.h"

namespace espalier::scenario {

/// Who keeps parameters, gradients and the optimizer's state of a data-parallel group.
enum class Sharding : std::uint8_t {
  none,       ///< All ranks keep all: gradients are added with all_reduce.
  optimizer,  ///< Each rank updates its share (ZeRO 1 and 2): reduce_scatter of gradients, all_gather of parameters.
  full,       ///< Each rank keeps its share (ZeRO 3): parameters are gathered before each use.
};

/// A decoder-only transformer and how its training is spread over ranks. Ranks are numbered tensor first, then data,
/// then context, data, pipeline: rank = tensor + T (context + C (data + D pipeline)). Experts are shared by ranks of
/// the T C D of a place numbered otherwise: expert tensor first, then expert, then their replicas.
struct TrainingModel {
  std::int64_t layers = 1;
  std::int64_t hidden = 1;      ///< h.
  std::int64_t heads = 1;       ///< Attention heads.
  std::int64_t kv_heads = 0;    ///< Heads of keys and values; 0: as `heads`.
  std::int64_t head_size = 0;   ///< 0: h / heads.
  std::int64_t query_rank = 0;  ///< Latent attention, as of compute::ModelShape, with the next two.
  std::int64_t kv_rank = 0;     ///< 0: plain attention.
  std::int64_t rotary_size = 0;
  std::int64_t feed_forward = 0;  ///< Inner width of the feed-forward part; 0: 4 h.
  bool gated = false;             ///< The feed-forward part has three matrices (SwiGLU), not two.
  std::int64_t sequence = 1;      ///< Tokens per sequence.
  std::int64_t vocabulary = 0;    ///< 0: neither embedding nor output layer are counted.
  bool tied = false;              ///< Embedding and output layer are one matrix, which its two places add up.
  bool causal = true;             ///< A token attends to those before it alone.
  std::int64_t batch = 1;         ///< Sequences per step, of all ranks together.
  std::int64_t micro_batch = 1;   ///< Sequences per micro-batch.
  std::int64_t experts = 0;       ///< Per layer; 0: the model is dense.
  std::int64_t experts_per_token = 1;
  std::int64_t expert_width = 0;                  ///< Inner width of an expert; 0: `feed_forward`.
  std::int64_t shared_experts = 0;                ///< That every token goes to.
  std::int64_t dense_layers = 0;                  ///< The first layers, which have no experts.
  std::optional<ExpertRouting> routing;           ///< Nothing: balanced, as messages of equal blocks.
  ElementType type = ElementType::bfloat16;       ///< Of parameters and activations.
  ElementType gradients = ElementType::bfloat16;  ///< Of gradients when they are added.

  const compute::Gpu* gpu = nullptr;            ///< What a rank computes on; null: `rate` and `utilisation_ppm` say.
  FlopRate rate;                                ///< Of one rank, at its peak.
  std::int32_t utilisation_ppm = 1'000'000;     ///< The part of the peak that its kernels reach.
  bool has_utilisation = false;                 ///< It counts, whatever the GPU.
  Bytes memory;                                 ///< Of one rank; zero: not said.
  bool recomputes = false;                      ///< Activations are computed again in the backward pass.
  bool recomputes_attention = false;            ///< Attention between its products alone is.
  std::optional<compute::Precision> precision;  ///< Of the large products on a GPU, where it is not that of `type`.
  compute::AttentionKernels attention = compute::AttentionKernels::third;  ///< With a GPU, as the next two.
  compute::Kernels kernels = compute::Kernels::fused;                      ///< Between the large products.
  bool dropout = false;
  Picoseconds optimizer;  ///< How long the update of the parameters takes; zero with a GPU: as it is predicted.

  std::int64_t tensor = 1;          ///< T: ranks that share each layer.
  bool sequence_parallel = false;   ///< Between shared layers each of them keeps its part of the sequence.
  std::int64_t pipeline = 1;        ///< P: ranks that share the layers one behind the other.
  std::int64_t virtual_stages = 1;  ///< V: stages of a rank; above 1 the pipeline is interleaved.
  compute::Order order = compute::Order::alternating;
  std::vector<std::int64_t> stage_layers;  ///< By stage, along the model; empty: all the same.
  std::int64_t context = 1;                ///< C: ranks that share each sequence.
  compute::ContextExchange context_exchange = compute::ContextExchange::ring;
  std::int64_t data = 0;           ///< D: replicas; 0: as many as the ranks make.
  std::int64_t expert = 1;         ///< E: ranks that share the experts.
  std::int64_t expert_tensor = 0;  ///< Ranks that share an expert; 0: T.
  Sharding sharding = Sharding::none;
  bool shards_gradients = false;     ///< Sharding::optimizer: gradients too are kept as shares (ZeRO 2).
  bool overlaps_parameters = false;  ///< Sharding::optimizer: they are gathered beside the forward pass.
  bool overlaps_tensor = false;      ///< A part of the calls of tensor ranks runs beside the products.
  std::int64_t shard_group =
      0;  ///< Neighbours among the C D ranks with the same weights that share what is sharded; 0: all.
  Bytes bucket{std::int64_t{1} << 62};  ///< Gradients are added when so many bytes are there; at least a layer's.
  Averaging averaging;                  ///< Of gradients.
  std::int64_t steps = 1;

  std::string tensor_planner;  ///< Planners by use; empty: what suits (plans.h).
  std::string data_planner;
  std::string expert_planner;
  std::string context_planner;
  std::string dispatch_planner;  ///< What `experts: {dispatch: ...}` says, where no planner is named.

  Bytes tensor_chunk;  ///< Largest chunks by use; zero: that of the whole run.
  Bytes data_chunk;
  Bytes expert_chunk;
  Bytes context_chunk;
  Bytes pipeline_chunk;

  /// Ranks with the same weights, but for experts: they add gradients up.
  [[nodiscard]] std::int64_t replicas() const { return context * data; }
  [[nodiscard]] std::int64_t sharers() const { return shard_group == 0 ? replicas() : shard_group; }
  [[nodiscard]] std::int64_t tensor_of_experts() const { return expert_tensor == 0 ? tensor : expert_tensor; }
  [[nodiscard]] std::int64_t expert_replicas() const { return tensor * replicas() / (tensor_of_experts() * expert); }
  /// Of these, ranks that share what is sharded of experts.
  [[nodiscard]] std::int64_t expert_sharers() const {
    return std::max<std::int64_t>(1, tensor * sharers() / (tensor_of_experts() * expert));
  }
  [[nodiscard]] bool is_dense(std::int64_t layer) const { return experts == 0 || layer < dense_layers; }
  [[nodiscard]] std::int64_t stages() const { return pipeline * virtual_stages; }
  [[nodiscard]] std::int64_t layers_of(std::int64_t stage) const {
    return stage_layers.empty() ? layers / stages() : stage_layers[static_cast<std::size_t>(stage)];
  }
  /// How many layers are before a stage.
  [[nodiscard]] std::int64_t first_layer_of(std::int64_t stage) const {
    std::int64_t sum = 0;
    for (std::int64_t before = 0; before < stage; ++before) sum += layers_of(before);
    return sum;
  }
  /// Of all stages of a place.
  [[nodiscard]] std::int64_t layers_at(std::int64_t place) const {
    std::int64_t sum = 0;
    for (std::int64_t stage = place; stage < stages(); stage += pipeline) sum += layers_of(stage);
    return sum;
  }
  [[nodiscard]] std::int64_t micro_batches() const { return batch / (data * micro_batch); }
  [[nodiscard]] compute::PipelineOrder pipeline_order() const {
    return {pipeline, virtual_stages, micro_batches(), order};
  }
};

/// How a model is spread over ranks: its T, P, D, E, C and what goes with them.
struct Parallelism {
  std::int64_t tensor = 1;
  std::int64_t pipeline = 1;
  std::int64_t data = 1;
  std::int64_t expert = 1;
  std::int64_t context = 1;
  std::int64_t expert_tensor = 0;  ///< 0: as `tensor`.
  std::int64_t shard_group = 0;    ///< 0: all replicas.
  friend auto operator<=>(const Parallelism&, const Parallelism&) = default;
};

/// What the calls of a training step with this label are for: "tensor", "pipeline", "data", "expert" or "context";
/// empty for calls of something else.
std::string_view use_of_call(std::string_view label);

/// Values of the parts of a parallelism that are tried only where they are asked for; empty: the model's own.
struct FurtherParts {
  std::vector<std::int64_t> context, expert_tensor, shard_group;
};

/// All that use so many ranks, by tensor, then pipeline; E above 1 only of a model with experts.
std::vector<Parallelism> list_parallelisms(const TrainingModel& model, std::int64_t ranks,
                                           const FurtherParts& further = {});

/// How the model is spread.
Parallelism parallelism_of(const TrainingModel& model);
/// The model spread so.
TrainingModel spread(TrainingModel model, const Parallelism& parallelism);

/// Whether `add_training` takes the model on so many ranks; the model with `data` filled in.
/// Errors: those of add_training.
Result<TrainingModel> check_training(const TrainingModel& model, std::int64_t ranks,
                                     std::size_t task_limit = max_tasks);

/// About how many tasks the steps of a model have, with `data` given.
double count_tasks(const TrainingModel& model);

/// Two numbers of micro-batches that a long step's time follows from: past `few` of them a pipeline is full, and each
/// further one takes as long as the one before.
struct FewerBatches {
  std::int64_t few = 0;
  std::int64_t more = 0;
  friend bool operator==(const FewerBatches&, const FewerBatches&) = default;
};

/// For a model with `data` given; nothing where a step has at most so many tasks, or hardly more micro-batches.
std::optional<FewerBatches> fewer_batches(const TrainingModel& model, double max_tasks_of_step);

/// What one layer, or the output layer, needs.
struct LayerCost {
  __int128 attention_flops = 0;     ///< Forward, of a micro-batch, all ranks together.
  __int128 core_flops = 0;          ///< Of these: scores and weighted sums.
  __int128 feed_forward_flops = 0;  ///< With experts: of those that a token goes to, shared ones too.
  __int128 dense_flops = 0;         ///< The same of a layer without experts.
  std::int64_t attention_parameters = 0;
  std::int64_t feed_forward_parameters = 0;  ///< Of one expert, where there are several.
  std::int64_t shared_parameters = 0;        ///< Of shared experts.
  std::int64_t dense_parameters = 0;         ///< Of a layer without experts.

  /// Of a layer's parameters, those that are the same on all ranks that add gradients up.
  [[nodiscard]] std::int64_t replicated(bool is_dense) const {
    return attention_parameters + (is_dense ? dense_parameters : shared_parameters);
  }
  [[nodiscard]] __int128 operations(bool is_dense) const {
    return attention_flops + (is_dense ? dense_flops : feed_forward_flops);
  }
};

/// Two operations per parameter and token in the matrices, and 4 s h per token for the scores and the weighted sum of
/// attention; backward takes twice that. Norms, biases and activations are not counted.
/// Source: D. Narayanan et al., "Efficient large-scale language model training on GPU clusters using Megatron-LM",
/// SC 2021, appendix; J. Kaplan et al., "Scaling laws for neural language models", 2020, table 1 (6 N operations per
/// token for forward and backward together).
LayerCost cost_of_layer(const TrainingModel& model);

/// Rows and columns of all matrices of a layer of a dense model, as a rank keeps them: each is cut along one side by T.
MatrixSizes matrices_of_layer(const TrainingModel& model);

/// Operations of the output layer, forward, of a micro-batch: 2 tokens h V.
__int128 output_flops(const TrainingModel& model);

/// The time that a rank needs for its share of operations, rounded up.
Picoseconds compute_time(const TrainingModel& model, __int128 flops);

/// Adds training steps to a job, on these ranks of the topology.
///
/// Pipeline: as `order` says (compute/pipeline.h), usually one forward, one backward in turn (P - p - 1 forwards ahead
/// in stage p); a stage sends activations and gradients while it goes on computing. With V stages to a rank, rank p has
/// the stages p, P + p, 2 P + p, ... of V P, and passes P micro-batches through one of them before it turns to the
/// next; 2 (P - p - 1) + (V - 1) P forwards ahead (D. Narayanan et al., SC 2021, section 2.2.2; NVIDIA/Megatron-LM,
/// schedules.py, forward_backward_pipelining_with_interleaving). Tensor: an all_reduce behind attention and behind
/// feed-forward, forward and backward; with `sequence_parallel` an all_gather before and a reduce_scatter behind each
/// (V. Korthikanti et al., "Reducing activation recomputation in large transformer models", MLSys 2023). Context: keys
/// and values of a sequence's parts go round, or queries, keys and values change places (compute::ContextExchange).
/// Experts: an all_to_all before and behind the feed-forward part. Data: gradients are added bucket by bucket during
/// the last micro-batch's backward pass, by `averager` where one is given. Errors: invalid_input when sizes do not
/// divide each other, naming them, or when the averager would have nothing to do; those of the averager; too_large past
/// `task_limit`. `routed`: what a routing makes of it.
Result<void> add_training(Job& job, const TrainingModel& model, const std::vector<Rank>& ranks,
                          std::size_t task_limit = max_tasks, Averager* averager = nullptr,
                          std::optional<RoutingFigures>* routed = nullptr);

}  // namespace espalier::scenario
