#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <utility>

#include "base/suggest.h"
#include "compute/zoo.h"
#include "scenario/read/scenario_codes.h"
#include "scenario/read/scenario_keys.h"
#include "scenario/read/scenario_reading.h"
#include "scenario/workload/trace_forms.h"
#include "scenario/workload/training.h"
#include "scenario/workload/training_figures.h"
#include "scenario/workload/unpack_gzip.h"
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
    {"feed_forward", &TrainingModel::feed_forward, 1, max_width},
    {"sequence", &TrainingModel::sequence, 1, max_width, true},
    {"vocabulary", &TrainingModel::vocabulary, 0, max_width},
    {"batch", &TrainingModel::batch, 1, max_width, true},
    {"micro_batch", &TrainingModel::micro_batch, 1, max_width},
    {"experts_per_token", &TrainingModel::experts_per_token, 1, 65'536},
    {"tensor", &TrainingModel::tensor, 1, max_ranks},
    {"pipeline", &TrainingModel::pipeline, 1, max_ranks},
    {"virtual_stages", &TrainingModel::virtual_stages, 1, max_layers},
    {"data", &TrainingModel::data, 1, max_ranks},
    {"expert", &TrainingModel::expert, 1, max_ranks},
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

bool read_sharding(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  constexpr std::array<std::string_view, 3> names = {"none", "optimizer", "full"};
  const auto written = fields.text("sharding");
  if (!written) return !fields.has("sharding");
  const auto at = std::ranges::find(names, *written);
  if (at != names.end()) {
    model.sharding = static_cast<Sharding>(at - names.begin());
    return true;
  }
  context.error(fields.mark_of("sharding"), scenario_codes::unknown_name,
                fmt::format("there is no way of sharding '{}'", written->substr(0, 60)), suggest(*written, names));
  return false;
}

bool read_algorithms(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  if (!fields.has("algorithms")) return true;
  const Fields algorithms = context.fields(fields.find("algorithms"), "'algorithms'", scenario_keys::algorithms);
  if (!algorithms.is_map()) return false;
  const auto tensor = read_algorithm(context, algorithms, "tensor");
  const auto data = read_algorithm(context, algorithms, "data");
  const auto expert = read_algorithm(context, algorithms, "expert");
  if (!tensor || !data || !expert) return false;
  model.tensor_planner = *tensor;
  model.data_planner = *data;
  model.expert_planner = *expert;
  return true;
}

/// `chunk`, which counts for all uses, and `chunks` by use, which go before it.
bool read_chunks(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  const auto all = read_chunk(context, fields);
  if (!all) return false;
  model.tensor_chunk = model.data_chunk = model.expert_chunk = model.pipeline_chunk = *all;
  if (!fields.has("chunks")) return true;
  const Fields chunks = context.fields(fields.find("chunks"), "'chunks'", scenario_keys::chunks);
  if (!chunks.is_map()) return false;
  constexpr std::pair<std::string_view, Bytes TrainingModel::*> uses[] = {{"tensor", &TrainingModel::tensor_chunk},
                                                                          {"data", &TrainingModel::data_chunk},
                                                                          {"expert", &TrainingModel::expert_chunk},
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
  const auto refuse = [&](const Error& error) {
    context.error(fields.mark_of("model"), scenario_codes::unknown_name, error.message, error.help);
    return false;
  };
  const auto found = compute::find_model(*name);
  if (!found) return refuse(found.error());
  const compute::ModelShape& shape = (*found)->shape;
  const bool is_plain = shape.kv_rank == 0 && shape.shared_experts == 0 && shape.dense_layers == 0 &&
                        (shape.head_size == 0 || shape.head_size * shape.heads == shape.hidden);
  if (!is_plain) {
    return refuse({ErrorCode::unsupported,
                   fmt::format("{} has heads, attention or experts that a scenario cannot say", *name),
                   "'espalier compute' answers for it (docs/compute.md)"});
  }
  model.layers = shape.layers;
  model.hidden = shape.hidden;
  model.heads = shape.heads;
  model.kv_heads = shape.kv_heads;
  model.feed_forward = shape.experts > 0 ? shape.inner_of_expert() : shape.feed_forward;
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

/// `precision`, `schedule` and `stage_layers`.
bool read_order(ScenarioContext& context, const Fields& fields, TrainingModel& model) {
  constexpr std::array<std::pair<std::string_view, compute::Order>, 3> orders = {
      {{"1f1b", compute::Order::alternating},
       {"gpipe", compute::Order::forwards_first},
       {"zero-bubble", compute::Order::deferred_weights}}};
  bool is_fine = read_named(context, fields, "schedule", orders, model.order);
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
  model.gated = fields.boolean("gated").value_or(model.gated);
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
  is_fine = read_sharding(context, fields, model) && is_fine;
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
  const auto whole = check_training(model, static_cast<std::int64_t>(ranks.size()), room);
  if (!whole) return context.error(fields.mark(), scenario_codes::training_refused, whole.error());
  if (!fits_memory(context, fields, *whole)) return;
  Averager averager(context.scenario.job, context.scenario.topology, whole->averaging, context.options.task_limit);
  const bool is_plain = averager.is_all_reduce();
  const auto added = add_training(context.scenario.job, *whole, ranks, room, is_plain ? nullptr : &averager,
                                  &context.scenario.routing);
  if (!added) return context.error(fields.mark(), scenario_codes::training_refused, added.error());
  if (!is_plain) context.scenario.averaged.push_back({whole->averaging, averager.added()});
  context.scenario.training = figures_of(*whole);
  context.scenario.model = *whole;
}

tl::unexpected<Error> too_large(const std::string& name, std::size_t most) {
  return fail(ErrorCode::too_large,
              fmt::format("{} and the traces before it have more than {} bytes, unpacked", name, most),
              "raise the limit with --max-input if they are meant to be as large");
}

Result<std::string> read_bytes(const std::filesystem::path& path, std::size_t most) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream) return fail(ErrorCode::unavailable, "cannot read " + path.string());
  std::string bytes;
  std::string block(std::size_t{1} << 16U, '\0');
  while (stream.read(block.data(), static_cast<std::streamsize>(block.size())) || stream.gcount() > 0) {
    bytes.append(block, 0, static_cast<std::size_t>(stream.gcount()));
    if (bytes.size() > most) return too_large(path.filename().string(), most);
  }
  return bytes;
}

/// What the traces of all ranks say, in whichever form they are.
struct Traces {
  std::vector<std::vector<ChakraNode>> nodes;              ///< By rank.
  std::map<std::string, std::vector<std::size_t>> groups;  ///< That the traces define themselves.
  std::uint64_t guessed = 0;                               ///< KinetoTrace::guessed of all.
  std::vector<RecordedTime> recorded;                      ///< Of a profiler's traces.
};

/// A file of the folder as far as there is room, unpacked; takes its size off the room.
Result<std::string> read_unpacked(const std::filesystem::path& folder, const std::string& name, std::size_t& room,
                                  std::size_t max_bytes) {
  auto bytes = read_bytes(folder / name, room);
  if (!bytes) return bytes;
  if (is_gzip(*bytes)) {
    bytes = unpack_gzip(*bytes, room);
    if (!bytes && bytes.error().code == ErrorCode::too_large) return too_large(name, max_bytes);
    if (!bytes) return fail(bytes.error().code, name + ": " + bytes.error().message, bytes.error().help);
  }
  room -= bytes->size();
  return bytes;
}

/// PREFIX.RANK.SUFFIX or the same with .gz, whichever is there; nothing when neither is.
std::optional<std::string> find_trace(const std::filesystem::path& folder, const std::string& prefix, std::size_t rank,
                                      std::string_view suffix) {
  std::error_code status;
  const std::string name = fmt::format("{}.{}.{}", prefix, rank, suffix);
  for (const std::string& written : {name, name + ".gz"}) {
    if (std::filesystem::exists(folder / written, status)) return written;
  }
  return std::nullopt;
}

/// The traces PREFIX.0.et, PREFIX.1.et, ... or .json as far as they are there; or one file of all ranks, PREFIX itself,
/// when it ends in .goal or, compiled, in .bin.
Result<Traces> read_traces(const std::filesystem::path& folder, const std::string& prefix, std::size_t most,
                           std::size_t max_bytes, WaitReading reading, bool is_spmd) {
  std::size_t room = max_bytes;
  Traces traces;
  const bool is_compiled = prefix.ends_with(".bin") || prefix.ends_with(".bin.gz");
  if (is_compiled || prefix.ends_with(".goal") || prefix.ends_with(".goal.gz")) {
    const auto text = read_unpacked(folder, prefix, room, max_bytes);
    if (!text) return tl::unexpected(text.error());
    auto nodes =
        is_compiled || is_goal_binary(*text) ? read_goal_binary(*text, prefix, most) : read_goal(*text, prefix, most);
    if (!nodes) return tl::unexpected(nodes.error());
    traces.nodes = *std::move(nodes);
    return traces;
  }
  const bool is_kineto = !find_trace(folder, prefix, 0, "et") && find_trace(folder, prefix, 0, "json");
  const std::string_view suffix = is_kineto ? "json" : "et";
  std::vector<std::string> names;
  while (auto name = find_trace(folder, prefix, names.size(), suffix)) {
    names.push_back(*std::move(name));
    if (names.size() > most) {
      return fail(ErrorCode::invalid_input, fmt::format("there are traces of more than {} ranks", most));
    }
  }
  if (names.empty()) names.push_back(fmt::format("{}.0.et", prefix));  // To say that it cannot be read.
  for (const std::string& name : names) {
    const auto bytes = read_unpacked(folder, name, room, max_bytes);
    if (!bytes) return tl::unexpected(bytes.error());
    if (is_kineto) {
      auto read = read_kineto(*bytes, name, names.size(), reading, is_spmd);
      if (!read) return tl::unexpected(read.error());
      traces.nodes.push_back(std::move(read->nodes));
      traces.groups.merge(read->groups);
      traces.guessed += read->guessed;
      traces.recorded.push_back(read->recorded);
      continue;
    }
    auto nodes = read_chakra(*bytes, name);
    if (!nodes) return tl::unexpected(nodes.error());
    traces.nodes.push_back(*std::move(nodes));
  }
  return traces;
}

void read_trace(ScenarioContext& context, const Fields& fields, const std::vector<Rank>& ranks) {
  for (const std::string_view key : scenario_keys::training) {
    if (!fields.has(key) || std::ranges::find(scenario_keys::trace, key) != scenario_keys::trace.end()) continue;
    context.error(fields.mark_of(key), read_codes::keys_conflict, fmt::format("'{}' does not go with 'trace'", key),
                  "a trace says itself what is computed; beside it stand ranks, type, flops and chunk");
    return;
  }
  const auto prefix = fields.text("trace");
  const auto type = read_type(context, fields, "type");
  const auto rate = read_flop_rate(context, fields, "flops");
  const auto chunk = read_chunk(context, fields);
  const auto spmd = fields.boolean("spmd");
  if (!prefix || !chunk || (fields.has("type") && !type) || (fields.has("flops") && !rate) ||
      (fields.has("spmd") && !spmd)) {
    return;
  }
  const bool is_spmd = spmd.value_or(false);
  const Mark mark = fields.mark_of("trace");
  if (!context.folder || prefix->empty() || leaves_folder(*prefix)) {
    context.error(mark, scenario_codes::bad_trace, "traces lie in the scenario's folder or below it",
                  "write 'trace: step' for the files step.0.et, step.1.et, ...");
    return;
  }
  auto traces = read_traces(*context.folder, *prefix, ranks.size(), context.options.max_trace_bytes,
                            context.options.kernel_waits, is_spmd);
  if (!traces) return context.error(mark, scenario_codes::bad_trace, traces.error());
  if (is_spmd && traces->recorded.empty()) {
    return context.error(fields.mark_of("spmd"), scenario_codes::bad_trace,
                         "'spmd' is for traces of the PyTorch profiler",
                         "leave it out, and give the trace of every rank");
  }
  if (is_spmd) {
    const std::size_t recorded = traces->nodes.size();
    for (std::size_t rank = recorded; rank < ranks.size(); ++rank) {
      traces->nodes.push_back(traces->nodes[rank % recorded]);
    }
  }
  ChakraOptions options{ranks, {}, type.value_or(ElementType::float32), rate, *chunk};
  for (const auto& [name, of_traces] : traces->groups) {
    for (const std::size_t rank : of_traces) options.groups[name].push_back(ranks[rank]);
  }
  const Job& job = context.scenario.job;
  for (const auto& [name, groups] : context.groups) {
    if (groups.size() == 1) options.groups[name].assign(job.ranks(groups[0]).begin(), job.ranks(groups[0]).end());
  }
  context.scenario.guessed_waits += traces->guessed;
  for (const RecordedTime& one : traces->recorded) {
    RecordedTime& all = context.scenario.recorded;
    all.elapsed_us = std::max(all.elapsed_us, one.elapsed_us);
    all.exposed_us += one.exposed_us / static_cast<double>(traces->recorded.size());
  }
  const auto added = add_chakra(context.scenario.job, traces->nodes, options);
  if (!added) context.error(mark, scenario_codes::bad_trace, added.error());
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
