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
  ComputeTimes times;
  for (const bool is_back : {false, true}) {
    const int passes = is_back ? again : 1;
    times.attention[is_back] = compute_time(model, cost.attention_flops * passes);
    times.feed_forward[is_back] = compute_time(model, cost.feed_forward_flops * passes);
    if (model.vocabulary > 0) times.output[is_back] = compute_time(model, output_flops(model) * (is_back ? 2 : 1));
  }
  times.optimizer = model.optimizer;
  return times;
}

}  // namespace

compute::TrainingPlan plan_of(const TrainingModel& model) {
  compute::TrainingPlan plan;
  plan.model = {.layers = model.layers,
                .hidden = model.hidden,
                .heads = model.heads,
                .kv_heads = model.kv_heads,
                .feed_forward = model.feed_forward,
                .is_gated = model.gated,
                .vocabulary = model.vocabulary,
                .is_tied = false,
                .experts = model.experts,
                .experts_per_token = model.experts_per_token};
  plan.slice = {.tensor = model.tensor,
                .is_sequence_parallel = model.sequence_parallel,
                .expert = model.expert,
                .micro_batch = model.micro_batch,
                .sequence = model.sequence};
  plan.software.kernels = compute::Kernels::fused;
  plan.software.host = compute::constants::trainer_host;
  if (size_of(model.type) >= 4) plan.software.precision = compute::Precision::tf32;
  plan.recompute = model.recomputes ? compute::Recompute::full : compute::Recompute::none;
  plan.pipeline = model.pipeline;
  plan.virtual_stages = model.virtual_stages;
  plan.data = model.data;
  plan.batch = model.batch;
  constexpr compute::Shards shards[] = {compute::Shards::none, compute::Shards::optimizer, compute::Shards::full};
  plan.shards = shards[static_cast<std::size_t>(model.sharding)];
  plan.gradient_bytes = static_cast<double>(size_of(model.gradients));
  return plan;
}

ComputeTimes times_of(const TrainingModel& model) {
  if (model.gpu == nullptr || model.has_utilisation) return by_rate(model);
  const compute::TrainingPlan plan = plan_of(model);
  const auto half = [&](const compute::HalfTime& once, Picoseconds(&times)[2]) {
    const compute::HalfTime time = once.with(plan.recompute);
    times[0] = rounded(compute::together(time.forward, time.host_forward));
    times[1] = rounded(compute::together(time.backward, time.host_backward));
  };
  ComputeTimes times;
  half(compute::attention_half(*model.gpu, plan.model, plan.slice, plan.software), times.attention);
  half(compute::feed_forward_half(*model.gpu, plan.model, plan.slice, plan.software, model.experts == 0),
       times.feed_forward);
  const compute::BothWays ends = compute::ends_seconds(*model.gpu, plan.model, plan.slice, plan.software);
  times.output[0] = rounded(ends.forward);
  times.output[1] = rounded(ends.backward);
  times.optimizer = model.optimizer;
  if (model.optimizer.count == 0) times.optimizer = rounded(compute::update_seconds(*model.gpu, plan));
  return times;
}

}  // namespace espalier::scenario
