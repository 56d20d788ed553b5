#include "compute/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "compute/constants.h"
#include "compute/pipeline.h"

namespace espalier::compute {
namespace {

/// What the ranks of one place do, half a layer after the other.
class Place {
 public:
  Place(const Gpu& gpu, const TrainingPlan& plan, const CallSeconds& calls)
      : gpu_(gpu), plan_(plan), calls_(calls), sparse_(half_pass(false)), dense_(half_pass(true)) {}

  /// Of a layer: forward and backward, with its calls and with what the host takes.
  [[nodiscard]] BothWays layer(bool is_dense) const { return is_dense ? dense_ : sparse_; }

  /// Of a layer's backward pass: gradients of weights, which take as long as the forward pass's products.
  [[nodiscard]] double weights(bool is_dense) const {
    if (plan_.order != Order::deferred_weights) return 0;
    const HalfTime attention = attention_half(gpu_, plan_.model, plan_.slice, plan_.software);
    const HalfTime other = feed_forward_half(gpu_, plan_.model, plan_.slice, plan_.software, is_dense);
    return weights_seconds(attention) + weights_seconds(other);
  }

  [[nodiscard]] double call(CallKind kind, const CallGroup& group, double bytes) const {
    return group.count > 1 && bytes > 0 && calls_ ? calls_(kind, group, bytes) : 0;
  }
  [[nodiscard]] CallGroup tensor() const { return {plan_.slice.tensor, 1, 1}; }
  [[nodiscard]] CallGroup context() const { return {plan_.slice.context, plan_.slice.tensor, plan_.slice.tensor}; }
  [[nodiscard]] CallGroup data() const {
    const std::int64_t stride = plan_.slice.tensor;
    return {plan_.slice.context * plan_.data, stride, stride};
  }
  /// Bytes of the activations of a micro-batch between layers, of all tensor ranks together.
  [[nodiscard]] double activations() const {
    return static_cast<double>(plan_.slice.tokens() * plan_.model.hidden) * bytes_of(plan_.software.activations());
  }
  [[nodiscard]] BothWays ends() const {
    const BothWays busy = ends_seconds(gpu_, plan_.model, plan_.slice, plan_.software);
    const BothWays host = ends_host(plan_.model, plan_.software);
    return {together(busy.forward, host.forward), together(busy.backward, host.backward)};
  }

 private:
  /// Calls of tensor ranks around half a layer, one way.
  [[nodiscard]] double tensor_calls() const {
    const double all = activations();
    if (!plan_.slice.is_sequence_parallel) return call(CallKind::all_reduce, tensor(), all);
    return call(CallKind::all_gather, tensor(), all) + call(CallKind::reduce_scatter, tensor(), all);
  }
  /// What exchanges among ranks that share sequences add to attention, one way.
  [[nodiscard]] BothWays context_calls(const HalfTime& attention) const {
    if (plan_.slice.context == 1) return {};
    const ContextBytes bytes = context_bytes(plan_);
    if (plan_.context_exchange == ContextExchange::all_to_all) {
      const double both = call(CallKind::all_to_all, context(), bytes.exchanged_in) +
                          call(CallKind::all_to_all, context(), bytes.exchanged_out);
      return {both, both};
    }
    const double gather = call(CallKind::all_gather, context(), bytes.gathered);
    const double scatter = call(CallKind::reduce_scatter, context(), bytes.gathered);
    if (plan_.context_exchange == ContextExchange::all_gather) return {gather, gather + scatter};
    // Forward the last part of the sequence waits for the round, backward gradients of the first one begin it.
    const double part = 1 / static_cast<double>(plan_.slice.context);
    const double forward = std::max(attention.core * (1 - part), gather) + attention.core * part;
    const double backward = std::max(attention.core_back, std::max(gather, attention.core_back * part) + scatter);
    return {forward - attention.core, backward - attention.core_back};
  }
  /// Tokens on their way to experts and back.
  [[nodiscard]] double expert_calls() const {
    if (plan_.slice.expert == 1) return 0;
    const std::int64_t stride = plan_.slice.tensor_of_experts();
    const double share = static_cast<double>(plan_.slice.tensor_of_experts()) / static_cast<double>(plan_.slice.tensor);
    const double sent = activations() * static_cast<double>(plan_.model.experts_per_token) * std::min(1.0, share);
    return 2 * call(CallKind::all_to_all, {plan_.slice.expert, stride, stride}, sent);
  }

  /// Of the calls of tensor ranks around a dense feed-forward part, those around one that is or has experts: where
  /// these are shared otherwise, tokens go to them from each rank's own part of the sequence.
  [[nodiscard]] double feed_forward_part(bool is_dense) const {
    const bool is_apart = !is_dense && plan_.slice.tensor_of_experts() < plan_.slice.tensor;
    return is_apart && plan_.model.shared_experts == 0 ? 0 : 1;
  }

  [[nodiscard]] BothWays half_pass(bool is_dense) const {
    const double hidden = plan_.overlaps_tensor ? plan_.software.tensor_hidden : 0;
    const double tensor_time = tensor_calls() * (1 - hidden);
    const bool again = plan_.recompute == Recompute::full;
    const HalfTime attention = attention_half(gpu_, plan_.model, plan_.slice, plan_.software);
    const HalfTime other = feed_forward_half(gpu_, plan_.model, plan_.slice, plan_.software, is_dense);
    const double experts = is_dense ? 0 : expert_calls();
    const BothWays round = context_calls(attention);
    const double calls = (1 + feed_forward_part(is_dense)) * tensor_time + experts;
    const HalfTime first = attention.with(plan_.recompute), second = other.with(plan_.recompute);
    // A collective that another follows in the backward pass of sequence parallelism gathers the input again.
    const double extra = plan_.slice.is_sequence_parallel ? 2 * (1 - hidden) * 0.5 * tensor_calls() : 0;
    const double rounds = round.backward + (again ? round.forward : 0);
    return {
        together(first.forward + second.forward + calls + round.forward, first.host_forward + second.host_forward),
        together(first.backward + second.backward + calls * (again ? 2 : 1) + rounds + extra * constants::gather_again,
                 first.host_backward + second.host_backward)};
  }

  const Gpu& gpu_;
  const TrainingPlan& plan_;
  const CallSeconds& calls_;
  BothWays sparse_, dense_;
};

/// Layers of a stage, numbered along the model: the first ones have one more where they do not divide.
std::int64_t layers_of_stage(const TrainingPlan& plan, std::int64_t stage) {
  if (!plan.stage_layers.empty()) return plan.stage_layers[static_cast<std::size_t>(stage)];
  const std::int64_t stages = plan.pipeline * plan.virtual_stages;
  return plan.model.layers / stages + (stage < plan.model.layers % stages ? 1 : 0);
}

std::int64_t first_layer_of_stage(const TrainingPlan& plan, std::int64_t stage) {
  std::int64_t first = 0;
  for (std::int64_t i = 0; i < stage; ++i) first += layers_of_stage(plan, i);
  return first;
}

struct Counted {
  double dense = 0;
  double sparse = 0;
};

Counted layers_of(const TrainingPlan& plan, std::int64_t stage) {
  const std::int64_t first = first_layer_of_stage(plan, stage), count = layers_of_stage(plan, stage);
  if (plan.model.experts == 0) return {static_cast<double>(count), 0};
  const std::int64_t dense = std::clamp<std::int64_t>(plan.model.dense_layers - first, 0, count);
  return {static_cast<double>(dense), static_cast<double>(count - dense)};
}

/// Weights of a rank at a place: those that all replicas have, and those of its experts.
struct Weights {
  double shared = 0;
  double experts = 0;
  double largest_layer = 0;
};

Weights weights_of_place(const TrainingPlan& plan, std::int64_t place) {
  const ModelShape& model = plan.model;
  const auto tensor = static_cast<double>(plan.slice.tensor);
  Weights weights;
  const auto attention = static_cast<double>(model.attention_weights()) / tensor;
  const auto dense = static_cast<double>(model.feed_forward_weights()) / tensor;
  const double shared = static_cast<double>(model.shared_experts * model.expert_weights()) / tensor;
  for (std::int64_t turn = 0; turn < plan.virtual_stages; ++turn) {
    const Counted layers = layers_of(plan, turn * plan.pipeline + place);
    weights.shared += (layers.dense + layers.sparse) * attention + layers.dense * dense + layers.sparse * shared;
    weights.experts += layers.sparse * static_cast<double>(model.experts / plan.slice.expert) *
                       static_cast<double>(model.expert_weights()) /
                       static_cast<double>(plan.slice.tensor_of_experts());
  }
  weights.largest_layer = attention + (model.experts == 0 ? dense : shared);
  const auto table = static_cast<double>(model.vocabulary * model.hidden) / tensor;
  if (place == 0) weights.shared += table + static_cast<double>(model.positions * model.hidden);
  if (place == plan.pipeline - 1 && (plan.pipeline > 1 || !model.is_tied)) weights.shared += table;
  return weights;
}

/// Of the place that has the most.
Weights weights_of_fullest(const TrainingPlan& plan) {
  Weights most = weights_of_place(plan, 0);
  for (std::int64_t place = 1; place < plan.pipeline; ++place) {
    const Weights here = weights_of_place(plan, place);
    if (here.shared + here.experts > most.shared + most.experts) most = here;
  }
  return most;
}

/// Ranks that share what is sharded of the weights of a place, in their mean: those of experts have fewer replicas.
double sharers(const TrainingPlan& plan, const Weights& weights) {
  const std::int64_t replicas = plan.data * plan.slice.context;
  const std::int64_t shared = plan.shard_group > 0 ? std::min(plan.shard_group, replicas) : replicas;
  const std::int64_t of_experts =
      std::max<std::int64_t>(1, plan.slice.tensor * shared / (plan.slice.tensor_of_experts() * plan.slice.expert));
  const double kept = weights.shared / static_cast<double>(shared) + weights.experts / static_cast<double>(of_experts);
  return (weights.shared + weights.experts) / kept;
}

}  // namespace

ContextBytes context_bytes(const TrainingPlan& plan) {
  const ModelShape& model = plan.model;
  const Slice& slice = plan.slice;
  const bool is_latent = model.kv_rank > 0;
  const std::int64_t keys = is_latent ? model.heads : model.kv();
  const auto head = static_cast<double>(2 * model.head() + model.rotary_size);
  const auto of_rank = [&](std::int64_t heads, std::int64_t least) {
    return static_cast<double>(std::max(least, heads / slice.tensor));
  };
  const double element = bytes_of(plan.software.activations());
  const double own = static_cast<double>(slice.tokens()) * element;
  const double heads = of_rank(model.heads, 1), query = static_cast<double>(model.head() + model.rotary_size);
  return {own * static_cast<double>(slice.context) * of_rank(keys, 1) * head,
          own * (heads * query + of_rank(keys, slice.context) * head), own * heads * static_cast<double>(model.head())};
}

Result<void> check(const TrainingPlan& plan) {
  const ModelShape& model = plan.model;
  const Slice& slice = plan.slice;
  const auto refuse = [](std::string_view what, std::int64_t whole, std::string_view by, std::int64_t part) {
    return fail(ErrorCode::invalid_input, fmt::format("{} {} is no multiple of {} {}", what, whole, by, part),
                fmt::format("make {} a multiple of {}", what, by));
  };
  if (plan.batch % (plan.data * slice.micro_batch) != 0) {
    return refuse("batch", plan.batch, "data x micro_batch", plan.data * slice.micro_batch);
  }
  if (model.heads % slice.tensor != 0) return refuse("heads", model.heads, "tensor", slice.tensor);
  if (slice.sequence % slice.context != 0) return refuse("sequence", slice.sequence, "context", slice.context);
  if (model.layers < plan.pipeline * plan.virtual_stages) {
    return fail(ErrorCode::invalid_input,
                fmt::format("{} layers are fewer than pipeline x virtual_stages {}", model.layers,
                            plan.pipeline * plan.virtual_stages),
                "give more layers, or a shorter pipeline");
  }
  if (plan.virtual_stages > 1 && plan.order != Order::alternating) {
    return fail(ErrorCode::invalid_input, "only one forward, one backward in turn is interleaved",
                "leave virtual_stages out, or the order");
  }
  if (!plan.stage_layers.empty()) {
    const bool are_all =
        std::cmp_equal(plan.stage_layers.size(), plan.pipeline * plan.virtual_stages) &&
        std::ranges::min(plan.stage_layers) > 0 &&
        std::accumulate(plan.stage_layers.begin(), plan.stage_layers.end(), std::int64_t{0}) == model.layers;
    if (!are_all) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("stage_layers are not {} numbers above zero whose sum is {} layers",
                              plan.pipeline * plan.virtual_stages, model.layers),
                  "give a number for each stage, along the model");
    }
  }
  if (plan.virtual_stages > 1 && plan.micro_batches() % plan.pipeline != 0) {
    return refuse("micro-batches", plan.micro_batches(), "pipeline", plan.pipeline);
  }
  if (model.experts > 0 && model.experts % slice.expert != 0)
    return refuse("experts", model.experts, "expert", slice.expert);
  return {};
}

namespace {

struct RangeClass {
  std::string_view generation;
  bool is_one_box;
  StepRange range;
};

constexpr std::int64_t of_box = 8;

std::optional<StepRange> range_among(std::span<const RangeClass> classes, const Gpu& gpu, const TrainingPlan& plan) {
  if (!plan.model.is_causal) return std::nullopt;
  for (const RangeClass& each : classes) {
    if (gpu.name.starts_with(each.generation) && each.is_one_box == (plan.ranks() <= of_box)) return each.range;
  }
  return std::nullopt;
}

}  // namespace

std::optional<StepRange> measured_range(const Gpu& gpu, const TrainingPlan& plan) {
  // tests/accuracy/training.py ESPALIER RUNS.csv --ranges, 2026-11-28.
  constexpr std::array classes = {
      RangeClass{"a100", true, {0.84, 1.20, 1516, 6}}, RangeClass{"a100", false, {0.90, 1.38, 80, 6}},
      RangeClass{"h100", true, {0.88, 1.19, 46, 2}}, RangeClass{"h100", false, {0.87, 1.29, 49, 3}}};
  return range_among(classes, gpu, plan);
}

std::optional<StepRange> simulated_range(const Gpu& gpu, const TrainingPlan& plan) {
  // tests/accuracy/training_scenarios.py ESPALIER RUNS.csv --gpus 128 --most 150, 2026-11-29.
  constexpr std::array classes = {
      RangeClass{"a100", true, {0.85, 1.16, 222, 6}}, RangeClass{"a100", false, {0.92, 1.21, 35, 6}},
      RangeClass{"h100", true, {0.96, 1.22, 40, 2}}, RangeClass{"h100", false, {0.85, 1.44, 24, 3}}};
  return range_among(classes, gpu, plan);
}

std::string why_unlike_measured(const Gpu& gpu, const TrainingPlan& plan) {
  if (!gpu.name.starts_with("a100") && !gpu.name.starts_with("h100")) {
    return fmt::format("steps on A100 and H100 were measured, none on {}", gpu.name);
  }
  if (!plan.model.is_causal) return "of models whose attention is not causal too little was measured";
  if (plan.model.experts > 0) return "no step of a model with experts was measured";
  if (plan.slice.context > 1) return "no step with context ranks was measured";
  constexpr std::int64_t most_a100 = 3072, most_h100 = 6144;
  const std::int64_t most = gpu.name.starts_with("a100") ? most_a100 : most_h100;
  return plan.ranks() > most ? fmt::format("steps on up to {} GPUs were measured", most) : std::string();
}

MemoryUse memory_of_place(const TrainingPlan& plan, std::int64_t place) {
  const Weights weights = weights_of_place(plan, place);
  const double shards = plan.shards == Shards::none ? 1 : sharers(plan, weights);
  Held held;
  held.weights = weights.shared + weights.experts;
  held.replicas = shards;
  held.sharers = plan.shards == Shards::full ? shards : 1;
  held.micro_batches = plan.micro_batches();
  const std::vector<std::int64_t> under_way = plan.pipeline_order().under_way_by_stage(place);
  for (std::size_t turn = 0; turn < under_way.size(); ++turn) {
    const Counted layers = layers_of(plan, static_cast<std::int64_t>(turn) * plan.pipeline + place);
    const auto kept = static_cast<double>(under_way[turn]);
    held.layers += kept * (layers.dense + layers.sparse);
    held.dense_layers += kept * layers.dense;
  }
  held.has_output = place == plan.pipeline - 1;
  held.embedding = place == 0 || held.has_output ? static_cast<double>(plan.model.vocabulary * plan.model.hidden) /
                                                       static_cast<double>(plan.slice.tensor) / held.sharers
                                                 : 0;
  MemoryUse use = peak_memory(plan.model, plan.slice, plan.software, plan.recompute, held);
  if (plan.shards == Shards::gradients) {  // A layer's are whole until they are added up.
    use.gradients /= shards;
    use.working += 4 * weights.largest_layer;
  }
  if (plan.shards == Shards::full) use.working += 4 * weights.largest_layer * 2;  // Two layers, whole, with gradients.
  return use;
}

double update_seconds(const Gpu& gpu, const TrainingPlan& plan) {
  const Weights most = weights_of_fullest(plan);
  const double shares = plan.shards == Shards::none ? 1 : sharers(plan, most);
  return optimizer_seconds(gpu, (most.shared + most.experts) / shares, plan.software);
}

StepTime step_time(const Gpu& gpu, const TrainingPlan& plan, const CallSeconds& calls) {
  const Place place(gpu, plan, calls);
  const double element = bytes_of(plan.software.activations());
  const double of_gradient = plan.gradient_bytes > 0 ? plan.gradient_bytes : element;
  const BothWays ends = place.ends();
  const CallGroup replicas = place.data();
  // With weights that are gathered before use a layer takes as long as its calls where these take longer.
  CallGroup sharing = replicas;
  if (plan.shard_group > 0) sharing.count = std::min(plan.shard_group, replicas.count);
  const bool is_full = plan.shards == Shards::full;
  const auto with_gathers = [&](BothWays layer, double weights) {
    if (!is_full || sharing.count == 1) return layer;
    const double gather = place.call(CallKind::all_gather, sharing, weights * element);
    const double scatter = place.call(CallKind::reduce_scatter, sharing, weights * of_gradient);
    const auto beside = [&](double computed, double called) {
      const double slower = computed + plan.software.slowed * std::min(computed, called);
      return std::max(slower, called);
    };
    return BothWays{beside(layer.forward, gather), beside(layer.backward, gather + scatter)};
  };
  const Weights first = weights_of_place(plan, 0);
  PipelineShape shape{plan.pipeline_order(), {}, {}, 0};
  const std::int64_t stages = plan.pipeline * plan.virtual_stages;
  const BothWays dense = with_gathers(place.layer(true), first.largest_layer);
  const BothWays sparse = with_gathers(place.layer(false), first.largest_layer);
  for (std::int64_t stage = 0; stage < stages; ++stage) {
    const Counted layers = layers_of(plan, stage);
    BothWays time{layers.dense * dense.forward + layers.sparse * sparse.forward,
                  layers.dense * dense.backward + layers.sparse * sparse.backward};
    if (stage == stages - 1) {
      time.forward += ends.forward;
      time.backward += ends.backward;
    }
    shape.stages.push_back(time);
    shape.weights.push_back(layers.dense * place.weights(true) + layers.sparse * place.weights(false));
  }
  // Tensor ranks send a part each, and gather the whole behind.
  const double boundary = place.activations() / static_cast<double>(plan.slice.tensor);
  const std::int64_t stride = plan.ranks() / plan.pipeline;
  shape.send =
      place.call(CallKind::send, {plan.pipeline > 1 ? 2 : 1, stride, std::min(stride, plan.slice.tensor)}, boundary);
  if (plan.pipeline > 1 && !plan.slice.is_sequence_parallel) {
    shape.send += place.call(CallKind::all_gather, place.tensor(), place.activations());
  }
  const double piped = pipeline_seconds(shape);
  StepTime step;
  double slowest = 0;
  for (std::int64_t at = 0; at < plan.pipeline; ++at) {
    BothWays own;
    for (std::int64_t turn = 0; turn < plan.virtual_stages; ++turn) {
      const BothWays& stage = shape.stages[static_cast<std::size_t>(turn * plan.pipeline + at)];
      own.forward += stage.forward;
      own.backward += stage.backward;
    }
    if (own.forward + own.backward < slowest) continue;
    slowest = own.forward + own.backward;
    step.forward = own.forward * static_cast<double>(shape.micro_batches);
    step.backward = own.backward * static_cast<double>(shape.micro_batches);
  }
  step.bubble = piped - step.forward - step.backward;
  // Gradients and parameters of the place with the most weights.
  const Weights most = weights_of_fullest(plan);
  const std::int64_t expert_ranks = plan.slice.tensor_of_experts() * plan.slice.expert;
  const CallGroup of_experts{std::max<std::int64_t>(1, plan.slice.tensor * replicas.count / expert_ranks), expert_ranks,
                             expert_ranks};
  const auto both_kinds = [&](CallKind kind, double bytes_each) {
    return place.call(kind, replicas, most.shared * bytes_each) +
           place.call(kind, of_experts, most.experts * bytes_each);
  };
  double added = 0, gathered = 0;
  const double last_backward = step.backward / static_cast<double>(shape.micro_batches);
  const double next_forward = step.forward / static_cast<double>(shape.micro_batches);
  if (plan.shards == Shards::none) added = both_kinds(CallKind::all_reduce, of_gradient);
  if (plan.shards == Shards::optimizer || plan.shards == Shards::gradients) {
    if (sharing.count < replicas.count) {
      // Within a group gradients are scattered, groups add them; then the group gathers.
      added = both_kinds(CallKind::all_reduce, of_gradient);
      gathered = place.call(CallKind::all_gather, sharing, most.shared * element);
    } else {
      added = both_kinds(CallKind::reduce_scatter, of_gradient);
      gathered = both_kinds(CallKind::all_gather, element);
    }
  }
  if (is_full) {
    const double tables = (plan.model.is_tied ? 1 : 2) *
                          static_cast<double>(plan.model.vocabulary * plan.model.hidden) /
                          static_cast<double>(plan.slice.tensor);
    gathered = place.call(CallKind::all_gather, sharing, tables * element);
    added = place.call(CallKind::reduce_scatter, sharing, tables * of_gradient);
    if (sharing.count < replicas.count) {
      const CallGroup groups{replicas.count / sharing.count, replicas.stride * sharing.count,
                             sharing.count * replicas.at_once};
      added += place.call(CallKind::all_reduce, groups, most.shared / static_cast<double>(sharing.count) * of_gradient);
    }
  }
  const auto exposed = [&](double called, bool overlaps, double beside) {
    if (!overlaps) return called;
    return std::max(called * plan.software.last_bucket, called - (1 - plan.software.slowed) * beside);
  };
  step.data = exposed(added, plan.overlaps_gradients && !is_full, last_backward) +
              exposed(gathered, plan.overlaps_parameters && !is_full, next_forward);
  step.optimizer = update_seconds(gpu, plan);
  step.seconds = piped + step.data + step.optimizer;
  for (std::int64_t at = 0; at < plan.pipeline; ++at) {
    const MemoryUse use = memory_of_place(plan, at);
    if (at == 0 || use.total() > step.memory.total()) step.memory = use;
  }
  return step;
}

}  // namespace espalier::compute
