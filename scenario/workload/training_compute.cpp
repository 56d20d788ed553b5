#include "scenario/workload/training_compute.h"

#include <cmath>

#include "compute/constants.h"
#include "compute/layer.h"

namespace espalier::scenario {
namespace {

/// An estimate in seconds as simulated time.
Picoseconds rounded(double seconds) { return {static_cast<std::int64_t>(std::ceil(seconds * 1e12))}; }

ComputeTimes by_rate(const TrainingModel& model) {
  const LayerCost cost = cost_of_layer(model);
  const int again = model.recomputes ? 3 : 2;
  const __int128 scores = cost.core_flops;
  const bool defers = model.order == compute::Order::deferred_weights;
  // Gradients of weights take as many operations as the products of the forward pass.
  const __int128 of_attention = defers ? cost.attention_flops - scores : 0;
  const __int128 of_feed_forward = defers ? cost.feed_forward_flops : 0;
  const __int128 of_dense = defers ? cost.dense_flops : 0;
  ComputeTimes times;
  times.weights = compute_time(model, of_attention + of_feed_forward);
  times.dense_weights = compute_time(model, of_attention + of_dense);
  for (const bool is_back : {false, true}) {
    const int passes = is_back ? again : 1;
    __int128 attention = cost.attention_flops * passes, other = cost.feed_forward_flops * passes;
    __int128 dense = cost.dense_flops * passes;
    if (is_back) {
      attention += (model.recomputes_attention ? scores : 0) - of_attention;
      other -= of_feed_forward;
      dense -= of_dense;
    }
    times.attention[is_back] = compute_time(model, attention);
    times.core[is_back] = compute_time(model, scores * (is_back ? (model.recomputes_attention ? 3 : 2) : 1));
    times.feed_forward[is_back] = compute_time(model, other);
    times.dense[is_back] = compute_time(model, dense);
    if (model.vocabulary > 0) times.output[is_back] = compute_time(model, output_flops(model) * (is_back ? 2 : 1));
  }
  times.optimizer = model.optimizer;
  return times;
}

}  // namespace

compute::ModelShape shape_of(const TrainingModel& model) {
  return {.layers = model.layers,
          .hidden = model.hidden,
          .heads = model.heads,
          .kv_heads = model.kv_heads,
          .head_size = model.head_size,
          .feed_forward = model.feed_forward,
          .is_gated = model.gated,
          .is_causal = model.causal,
          .vocabulary = model.vocabulary,
          .is_tied = model.tied,
          .experts = model.experts,
          .experts_per_token = model.experts_per_token,
          .expert_width = model.expert_width,
          .shared_experts = model.shared_experts,
          .dense_layers = model.dense_layers,
          .query_rank = model.query_rank,
          .kv_rank = model.kv_rank,
          .rotary_size = model.rotary_size};
}

compute::TrainingPlan plan_of(const TrainingModel& model) {
  compute::TrainingPlan plan;
  plan.model = shape_of(model);
  plan.slice = {.tensor = model.tensor,
                .is_sequence_parallel = model.sequence_parallel,
                .context = model.context,
                .expert = model.expert,
                .expert_tensor = model.expert_tensor,
                .micro_batch = model.micro_batch,
                .sequence = model.sequence};
  plan.software.kernels = model.kernels;
  if (model.kernels == compute::Kernels::fused) plan.software.host = compute::constants::trainer_host;
  plan.software.attention = model.attention;
  plan.software.has_dropout = model.dropout;
  if (size_of(model.type) >= 4) plan.software.precision = compute::Precision::tf32;
  if (model.precision) plan.software.precision = *model.precision;
  plan.recompute = model.recomputes             ? compute::Recompute::full
                   : model.recomputes_attention ? compute::Recompute::selective
                                                : compute::Recompute::none;
  plan.pipeline = model.pipeline;
  plan.virtual_stages = model.virtual_stages;
  plan.order = model.order;
  plan.stage_layers = model.stage_layers;
  plan.data = model.data;
  plan.batch = model.batch;
  constexpr compute::Shards shards[] = {compute::Shards::none, compute::Shards::optimizer, compute::Shards::full};
  plan.shards = shards[static_cast<std::size_t>(model.sharding)];
  if (model.shards_gradients) plan.shards = compute::Shards::gradients;
  plan.shard_group = model.shard_group;
  plan.overlaps_tensor = model.overlaps_tensor;
  plan.context_exchange = model.context_exchange;
  plan.gradient_bytes = static_cast<double>(size_of(model.gradients));
  return plan;
}

ComputeTimes times_of(const TrainingModel& model) {
  if (model.gpu == nullptr || model.has_utilisation) return by_rate(model);
  const compute::TrainingPlan plan = plan_of(model);
  /// Sets the times of half a layer; what gradients of its weights take, where they are put off.
  const auto half = [&](const compute::HalfTime& once, Picoseconds(&times)[2]) {
    const compute::HalfTime time = once.with(plan.recompute);
    const double put_off = plan.order == compute::Order::deferred_weights ? compute::weights_seconds(once) : 0;
    times[0] = rounded(compute::together(time.forward, time.host_forward));
    times[1] = rounded(compute::together(time.backward, time.host_backward) - put_off);
    return put_off;
  };
  ComputeTimes times;
  const compute::HalfTime attention = compute::attention_half(*model.gpu, plan.model, plan.slice, plan.software);
  const double first = half(attention, times.attention);
  times.core[0] = rounded(attention.core);
  times.core[1] = rounded(attention.core_back + (model.recomputes_attention ? attention.core : 0));
  const auto other = [&](bool is_dense) {
    return compute::feed_forward_half(*model.gpu, plan.model, plan.slice, plan.software, is_dense);
  };
  times.weights = rounded(first + half(other(model.experts == 0), times.feed_forward));
  times.dense_weights = rounded(first + half(other(true), times.dense));
  const compute::BothWays ends = compute::ends_seconds(*model.gpu, plan.model, plan.slice, plan.software);
  const compute::BothWays host = compute::ends_host(plan.model, plan.software);
  times.output[0] = rounded(compute::together(ends.forward, host.forward));
  times.output[1] = rounded(compute::together(ends.backward, host.backward));
  times.optimizer = model.optimizer;
  if (model.optimizer.count == 0) times.optimizer = rounded(compute::update_seconds(*model.gpu, plan));
  return times;
}

}  // namespace espalier::scenario
