#include "scenario/workload/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "scenario/workload/training_compute.h"
#include "scenario/workload/training_step.h"

namespace espalier::scenario {
namespace {

tl::unexpected<Error> bad_model(std::string message, std::string help) {
  return fail(ErrorCode::invalid_input, std::move(message), std::move(help));
}

struct Division {
  std::string_view whole_name;
  std::int64_t whole;
  std::string_view part_name;
  std::int64_t part;
};

Result<void> check_experts(const TrainingModel& model) {
  if (model.experts == 0) {
    const std::pair<std::string_view, bool> given[] = {{"expert", model.expert > 1},
                                                       {"expert_tensor", model.expert_tensor > 0},
                                                       {"expert_feed_forward", model.expert_width > 0},
                                                       {"shared_experts", model.shared_experts > 0},
                                                       {"dense_layers", model.dense_layers > 0}};
    for (const auto& [key, is_given] : given) {
      if (is_given) return bad_model(fmt::format("{} is given, but the model has no experts", key), "give experts");
    }
    return {};
  }
  if (model.experts_per_token > model.experts) {
    return bad_model(fmt::format("a token goes to {} of {} experts", model.experts_per_token, model.experts),
                     "experts_per_token is at most experts");
  }
  if (model.dense_layers > model.layers) {
    return bad_model(fmt::format("{} of {} layers are dense", model.dense_layers, model.layers),
                     "dense_layers is at most layers");
  }
  if (model.tensor_of_experts() != model.tensor && !model.sequence_parallel) {
    return bad_model(fmt::format("an expert is shared by {} and a layer by {}, and each rank of a layer has all tokens",
                                 model.tensor_of_experts(), model.tensor),
                     "write 'sequence_parallel: true', so that each has its own tokens, or leave expert_tensor out");
  }
  return {};
}

Result<void> check_divisions(const TrainingModel& model) {
  const std::int64_t kv_heads = model.kv_heads == 0 ? model.heads : model.kv_heads;
  const bool is_exchanged = model.context_exchange == compute::ContextExchange::all_to_all;
  const bool is_plain = model.context == 1 && model.tensor_of_experts() == model.tensor;
  const std::int64_t expert_ranks = model.tensor_of_experts() * model.expert;
  const bool has_list = !model.stage_layers.empty();
  const Division divisions[] = {
      {"layers", model.layers, "pipeline", has_list ? 1 : model.pipeline},
      {"layers", model.layers, "pipeline x virtual_stages", has_list ? 1 : model.stages()},
      {"hidden", model.hidden, "heads", model.head_size == 0 ? model.heads : 1},
      {"heads", model.heads, "kv_heads", kv_heads},
      {"heads", model.heads, "tensor", model.tensor},
      {"hidden", model.hidden, "tensor", model.tensor},
      {"feed_forward", model.feed_forward == 0 ? 4 * model.hidden : model.feed_forward, "tensor", model.tensor},
      {"sequence", model.sequence, "context", model.context},
      {"sequence", model.sequence, model.context > 1 ? "context x tensor" : "tensor",
       model.sequence_parallel ? model.context * model.tensor : 1},
      {"heads", model.heads, "tensor x context", is_exchanged ? model.tensor * model.context : 1},
      {"vocabulary", model.vocabulary, "tensor", model.tensor},
      {"batch", model.batch, "data x micro_batch", model.data * model.micro_batch},
      {"data", model.data, "expert", is_plain ? model.expert : 1},
      {"tensor", model.tensor, "expert_tensor", model.tensor_of_experts()},
      {"tensor x context x data", model.tensor * model.replicas(), "expert_tensor x expert", expert_ranks},
      {"context x data", model.replicas(), "shard_group", model.sharers()},
      {"experts", model.experts, "expert", model.expert},
  };
  for (const Division& division : divisions) {
    if (division.whole % division.part == 0) continue;
    return bad_model(fmt::format("{} {} cannot be shared evenly: {} is {}", division.whole, division.whole_name,
                                 division.part_name, division.part),
                     fmt::format("make {} a multiple of {}", division.whole_name, division.part_name));
  }
  if (has_list) {
    const auto sum = std::accumulate(model.stage_layers.begin(), model.stage_layers.end(), std::int64_t{0});
    if (std::cmp_not_equal(model.stage_layers.size(), model.stages()) || sum != model.layers) {
      return bad_model(fmt::format("stage_layers has {} stages with {} layers, and the model {} stages with {} layers",
                                   model.stage_layers.size(), sum, model.stages(), model.layers),
                       "give a number for each of pipeline x virtual_stages stages, along the model");
    }
  }
  if (model.virtual_stages > 1 && model.order != compute::Order::alternating) {
    return bad_model("virtual_stages is given, and only 'schedule: 1f1b' is interleaved", "leave one of the two out");
  }
  if (model.order == compute::Order::deferred_weights && model.sharding == Sharding::full) {
    return bad_model("'schedule: zero-bubble' puts gradients off, and 'sharding: full' adds them after every layer",
                     "use 'sharding: optimizer', or 'schedule: 1f1b'");
  }
  if (model.virtual_stages > 1 && model.pipeline == 1) {
    return bad_model("virtual_stages is given, but there is no pipeline", "give pipeline, or leave virtual_stages out");
  }
  const std::int64_t micro_batches = model.micro_batches();
  if (model.virtual_stages > 1 && micro_batches % model.pipeline != 0) {
    return bad_model(
        fmt::format("{} micro-batches cannot be interleaved: pipeline is {}", micro_batches, model.pipeline),
        "with virtual_stages, make batch / (data x micro_batch) a multiple of pipeline");
  }
  return check_experts(model);
}

/// What else does not go together.
Result<void> check_further(const TrainingModel& model) {
  if (model.context_exchange != compute::ContextExchange::ring && model.context == 1) {
    return bad_model("context_exchange is given, but no ranks share a sequence", "give context, or leave it out");
  }
  if (model.overlaps_tensor && !model.sequence_parallel) {
    return bad_model("tp_comm_overlap is given, and only gathers and scatters run beside products",
                     "write 'sequence_parallel: true', or leave tp_comm_overlap out");
  }
  if (model.overlaps_parameters && model.sharding != Sharding::optimizer) {
    return bad_model("overlap_param_gather is given, and no parameters are gathered behind the update",
                     "write 'sharding: optimizer', or leave overlap_param_gather out");
  }
  if (model.shard_group > 0 && model.sharding == Sharding::none) {
    return bad_model("shard_group is given, and nothing is sharded", "write 'sharding: full' or 'sharding: optimizer'");
  }
  const std::int64_t of_group = model.tensor * model.sharers(), of_experts = model.tensor_of_experts() * model.expert;
  if (model.experts > 0 && std::max(of_group, of_experts) % std::min(of_group, of_experts) != 0) {
    return bad_model(
        fmt::format("experts are shared by {} ranks, and weights by {}: neither is a multiple of the other", of_experts,
                    of_group),
        "make shard_group x tensor a multiple of expert x expert_tensor, or a part of it");
  }
  if (model.kv_rank == 0 && (model.query_rank > 0 || model.rotary_size > 0)) {
    return bad_model("query_rank and rotary_size are of latent attention, and kv_rank is not given",
                     "give kv_rank, or leave them out");
  }
  return {};
}

/// Gossip and compression take the place of the all_reduce of gradients: there must be one.
Result<void> check_averaging(const TrainingModel& model) {
  if (model.averaging.kind == AveragingKind::all_reduce) return {};
  if (model.data == 1) {
    return bad_model("gossip or compression is given, but there are no replicas to average gradients with",
                     "give more ranks than tensor x pipeline");
  }
  if (model.sharding != Sharding::none) {
    return bad_model("gossip and compression average whole gradients, and sharding cuts them",
                     "write 'sharding: none', or leave gossip and compression out");
  }
  if (model.kv_rank > 0) {
    return bad_model("compression is for plain matrices, and this model's attention is latent",
                     "leave gossip and compression out");
  }
  if (model.context > 1) {
    return bad_model("gossip and compression are for ranks with whole sequences, and context is given",
                     "leave 'context' out, or gossip and compression");
  }
  if (model.experts > 0) {
    return bad_model("gossip and compression are for dense models, and this one has experts",
                     "leave 'experts' out, or gossip and compression");
  }
  return {};
}

/// Whether the steps have too many tasks, and whether their buffers can be named.
Result<void> check_size(const TrainingModel& model, std::size_t task_limit) {
  const double tasks = count_tasks(model);
  if (tasks > static_cast<double>(task_limit)) {
    return fail(ErrorCode::too_large,
                fmt::format("the training steps have about {:.0f} million tasks, and the most are {:.1f} million",
                            std::floor(tasks / 1e6), static_cast<double>(task_limit) / 1e6),
                "use fewer micro-batches (a smaller batch) or steps");
  }
  const LayerCost cost = cost_of_layer(model);
  const __int128 parameters =
      static_cast<__int128>(cost.attention_parameters) + cost.shared_parameters + cost.dense_parameters +
      static_cast<__int128>(cost.feed_forward_parameters) * std::max<std::int64_t>(model.experts, 1) +
      static_cast<__int128>(model.vocabulary) * model.hidden;
  const __int128 activations = static_cast<__int128>(model.micro_batch) * model.sequence * model.hidden *
                               std::max<std::int64_t>(model.experts_per_token, 1);
  const __int128 most = max_message_size.count / 8;
  if (parameters * model.layers > most || activations > most) {
    return fail(ErrorCode::too_large, "the model's buffers are past 1 PiB",
                "check hidden, sequence, micro_batch and layers");
  }
  const __int128 flops =
      (cost.attention_flops + std::max(cost.dense_flops, cost.feed_forward_flops)) * 4 + output_flops(model);
  if (flops / model.rate.per_second > 3600) {
    return fail(ErrorCode::too_large, "one layer of one micro-batch computes for more than an hour",
                "check flops, hidden, sequence and micro_batch");
  }
  return {};
}

}  // namespace

LayerCost cost_of_layer(const TrainingModel& model) {
  const compute::ModelShape shape = shape_of(model);
  const auto tokens = static_cast<__int128>(model.micro_batch) * model.sequence;
  LayerCost cost;
  cost.attention_parameters = shape.attention_weights();
  cost.dense_parameters = shape.feed_forward_weights();
  cost.core_flops = tokens * 2 * model.sequence * shape.heads * (2 * shape.head() + shape.rotary_size);
  cost.attention_flops = tokens * 2 * cost.attention_parameters + cost.core_flops;
  cost.dense_flops = tokens * 2 * cost.dense_parameters;
  cost.feed_forward_parameters = cost.dense_parameters;
  cost.feed_forward_flops = cost.dense_flops;
  if (model.experts == 0) return cost;
  cost.feed_forward_parameters = shape.expert_weights();
  cost.shared_parameters = shape.shared_experts * cost.feed_forward_parameters;
  cost.feed_forward_flops =
      tokens * 2 * cost.feed_forward_parameters * (shape.experts_per_token + shape.shared_experts);
  return cost;
}

MatrixSizes matrices_of_layer(const TrainingModel& model) {
  const compute::ModelShape shape = shape_of(model);
  const std::int64_t h = model.hidden, t = model.tensor;
  const std::int64_t width = shape.heads * shape.head(), kv_width = shape.kv() * shape.head();
  const std::int64_t inner = shape.inner();
  const std::int64_t into = model.gated ? 2 : 1;  // matrices h x inner; one more goes back
  // Queries, keys and values and the matrices into the feed-forward part are cut by columns, the other two by rows.
  return {.rows = 3 * h + width / t + into * h + inner / t,
          .columns = (width + 2 * kv_width) / t + h + into * inner / t + h};
}

__int128 output_flops(const TrainingModel& model) {
  return static_cast<__int128>(2) * model.micro_batch * model.sequence * model.hidden * model.vocabulary;
}

Picoseconds compute_time(const TrainingModel& model, __int128 flops) {
  // flops / (T x C x rate x utilisation); the limits of `check_size` keep the product below 2^126.
  const __int128 numerator = flops * picoseconds_per_second;
  const __int128 rate =
      static_cast<__int128>(model.rate.per_second) * model.utilisation_ppm / 1'000'000 * model.tensor * model.context;
  return {static_cast<std::int64_t>((numerator + rate - 1) / rate)};
}

std::string_view use_of_call(std::string_view label) {
  constexpr std::pair<std::string_view, std::string_view> uses[] = {{"tensor", "tensor"},
                                                                    {"activations", "pipeline"},
                                                                    {"activation gradients", "pipeline"},
                                                                    {"gradients", "data"},
                                                                    {"parameters", "data"},
                                                                    {"expert gradients", "data"},
                                                                    {"embedding gradients", "pipeline"},
                                                                    {"experts", "expert"},
                                                                    {"expert tensor", "tensor"},
                                                                    {"context", "context"}};
  const auto* const found = std::ranges::find(uses, label, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(uses) ? std::string_view() : found->second;
}

std::vector<Parallelism> list_parallelisms(const TrainingModel& model, std::int64_t ranks,
                                           const FurtherParts& further) {
  const auto or_own = [](const std::vector<std::int64_t>& asked, std::int64_t own) {
    return asked.empty() ? std::vector<std::int64_t>{own} : asked;
  };
  const std::vector<std::int64_t> contexts = or_own(further.context, model.context);
  const std::vector<std::int64_t> expert_tensors = or_own(further.expert_tensor, model.expert_tensor);
  const std::vector<std::int64_t> shard_groups = or_own(further.shard_group, model.shard_group);
  std::vector<Parallelism> all;
  const std::int64_t max_expert = std::max<std::int64_t>(model.experts, 1);
  /// With these T, P and C.
  const auto add = [&](std::int64_t tensor, std::int64_t pipeline, std::int64_t context) {
    const std::int64_t data = ranks / tensor / pipeline / context;
    for (const std::int64_t expert_tensor : expert_tensors) {
      const std::int64_t of_expert = expert_tensor == 0 ? tensor : expert_tensor;
      const std::int64_t room = std::max<std::int64_t>(1, tensor * context * data / of_expert);
      for (std::int64_t expert = 1; expert <= std::min(room, max_expert); ++expert) {
        if (room % expert != 0 || max_expert % expert != 0) continue;
        for (const std::int64_t group : shard_groups) {
          all.push_back({tensor, pipeline, data, expert, context, expert_tensor, group});
        }
      }
    }
  };
  for (std::int64_t tensor = 1; tensor <= ranks; ++tensor) {
    if (ranks % tensor != 0) continue;
    for (std::int64_t pipeline = 1; pipeline <= ranks / tensor; ++pipeline) {
      if (ranks / tensor % pipeline != 0) continue;
      for (const std::int64_t context : contexts) {
        if (ranks / tensor / pipeline % context == 0) add(tensor, pipeline, context);
      }
    }
  }
  return all;
}

Parallelism parallelism_of(const TrainingModel& model) {
  return {model.tensor,  model.pipeline,      model.data,       model.expert,
          model.context, model.expert_tensor, model.shard_group};
}

TrainingModel spread(TrainingModel model, const Parallelism& parallelism) {
  model.tensor = parallelism.tensor;
  model.pipeline = parallelism.pipeline;
  model.data = parallelism.data;
  model.expert = parallelism.expert;
  model.context = parallelism.context;
  if (model.context == 1) model.context_exchange = compute::ContextExchange::ring;
  model.expert_tensor = parallelism.expert_tensor;
  model.shard_group = parallelism.shard_group;
  return model;
}

double count_tasks(const TrainingModel& model) {
  const std::int64_t per_layer =
      2 * (4 + (model.sequence_parallel ? 4 : 2) + (model.experts > 0 ? 2 : 0) + (model.recomputes ? 2 : 0) +
           (model.sharding == Sharding::full ? 2 : 0) + (model.overlaps_tensor ? 2 : 0) +
           (model.context > 1 ? (model.recomputes ? 10 : 5) : 0));
  const auto of_place = static_cast<double>(per_layer * (model.layers / model.pipeline + 1) + 8 * model.virtual_stages);
  const auto workers = static_cast<double>(model.tensor * model.pipeline) * static_cast<double>(model.replicas());
  return of_place * static_cast<double>(model.micro_batches()) * workers * static_cast<double>(model.steps);
}

std::optional<FewerBatches> fewer_batches(const TrainingModel& model, double max_tasks_of_step) {
  if (model.steps > 1 || count_tasks(model) <= max_tasks_of_step) return std::nullopt;
  // Whole rounds of the pipeline, for interleaved stages.
  constexpr std::int64_t fewest = 4;
  const std::int64_t few = (fewest + model.pipeline - 1) / model.pipeline * model.pipeline;
  const FewerBatches fewer{few, 2 * few};
  if (model.micro_batches() < 2 * fewer.more) return std::nullopt;
  return fewer;
}

Result<TrainingModel> check_training(const TrainingModel& given, std::int64_t count, std::size_t task_limit) {
  TrainingModel model = given;
  const __int128 share = static_cast<__int128>(model.tensor) * model.pipeline * model.context;
  if (model.data == 0 && share <= count && count % static_cast<std::int64_t>(share) == 0) {
    model.data = count / static_cast<std::int64_t>(share);
  }
  if (share * model.data != count) {
    const std::string context = model.context > 1 ? fmt::format(" x context {}", model.context) : std::string();
    return bad_model(
        fmt::format("tensor {}{} x pipeline {} x data {} are not the {} ranks", model.tensor, context, model.pipeline,
                    model.data == 0 ? std::string("?") : std::to_string(model.data), count),
        "their product is the number of ranks; data may be left out");
  }
  if (auto checked = check_divisions(model); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_further(model); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_averaging(model); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_routing(model); !checked) return tl::unexpected(checked.error());
  if (auto checked = check_size(model, task_limit); !checked) return tl::unexpected(checked.error());
  return model;
}

Result<void> add_training(Job& job, const TrainingModel& given, const std::vector<Rank>& ranks, std::size_t task_limit,
                          Averager* averager, std::optional<RoutingFigures>* routed) {
  const auto model = check_training(given, static_cast<std::int64_t>(ranks.size()), task_limit);
  if (!model) return tl::unexpected(model.error());
  TrainingSteps steps(job, *model, ranks, averager);
  if (routed != nullptr) *routed = steps.routing();
  return steps.add();
}

}  // namespace espalier::scenario
