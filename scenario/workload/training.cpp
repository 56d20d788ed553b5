#include "scenario/workload/training.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

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

Result<void> check_divisions(const TrainingModel& model) {
  const std::int64_t kv_heads = model.kv_heads == 0 ? model.heads : model.kv_heads;
  const bool has_list = !model.stage_layers.empty();
  const Division divisions[] = {
      {"layers", model.layers, "pipeline", has_list ? 1 : model.pipeline},
      {"layers", model.layers, "pipeline x virtual_stages", has_list ? 1 : model.stages()},
      {"hidden", model.hidden, "heads", model.heads},
      {"heads", model.heads, "kv_heads", kv_heads},
      {"heads", model.heads, "tensor", model.tensor},
      {"hidden", model.hidden, "tensor", model.tensor},
      {"feed_forward", model.feed_forward == 0 ? 4 * model.hidden : model.feed_forward, "tensor", model.tensor},
      {"sequence", model.sequence, "tensor", model.sequence_parallel ? model.tensor : 1},
      {"vocabulary", model.vocabulary, "tensor", model.tensor},
      {"batch", model.batch, "data x micro_batch", model.data * model.micro_batch},
      {"data", model.data, "expert", model.expert},
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
  if (model.experts == 0 && model.expert > 1)
    return bad_model("expert is given, but the model has no experts", "give experts");
  if (model.experts > 0 && model.experts_per_token > model.experts) {
    return bad_model(fmt::format("a token goes to {} of {} experts", model.experts_per_token, model.experts),
                     "experts_per_token is at most experts");
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
  if (model.experts > 0) {
    return bad_model("gossip and compression are for dense models, and this one has experts",
                     "leave 'experts' out, or gossip and compression");
  }
  return {};
}

/// About how many tasks the steps have, and whether their buffers can be named.
Result<void> check_size(const TrainingModel& model, std::size_t task_limit) {
  const __int128 micro_batches = model.batch / (model.data * model.micro_batch);
  const __int128 per_layer = 2 * (4 + (model.sequence_parallel ? 4 : 2) + (model.experts > 0 ? 2 : 0) +
                                  (model.recomputes ? 2 : 0) + (model.sharding == Sharding::full ? 2 : 0));
  const __int128 tasks = (per_layer * (model.layers / model.pipeline + 1) + 8 * model.virtual_stages) * micro_batches *
                         model.tensor * model.pipeline * model.data * model.steps;
  if (tasks > static_cast<__int128>(task_limit)) {
    return fail(ErrorCode::too_large,
                fmt::format("the training steps have about {} million tasks, and the most are {:.1f} million",
                            static_cast<std::int64_t>(tasks / 1'000'000), static_cast<double>(task_limit) / 1e6),
                "use fewer micro-batches (a smaller batch) or steps");
  }
  const LayerCost cost = cost_of_layer(model);
  const __int128 parameters =
      static_cast<__int128>(cost.attention_parameters) +
      static_cast<__int128>(cost.feed_forward_parameters) * std::max<std::int64_t>(model.experts, 1) +
      static_cast<__int128>(model.vocabulary) * model.hidden;
  const __int128 activations = static_cast<__int128>(model.micro_batch) * model.sequence * model.hidden *
                               std::max<std::int64_t>(model.experts_per_token, 1);
  const __int128 most = max_message_size.count / 8;
  if (parameters * model.layers > most || activations > most) {
    return fail(ErrorCode::too_large, "the model's buffers are past 1 PiB",
                "check hidden, sequence, micro_batch and layers");
  }
  const __int128 flops = (cost.attention_flops + cost.feed_forward_flops) * 4 + output_flops(model);
  if (flops / model.rate.per_second > 3600) {
    return fail(ErrorCode::too_large, "one layer of one micro-batch computes for more than an hour",
                "check flops, hidden, sequence and micro_batch");
  }
  return {};
}

}  // namespace

LayerCost cost_of_layer(const TrainingModel& model) {
  const std::int64_t h = model.hidden;
  const std::int64_t kv_width = h / model.heads * (model.kv_heads == 0 ? model.heads : model.kv_heads);
  const std::int64_t inner = model.feed_forward == 0 ? 4 * h : model.feed_forward;
  const auto tokens = static_cast<__int128>(model.micro_batch) * model.sequence;
  LayerCost cost;
  cost.attention_parameters = 2 * h * h + 2 * h * kv_width;
  cost.feed_forward_parameters = (model.gated ? 3 : 2) * h * inner;
  cost.attention_flops =
      tokens * (2 * static_cast<__int128>(cost.attention_parameters) + 4 * static_cast<__int128>(model.sequence) * h);
  cost.feed_forward_flops =
      tokens * 2 * cost.feed_forward_parameters * (model.experts > 0 ? model.experts_per_token : 1);
  return cost;
}

MatrixSizes matrices_of_layer(const TrainingModel& model) {
  const std::int64_t h = model.hidden, t = model.tensor;
  const std::int64_t kv_width = h / model.heads * (model.kv_heads == 0 ? model.heads : model.kv_heads);
  const std::int64_t inner = model.feed_forward == 0 ? 4 * h : model.feed_forward;
  const std::int64_t into = model.gated ? 2 : 1;  // matrices h x inner; one more goes back
  // Queries, keys and values and the matrices into the feed-forward part are cut by columns, the other two by rows.
  return {.rows = 3 * h + h / t + into * h + inner / t, .columns = (h + 2 * kv_width) / t + h + into * inner / t + h};
}

__int128 output_flops(const TrainingModel& model) {
  return static_cast<__int128>(2) * model.micro_batch * model.sequence * model.hidden * model.vocabulary;
}

Picoseconds compute_time(const TrainingModel& model, __int128 flops) {
  // flops / (T x rate x utilisation); the limits of `check_size` keep the product below 2^126.
  const __int128 numerator = flops * picoseconds_per_second;
  const __int128 rate = static_cast<__int128>(model.rate.per_second) * model.utilisation_ppm / 1'000'000 * model.tensor;
  return {static_cast<std::int64_t>((numerator + rate - 1) / rate)};
}

std::string_view use_of_call(std::string_view label) {
  constexpr std::pair<std::string_view, std::string_view> uses[] = {
      {"tensor", "tensor"},  {"activations", "pipeline"}, {"activation gradients", "pipeline"},
      {"gradients", "data"}, {"parameters", "data"},      {"expert gradients", "data"},
      {"experts", "expert"}};
  const auto* const found = std::ranges::find(uses, label, &std::pair<std::string_view, std::string_view>::first);
  return found == std::end(uses) ? std::string_view() : found->second;
}

std::vector<Parallelism> list_parallelisms(const TrainingModel& model, std::int64_t ranks) {
  std::vector<Parallelism> all;
  const std::int64_t max_expert = std::max<std::int64_t>(model.experts, 1);
  for (std::int64_t tensor = 1; tensor <= ranks; ++tensor) {
    if (ranks % tensor != 0) continue;
    for (std::int64_t pipeline = 1; pipeline <= ranks / tensor; ++pipeline) {
      if (ranks / tensor % pipeline != 0) continue;
      const std::int64_t data = ranks / tensor / pipeline;
      for (std::int64_t expert = 1; expert <= std::min(data, max_expert); ++expert) {
        if (data % expert == 0 && max_expert % expert == 0) all.push_back({tensor, pipeline, data, expert});
      }
    }
  }
  return all;
}

TrainingModel spread(TrainingModel model, const Parallelism& parallelism) {
  model.tensor = parallelism.tensor;
  model.pipeline = parallelism.pipeline;
  model.data = parallelism.data;
  model.expert = parallelism.expert;
  return model;
}

Result<TrainingModel> check_training(const TrainingModel& given, std::int64_t count, std::size_t task_limit) {
  TrainingModel model = given;
  const __int128 share = static_cast<__int128>(model.tensor) * model.pipeline;
  if (model.data == 0 && share <= count && count % static_cast<std::int64_t>(share) == 0) {
    model.data = count / static_cast<std::int64_t>(share);
  }
  if (share * model.data != count) {
    return bad_model(fmt::format("tensor {} x pipeline {} x data {} are not the {} ranks", model.tensor, model.pipeline,
                                 model.data == 0 ? std::string("?") : std::to_string(model.data), count),
                     "their product is the number of ranks; data may be left out");
  }
  if (auto checked = check_divisions(model); !checked) return tl::unexpected(checked.error());
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
