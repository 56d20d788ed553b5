#include "scenario/workload/training_figures.h"

#include <algorithm>

#include "scenario/workload/training_compute.h"

namespace espalier::scenario {
namespace {

/// Numbers of parameters that a rank holds before anything is sharded over replicas.
struct Held {
  std::int64_t dense = 0;
  std::int64_t experts = 0;
  std::int64_t largest_layer = 0;  ///< Of the dense ones.
};

/// Layers of a place that have no experts.
std::int64_t dense_layers_at(const TrainingModel& model, std::int64_t place) {
  if (model.experts == 0) return model.layers_at(place);
  std::int64_t sum = 0;
  for (std::int64_t stage = place; stage < model.stages(); stage += model.pipeline) {
    sum += std::clamp<std::int64_t>(model.dense_layers - model.first_layer_of(stage), 0, model.layers_of(stage));
  }
  return sum;
}

Held held_at(const TrainingModel& model, std::int64_t place) {
  const LayerCost cost = cost_of_layer(model);
  const std::int64_t dense = dense_layers_at(model, place), sparse = model.layers_at(place) - dense;
  Held held;
  const std::int64_t of_dense = cost.replicated(true) / model.tensor;
  const std::int64_t of_sparse = cost.replicated(false) / model.tensor;
  held.largest_layer = std::max(dense > 0 ? of_dense : 0, sparse > 0 ? of_sparse : 0);
  held.dense = dense * of_dense + sparse * of_sparse;
  held.experts = sparse * cost.feed_forward_parameters / model.tensor_of_experts() * (model.experts / model.expert);
  const std::int64_t embedding = model.vocabulary * model.hidden / model.tensor;
  if (place == 0) held.dense += embedding;
  if (place == model.pipeline - 1 && (place > 0 || !model.tied)) held.dense += embedding;
  return held;
}

/// Layers whose activations a place keeps at once, each of one micro-batch: one more than the forwards that go ahead.
std::int64_t layers_under_way(const TrainingModel& model, std::int64_t place) {
  const std::vector<std::int64_t> under_way = model.pipeline_order().under_way_by_stage(place);
  std::int64_t layers = 0;
  for (std::size_t turn = 0; turn < under_way.size(); ++turn) {
    layers += under_way[turn] * model.layers_of(static_cast<std::int64_t>(turn) * model.pipeline + place);
  }
  return layers;
}

/// Of one layer and one micro-batch.
__int128 activation_bytes(const TrainingModel& model) {
  const __int128 tokens = static_cast<__int128>(model.micro_batch) * model.sequence / model.context;
  const std::int64_t element = size_of(model.type);
  const std::int64_t spread = model.sequence_parallel ? model.tensor : 1;
  if (model.recomputes) return tokens * model.hidden * element / spread;
  const compute::ModelShape shape = shape_of(model);
  const std::int64_t width = shape.heads * shape.head(), kv_width = shape.kv() * shape.head();
  const bool is_dense = model.experts == 0;
  const std::int64_t inner =
      is_dense ? shape.inner() : shape.inner_of_expert() * (model.experts_per_token + model.shared_experts);
  // Inputs of both norms, of attention and feed-forward, and two dropout masks of a byte each; then queries, keys,
  // values and the projection's input, and what stands between the matrices of the feed-forward part.
  const std::int64_t whole = model.hidden * (4 * element + 2);
  const __int128 shared = static_cast<__int128>(element) * (2 * width + 2 * kv_width + (model.gated ? 3 : 2) * inner);
  return tokens * whole / spread + tokens * shared / model.tensor;
}

/// What no machine has is as good as too much.
Bytes limited(__int128 bytes) { return {static_cast<std::int64_t>(std::min<__int128>(bytes, std::int64_t{1} << 60U))}; }

/// As measured steps have it, with what kernels and libraries keep among the activations.
MemoryNeed measured_need(const TrainingModel& model, std::int64_t place) {
  const compute::MemoryUse use = compute::memory_of_place(plan_of(model), place);
  const auto bytes = [](double count) { return Bytes{static_cast<std::int64_t>(std::min(count, 1e18))}; };
  return {bytes(use.weights), bytes(use.gradients), bytes(use.optimizer), bytes(use.activations + use.working)};
}

std::int64_t share(std::int64_t whole, std::int64_t parts) { return (whole + parts - 1) / parts; }

}  // namespace

MemoryNeed memory_of_place(const TrainingModel& model, std::int64_t place) {
  if (model.gpu != nullptr) return measured_need(model, place);
  const Held held = held_at(model, place);
  const std::int64_t element = size_of(model.type), gradient = size_of(model.gradients);
  const bool shards_state = model.sharding != Sharding::none, shards_all = model.sharding == Sharding::full;
  const auto kept = [&](bool is_shared) {
    return is_shared ? share(held.dense, model.sharers()) + share(held.experts, model.expert_sharers())
                     : held.dense + held.experts;
  };
  const std::int64_t state = element >= 4 ? 8 : 12;
  MemoryNeed need;
  need.parameters.count = element * (kept(shards_all) + (shards_all ? held.largest_layer : 0));
  need.gradients.count = gradient * kept(shards_all || model.shards_gradients);
  need.optimizer.count = state * kept(shards_state);
  __int128 activations = layers_under_way(model, place) * activation_bytes(model);
  if (place == model.pipeline - 1) {
    activations +=
        static_cast<__int128>(4) * model.micro_batch * model.sequence / model.context * model.vocabulary / model.tensor;
  }
  need.activations = limited(activations);
  return need;
}

TrainingFigures figures_of(const TrainingModel& model) {
  const LayerCost cost = cost_of_layer(model);
  const std::int64_t micro_batches = model.batch / model.micro_batch;
  const std::int64_t first_dense = model.experts == 0 ? 0 : model.dense_layers;
  TrainingFigures figures;
  figures.ranks = model.tensor * model.pipeline * model.replicas();
  figures.steps = model.steps;
  figures.tokens = model.batch * model.sequence;
  figures.operations = 3.0 * static_cast<double>(micro_batches) *
                       (static_cast<double>(model.layers - first_dense) * static_cast<double>(cost.operations(false)) +
                        static_cast<double>(first_dense) * static_cast<double>(cost.operations(true)) +
                        static_cast<double>(output_flops(model)));
  figures.rate = model.rate;
  figures.capacity = model.memory;
  if (model.gpu == nullptr || model.has_utilisation) {
    figures.outside = "what a rank computes is given, not predicted";
  } else {
    figures.range = compute::simulated_range(*model.gpu, plan_of(model));
    figures.outside = compute::why_unlike_measured(*model.gpu, plan_of(model));
  }
  for (std::int64_t place = 0; place < model.pipeline; ++place) {
    const MemoryNeed need = memory_of_place(model, place);
    if (place > 0 && need.total() <= figures.memory.total()) continue;
    figures.memory = need;
    figures.place = place;
    figures.first_rank = place * model.tensor * model.replicas();
  }
  return figures;
}

double TrainingFigures::tokens_per_second(Picoseconds elapsed) const {
  return elapsed.count > 0 ? static_cast<double>(tokens * steps) / elapsed.seconds() : 0;
}

double TrainingFigures::model_flops_utilisation(Picoseconds elapsed) const {
  const double possible = static_cast<double>(rate.per_second) * static_cast<double>(ranks) * elapsed.seconds();
  return possible > 0 ? operations * static_cast<double>(steps) / possible : 0;
}

}  // namespace espalier::scenario
