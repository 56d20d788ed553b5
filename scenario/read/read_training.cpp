#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <utility>

#include "base/suggest.h"
#include "compute/constants.h"
#include "compute/zoo.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "scenario/workload/training.h"
#include "scenario/workload/training_figures.h"
#include "scenario/workload/training_step.h"
#include "topology/yaml/read_codes.h"

namespace espalier::scenario {
namespace {

constexpr std::int64_t max_width = 1 << 24;
constexpr std::int64_t max_layers = 100'000;
constexpr std::int64_t max_ranks = 1 << 20;

/// Whole numbers of the model: key, place, least, most, and whether it must be given.
struct Whole {
  std::string_view key;
  std::int64_t TrainingModel::*place;
  std::int64_t low;
  std::int64_t high;
  bool is_needed = false;
};
constexpr Whole wholes[] = {
    {"layers", &TrainingModel::layers, 1, max_layers, true},
    {"hidden", &TrainingModel::hidden, 1, max_width, true},
    {"heads", &TrainingModel::heads, 1, max_width, true},
    {"kv_heads", &TrainingModel::kv_heads, 1, max_width},
    {"head_size", &TrainingModel::head_size, 1, max_width},
    {"query_rank", &TrainingModel::query_rank, 1, max_width},
    {"kv_rank", &TrainingModel::kv_rank, 1, max_width},
    {"rotary_size", &TrainingModel::rotary_size, 1, max_width},
    {"feed_forward", &TrainingModel::feed_forward, 1, max_width},
    {"sequence", &TrainingModel::sequence, 1, max_width, true},
    {"vocabulary", &TrainingModel::vocabulary, 0, max_width},
    {"batch", &TrainingModel::batch, 1, max_width, true},
    {"micro_batch", &TrainingModel::micro_batch, 1, max_width},
    {"experts_per_token", &TrainingModel::experts_per_token, 1, 65'536},
    {"expert_feed_forward", &TrainingModel::expert_width, 1, max_width},
    {"shared_experts", &TrainingModel::shared_experts, 0, 65'536},
    {"dense_layers", &TrainingModel::dense_layers, 0, max_layers},
    {"tensor", &TrainingModel::tensor, 1, max_ranks},
    {"context", &TrainingModel::context, 1, max_ranks},
    {"pipeline", &TrainingModel::pipeline, 1, max_ranks},
    {"virtual_stages", &TrainingModel::virtual_stages, 1, max_layers},
    {"data", &TrainingModel::data, 1, max_ranks},
    {"expert", &TrainingModel::expert, 1, max_ranks},
    {"expert_tensor", &TrainingModel::expert_tensor, 1, max_ranks},
    {"shard_group", &TrainingModel::shard_group, 1, max_ranks},
    {"steps", &TrainingModel::steps, 1, 1'000},
};

bool read_wholes(TrainingModel& model, const Fields& fields) {
  bool is_fine = true;
  for (const Whole& whole : wholes) {
    if (!fields.has(whole.key)) {
      const bool is_known = !whole.is_needed || (fields.has("model") && whole.key != "batch");
      if (!is_known) fields.missing(whole.key, fmt::format("such as '{}: 8'", whole.key));
      is_fine = is_fine && is_known;
      continue;
    }
    const auto value = fields.integer(whole.key, whole.low, whole.high);
    is_fine = is_fine && value.has_value();
    if (value) model.*whole.place = *value;
  }
  return is_fine;
}

bool read_algorithms(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  if (!fields.has("algorithms")) return true;
  const Fields algorithms = context.fields(fields.find("algorithms"), "'algorithms'", scenario_keys::algorithms);
  if (!algorithms.is_map()) return false;
  const auto tensor = read_algorithm(context, algorithms, "tensor");
  const auto data = read_algorithm(context, algorithms, "data");
  const auto expert = read_algorithm(context, algorithms, "expert");
  const auto of_context = read_algorithm(context, algorithms, "context");
  if (!tensor || !data || !expert || !of_context) return false;
  model.context_planner = *of_context;
  model.tensor_planner = *tensor;
  model.data_planner = *data;
  model.expert_planner = *expert;
  return true;
}

/// `chunk`, which counts for all uses, and `chunks` by use, which go before it.
bool read_chunks(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  const auto all = read_chunk(context, fields);
  if (!all) return false;
  model.tensor_chunk = model.data_chunk = model.expert_chunk = model.pipeline_chunk = model.context_chunk = *all;
  if (!fields.has("chunks")) return true;
  const Fields chunks = context.fields(fields.find("chunks"), "'chunks'", scenario_keys::chunks);
  if (!chunks.is_map()) return false;
  constexpr std::pair<std::string_view, Bytes TrainingModel::*> uses[] = {{"tensor", &TrainingModel::tensor_chunk},
                                                                          {"data", &TrainingModel::data_chunk},
                                                                          {"expert", &TrainingModel::expert_chunk},
                                                                          {"context", &TrainingModel::context_chunk},
                                                                          {"pipeline", &TrainingModel::pipeline_chunk}};
  for (const auto& [key, place] : uses) {
    const auto chunk = read_chunk(context, chunks, key);
    if (!chunk) return false;
    if (chunk->count > 0) model.*place = *chunk;
  }
  return true;
}

/// `model`: a published one, whose sizes count where the scenario says none itself.
bool read_named_model(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  const auto name = fields.text("model");
  if (!name) return !fields.has("model");
  const auto found = compute::find_model(*name);
  if (!found) {
    context.error(fields.mark_of("model"), scenario_codes::unknown_name, found.error());
    return false;
  }
  const compute::ModelShape& shape = (*found)->shape;
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.heads = shape.heads;
  model.kv_heads = shape.kv_heads;
  model.head_size = shape.head_size;
  model.query_rank = shape.query_rank;
  model.kv_rank = shape.kv_rank;
  model.rotary_size = shape.rotary_size;
  model.feed_forward = shape.feed_forward;
  model.expert_width = shape.expert_width;
  model.shared_experts = shape.shared_experts;
  model.dense_layers = shape.dense_layers;
  model.tied = shape.is_tied;
  model.causal = shape.is_causal;
  model.gated = shape.is_gated;
  model.sequence = (*found)->sequence;
  model.vocabulary = shape.vocabulary;
  model.experts = shape.experts;
  model.experts_per_token = shape.experts_per_token;
  return true;
}

/// The GPU that `gpu` names, or else the machine's, where the file does not say what ranks compute at their peak.
std::optional<std::string> find_gpu_name(ScenarioContext& context, const Fields& fields) {
  const std::string& of_machine = context.scenario.machine_gpu;
  auto name = fields.text("gpu");
  if (name && !of_machine.empty() && *name != of_machine) {
    context.findings.warning(fields.mark_of("gpu"),
                             {scenario_codes::another_gpu,
                              fmt::format("the machine's gpu is {}; {} counts", of_machine, name->substr(0, 60)),
                              "leave it out where the machine's is meant"});
  }
  if (!name && !fields.has("gpu") && !fields.has("flops") && !of_machine.empty()) return of_machine;
  return name;
}

/// `gpu`, or `flops` and `utilisation`; a utilisation counts, whatever the GPU.
bool read_computing(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  const auto name = find_gpu_name(context, fields);
  bool is_fine = name.has_value() || !fields.has("gpu");
  if (name) {
    const auto gpu = compute::find_gpu(*name);
    if (gpu) {
      model.gpu = *gpu;
      model.rate.per_second = static_cast<std::int64_t>((*gpu)->bf16);
      model.memory.count = static_cast<std::int64_t>((*gpu)->memory);
    } else {
      context.error(fields.mark_of("gpu"), scenario_codes::unknown_name, gpu.error().message, gpu.error().help);
      is_fine = false;
    }
  }
  if (!fields.has("flops") && !fields.has("gpu") && !name) {
    fields.missing("gpu",
                   "what a rank computes on, such as 'gpu: h100-sxm'; or 'flops: 989 TFLOP/s' and 'utilisation: 0.5'");
    is_fine = false;
  } else if (!fields.has("gpu") && !name && !fields.has("utilisation")) {
    fields.missing("utilisation",
                   "the part of its flops that a rank reaches, such as 'utilisation: 0.5'; or 'gpu: h100-sxm'");
    is_fine = false;
  }
  if (fields.has("flops")) {
    const auto rate = read_flop_rate(context, fields, "flops");
    is_fine = is_fine && rate;
    if (rate) model.rate = *rate;
  }
  const auto utilisation = fields.millionths("utilisation");
  model.has_utilisation = utilisation.has_value();
  if (utilisation) model.utilisation_ppm = *utilisation;
  return is_fine && (utilisation || !fields.has("utilisation"));
}

/// `slowed`: computing, by calls of replicas beside it; on a GPU as measured where nothing is said.
bool read_slowed(ScenarioContext& context, const Fields& fields, const TrainingModel& model) {
  const auto slowed = fields.millionths("slowed");
  const bool is_predicted = model.gpu != nullptr && !model.has_utilisation;
  RunSettings& settings = context.scenario.settings;
  settings.slowed_ppm = slowed.value_or(is_predicted ? std::lround(compute::constants::slowed * 1e6) : 0);
  settings.slowing_stream = training_streams::data;
  return slowed || !fields.has("slowed");
}

/// One of some names. False where another is written.
template <class T, std::size_t N>
bool read_named(ScenarioContext& context, const Fields& fields, std::string_view key,
                const std::array<std::pair<std::string_view, T>, N>& names, T& place) {
  const auto written = fields.text(key);
  if (!written) return !fields.has(key);
  std::vector<std::string_view> known;
  for (const auto& [name, value] : names) {
    known.push_back(name);
    if (name != *written) continue;
    place = value;
    return true;
  }
  context.error(fields.mark_of(key), scenario_codes::unknown_name,
                fmt::format("there is no {} '{}'", key, written->substr(0, 60)), suggest(*written, known));
  return false;
}

/// `sharding`, `slowed` and what overlaps.
bool read_sharing(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  constexpr std::array<std::pair<std::string_view, Sharding>, 4> names = {{{"none", Sharding::none},
                                                                           {"optimizer", Sharding::optimizer},
                                                                           {"gradients", Sharding::optimizer},
                                                                           {"full", Sharding::full}}};
  model.shards_gradients = fields.text("sharding") == "gradients";
  model.overlaps_parameters = fields.boolean("overlap_param_gather").value_or(false);
  model.overlaps_tensor = fields.boolean("tp_comm_overlap").value_or(false);
  const bool is_fine = read_named(context, fields, "sharding", names, model.sharding);
  return read_slowed(context, fields, model) && is_fine;
}

/// `recompute`: false, true or full, or selective.
bool read_recompute(const Fields& fields, TrainingModel& model) {
  if (const auto all = fields.text("recompute"); all && (*all == "selective" || *all == "full" || *all == "none")) {
    model.recomputes = *all == "full";
    model.recomputes_attention = *all == "selective";
    return true;
  }
  const auto all = fields.boolean("recompute");
  model.recomputes = all.value_or(false);
  return all || !fields.has("recompute");
}

bool read_stage_layers(ScenarioContext& context, Value list, TrainingModel& model) {
  bool are_whole = list.is_list() && list.size() > 0;
  for (std::size_t i = 0; are_whole && i < list.size(); ++i) {
    const std::string_view text = list.item(i).text();
    std::int64_t layers = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), layers);
    are_whole = error == std::errc() && end == text.data() + text.size() && layers >= 1 && layers <= max_layers;
    model.stage_layers.push_back(layers);
  }
  if (are_whole) return true;
  context.error(list.mark(), scenario_codes::training_refused, "'stage_layers' is no list of whole numbers above zero",
                "give a number for each stage, along the model: 'stage_layers: [9, 8, 8, 7]'");
  return false;
}

/// `attention`, `kernels` and `dropout`, which are of a GPU.
bool read_kernels(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  constexpr std::array<std::pair<std::string_view, compute::Kernels>, 3> kinds = {
      {{"eager", compute::Kernels::eager},
       {"compiled", compute::Kernels::compiled},
       {"fused", compute::Kernels::fused}}};
  bool is_fine = read_named(context, fields, "kernels", kinds, model.kernels);
  model.dropout = fields.boolean("dropout").value_or(model.dropout);
  if (const auto name = fields.text("attention")) {
    const auto attention = compute::parse_attention(*name);
    if (attention) {
      model.attention = *attention;
    } else {
      context.error(fields.mark_of("attention"), scenario_codes::unknown_name, attention.error().message,
                    attention.error().help);
      is_fine = false;
    }
  }
  for (const std::string_view key : {"attention", "kernels", "dropout"}) {
    if (!fields.has(key) || (model.gpu != nullptr && !model.has_utilisation)) continue;
    context.error(fields.mark_of(key), read_codes::keys_conflict, fmt::format("'{}' is of a gpu", key),
                  "write 'gpu: h100-sxm' and the like beside it and no utilisation, or leave it out");
    is_fine = false;
  }
  return is_fine;
}

/// `precision`, `schedule`, `context_exchange` and `stage_layers`.
bool read_order(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  constexpr std::array<std::pair<std::string_view, compute::Order>, 3> orders = {
      {{"1f1b", compute::Order::alternating},
       {"gpipe", compute::Order::forwards_first},
       {"zero-bubble", compute::Order::deferred_weights}}};
  constexpr std::array<std::pair<std::string_view, compute::ContextExchange>, 3> exchanges = {
      {{"ring", compute::ContextExchange::ring},
       {"all_gather", compute::ContextExchange::all_gather},
       {"all_to_all", compute::ContextExchange::all_to_all}}};
  bool is_fine = read_named(context, fields, "schedule", orders, model.order);
  is_fine = read_named(context, fields, "context_exchange", exchanges, model.context_exchange) && is_fine;
  if (const auto name = fields.text("precision")) {
    const auto precision = compute::parse_precision(*name);
    if (precision) {
      model.precision = *precision;
    } else {
      context.error(fields.mark_of("precision"), scenario_codes::unknown_name, precision.error().message,
                    precision.error().help);
      is_fine = false;
    }
    if (model.gpu == nullptr) {
      context.error(fields.mark_of("precision"), read_codes::keys_conflict, "'precision' is of a gpu",
                    "write 'gpu: h100-sxm' and the like beside it, or leave it out");
      is_fine = false;
    } else if (precision && !model.gpu->has(*precision)) {
      context.error(fields.mark_of("precision"), scenario_codes::unknown_name,
                    fmt::format("{} has no products of {}", model.gpu->name, *name),
                    model.gpu->has_bf16 ? "take bf16, or leave it out" : "take fp16, or leave it out");
      is_fine = false;
    }
  }
  if (!fields.has("stage_layers")) return is_fine && (model.precision || !fields.has("precision"));
  return read_stage_layers(context, fields.find("stage_layers"), model) && is_fine;
}

/// A step on a known GPU fits into its memory. With --split each row says it instead.
bool fits_memory(ScenarioContext& context, const Fields& fields, const TrainingModel& model) {
  if (model.gpu == nullptr || context.options.parallelism) return true;
  const TrainingFigures figures = figures_of(model);
  const Bytes need = figures.memory.total();
  if (need <= figures.capacity) return true;
  const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.count) / 1e9; };
  context.error(
      fields.mark(), scenario_codes::training_refused,
      fmt::format("a rank at place {} of the pipeline needs {:.1f} GB and has {:.1f}: {:.1f} GB too much (parameters "
                  "{:.1f}, gradients {:.1f}, optimizer {:.1f}, activations {:.1f})",
                  figures.place, gigabytes(need), gigabytes(figures.capacity), gigabytes(need - figures.capacity),
                  gigabytes(figures.memory.parameters), gigabytes(figures.memory.gradients),
                  gigabytes(figures.memory.optimizer), gigabytes(figures.memory.activations)),
      model.recomputes
          ? "use more tensor or pipeline ranks, shard more, or a smaller micro_batch"
          : "write 'recompute: true', use more tensor or pipeline ranks, shard more, or a smaller micro_batch");
  return false;
}

void read_model(ScenarioContext& context, const Fields& fields, const std::vector<Rank>& ranks) {
  TrainingModel model;
  bool is_fine = read_named_model(context, fields, model);
  is_fine = read_wholes(model, fields) && is_fine;
  is_fine = read_experts(context, fields, model) && is_fine;
  is_fine = read_computing(context, fields, model) && is_fine;
  is_fine = read_kernels(context, fields, model) && is_fine;
  model.gated = fields.boolean("gated").value_or(model.gated);
  model.tied = fields.boolean("tied").value_or(model.tied);
  model.causal = fields.boolean("causal").value_or(model.causal);
  is_fine = read_recompute(fields, model) && is_fine;
  is_fine = read_order(context, fields, model) && is_fine;
  model.sequence_parallel = fields.boolean("sequence_parallel").value_or(false);
  const auto type = read_type(context, fields, "type");
  const auto gradients = read_type(context, fields, "gradients");
  is_fine = is_fine && (type || !fields.has("type")) && (gradients || !fields.has("gradients"));
  const auto optimizer = fields.duration("optimizer");
  const auto bucket = read_size(context, fields, "bucket");
  const auto memory = read_size(context, fields, "memory");
  is_fine = is_fine && (memory || !fields.has("memory")) && (bucket || !fields.has("bucket"));
  is_fine = read_sharing(context, fields, model) && is_fine;
  is_fine = read_algorithms(context, fields, model) && is_fine;
  is_fine = read_chunks(context, fields, model) && is_fine;
  if (model.expert_planner.empty()) model.expert_planner = model.dispatch_planner;
  const auto averaging = read_averaging(context, fields);
  is_fine = is_fine && averaging;
  if (!is_fine) return;
  model.type = type.value_or(model.type);
  model.gradients = gradients.value_or(model.type);
  model.optimizer = optimizer.value_or(model.optimizer);
  model.memory = memory.value_or(model.memory);
  model.bucket = bucket.value_or(model.bucket);
  model.averaging = *averaging;
  const std::size_t room =
      context.options.task_limit - std::min(context.options.task_limit, context.scenario.job.tasks().size());
  if (context.options.parallelism) model = spread(std::move(model), *context.options.parallelism);
  const std::optional<std::int64_t> micro_batches = context.options.micro_batches;
  constexpr std::size_t any_room = std::numeric_limits<std::int32_t>::max();
  const auto whole = check_training(model, static_cast<std::int64_t>(ranks.size()), micro_batches ? any_room : room);
  if (!whole) return context.error(fields.mark(), scenario_codes::training_refused, whole.error());
  TrainingModel begun = *whole;
  if (micro_batches) begun.batch = std::min(begun.batch, *micro_batches * begun.data * begun.micro_batch);
  if (!fits_memory(context, fields, *whole)) return;
  Averager averager(context.scenario.job, context.scenario.topology, whole->averaging, context.options.task_limit);
  const bool is_plain = averager.is_all_reduce();
  const auto added =
      add_training(context.scenario.job, begun, ranks, room, is_plain ? nullptr : &averager, &context.scenario.routing);
  if (!added) return context.error(fields.mark(), scenario_codes::training_refused, added.error());
  if (!is_plain) context.scenario.averaged.push_back({whole->averaging, averager.added()});
  context.scenario.training = figures_of(*whole);
  context.scenario.model = *whole;
}

}  // namespace

void read_training(ScenarioContext& context, Value training) {
  if (!training) return;
  const Fields fields = context.fields(training, "'training'", scenario_keys::training);
  if (!fields.is_map()) return;
  const auto ranks = read_ranks(context, fields, "ranks");
  if (!ranks) return;
  fields.has("trace") ? read_trace(context, fields, *ranks) : read_model(context, fields, *ranks);
}

}  // namespace espalier::scenario
