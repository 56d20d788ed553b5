#include "scenario/workload/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compute/constants.h"

namespace espalier::scenario {

namespace streams = training_streams;

TrainingSteps::TrainingSteps(Job& job, const TrainingModel& model, const std::vector<Rank>& ranks, Averager* averager)
    : job_(job),
      model_(model),
      ranks_(ranks),
      averager_(averager),
      cost_(cost_of_layer(model)),
      times_(times_of(model)),
      workers_per_place_(static_cast<std::size_t>(model.tensor * model.replicas())),
      micro_batches_(model.micro_batches()),
      boundary_bytes_(model.micro_batch * model.sequence * model.hidden * size_of(model.type) / model.context /
                      (model.sequence_parallel ? model.tensor : 1)),
      places_(static_cast<std::size_t>(model.pipeline)),
      tensor_(make_use(model.tensor_planner, model.tensor_chunk)),
      data_(make_use(model.data_planner, model.data_chunk)),
      expert_(make_use(model.expert_planner, model.expert_chunk)),
      context_(make_use(model.context_planner, model.context_chunk)) {
  // What comes round from neighbour to neighbour is a ring.
  if (model.context_planner.empty() && model.context_exchange == compute::ContextExchange::ring && model.context > 1) {
    context_.planner = job_.add_label("ring");
  }
  if (model.routing) routed_.emplace(job, model);
}

Result<void> TrainingSteps::add() {
  for (std::int64_t step = 0; step < model_.steps; ++step) {
    step_ = step;
    pipeline_calls_.assign(static_cast<std::size_t>(2 * (stages() - 1) * micro_batches_) * workers_per_place_,
                           CallId());
    for (std::int64_t place = 0; place < model_.pipeline; ++place) {
      add_place(place);
      if (step + place == 0) job_.reserve(static_cast<std::size_t>(model_.steps * model_.pipeline));
    }
    if (!averaged_) break;
  }
  return averaged_;
}

void TrainingSteps::set_groups(std::int64_t place) {
  const auto tensor = static_cast<std::size_t>(model_.tensor), context = static_cast<std::size_t>(model_.context);
  const auto replicas = static_cast<std::size_t>(model_.replicas()), expert = static_cast<std::size_t>(model_.expert);
  const auto of_expert = static_cast<std::size_t>(model_.tensor_of_experts());
  const auto sharers = static_cast<std::size_t>(model_.sharers());
  const auto expert_sharers = static_cast<std::size_t>(model_.expert_sharers());
  // The ranks of a group: `count` workers from `first` on, `stride` apart. One alone is none.
  const auto add = [&](std::vector<GroupId>& groups, std::size_t first, std::size_t count, std::size_t stride) {
    if (count < 2) return;
    std::vector<Rank> members;
    for (std::size_t i = 0; i < count; ++i) members.push_back(rank_of(place, first + i * stride));
    groups.push_back(job_.add_group(std::move(members)));
  };
  // Groups of `count` workers `stride` apart, and in each the neighbours that share, and those with the same share.
  const auto add_sharing = [&](std::vector<GroupId>& sharing, std::vector<GroupId>& apart, std::size_t first,
                               std::size_t count, std::size_t stride, std::size_t shared) {
    for (std::size_t i = 0; i < count; i += shared) add(sharing, first + i * stride, shared, stride);
    for (std::size_t i = 0; i < shared; ++i) add(apart, first + i * stride, count / shared, shared * stride);
  };
  for (auto* groups :
       {&tensor_groups_, &context_groups_, &data_groups_, &expert_groups_, &expert_data_groups_, &expert_tensor_groups_,
        &sharing_groups_, &apart_groups_, &expert_sharing_groups_, &expert_apart_groups_}) {
    groups->clear();
  }
  for (std::size_t d = 0; d < replicas; ++d) add(tensor_groups_, d * tensor, tensor, 1);
  for (std::size_t d = 0; d < replicas; d += context) {
    for (std::size_t t = 0; t < tensor; ++t) add(context_groups_, t + d * tensor, context, tensor);
  }
  for (std::size_t t = 0; t < tensor; ++t) add(data_groups_, t, replicas, tensor);
  for (std::size_t t = 0; t < tensor && sharers < replicas; ++t) {
    add_sharing(sharing_groups_, apart_groups_, t, replicas, tensor, sharers);
  }
  if (model_.experts == 0) return;
  const std::size_t block = of_expert * expert, workers = tensor * replicas;
  for (std::size_t first = 0; first < workers && of_expert != tensor; first += of_expert) {
    add(expert_tensor_groups_, first, of_expert, 1);
  }
  for (std::size_t t = 0; t < of_expert; ++t) {
    for (std::size_t first = 0; first < workers; first += block) add(expert_groups_, first + t, expert, of_expert);
    for (std::size_t e = 0; e < expert; ++e) {
      add(expert_data_groups_, t + e * of_expert, workers / block, block);
      if (expert_sharers < workers / block) {
        add_sharing(expert_sharing_groups_, expert_apart_groups_, t + e * of_expert, workers / block, block,
                    expert_sharers);
      }
    }
  }
}

void TrainingSteps::add_place(std::int64_t place) {
  place_ = place;
  workers_ = std::move(places_[static_cast<std::size_t>(place)]);
  if (workers_.empty()) {
    workers_.resize(workers_per_place_);
    for (std::size_t i = 0; i < workers_.size(); ++i) workers_[i].rank = rank_of(place, i);
  }
  set_groups(place);
  gradient_bytes_ = expert_gradient_bytes_ = {};
  gradient_matrices_ = {};
  updated_.clear();
  expert_updated_.clear();
  for (const Pass& pass : model_.pipeline_order().passes(place)) {
    switch (pass.kind) {
      case compute::PassKind::forward: forward(pass); break;
      case compute::PassKind::backward: backward(pass); break;
      case compute::PassKind::weights: weights(pass); break;
    }
  }
  end_step();
  places_[static_cast<std::size_t>(place)] = std::move(workers_);
}

TaskId TrainingSteps::chain(Worker& worker, Task task, bool takes_also) {
  after_.clear();
  if (!worker.last.is_none()) after_.push_back(worker.last);
  if (takes_also) {
    after_.insert(after_.end(), worker.also.begin(), worker.also.end());
    worker.also.clear();
  }
  task.rank = worker.rank;
  worker.last = job_.add_task(task, after_);
  return worker.last;
}

void TrainingSteps::compute(LabelId label, Picoseconds duration) {
  for (Worker& worker : workers_) {
    worker.before = worker.last;
    chain(worker, {.duration = duration.count, .label = label, .stream = streams::compute}, true);
  }
}

/// Calls that all workers wait for.
void TrainingSteps::call_all(const std::vector<GroupId>& groups, std::uint16_t stream, const Call& call) {
  if (groups.empty()) return;
  call_of_rank_.clear();
  for (const GroupId group : groups) {
    Call of_group = call;
    of_group.group = group;
    const CallId id = job_.add_call(of_group);
    for (const Rank rank : job_.ranks(group)) {
      if (call_of_rank_.size() <= rank.index()) call_of_rank_.resize(rank.index() + 1);
      if (call_of_rank_[rank.index()].is_none()) call_of_rank_[rank.index()] = id;
    }
  }
  for (Worker& worker : workers_) {
    if (worker.rank.index() >= call_of_rank_.size()) continue;
    const CallId id = call_of_rank_[worker.rank.index()];
    if (id.is_none()) continue;
    chain(worker, {.call = id, .label = call.label, .stream = stream, .kind = TaskKind::call}, false);
  }
}

void TrainingSteps::call_all(const std::vector<GroupId>& groups, CollectiveKind kind, std::uint16_t stream,
                             LabelId label, const Use& use, Bytes size, ElementType type) {
  call_all(groups, stream, call_of(kind, label, use, size, type));
}

Call TrainingSteps::call_of(CollectiveKind kind, LabelId label, const Use& use, Bytes size, ElementType type) {
  return {.size = size,
          .label = label,
          .planner = use.planner,
          .chunk = use.chunk,
          .kind = kind,
          .element_size = static_cast<std::uint8_t>(size_of(type))};
}

CallId TrainingSteps::pipeline_call(std::int64_t from, std::int64_t to, std::int64_t micro_batch, std::size_t worker) {
  const bool is_forward = to > from;
  const auto boundary = static_cast<std::size_t>(std::min(from, to) * 2 + (is_forward ? 0 : 1));
  const std::size_t index =
      (boundary * static_cast<std::size_t>(micro_batches_) + static_cast<std::size_t>(micro_batch)) *
          workers_per_place_ +
      worker;
  CallId& call = pipeline_calls_[index];
  if (call.is_none()) {
    const Rank src = rank_of(from, worker), dst = rank_of(to, worker);
    const GroupId group = job_.add_group({src, dst});
    call = job_.add_call({.size = {boundary_bytes_},
                          .group = group,
                          .label = job_.add_label(is_forward ? "activations" : "activation gradients"),
                          .planner = LabelId(),
                          .chunk = model_.pipeline_chunk,
                          .root = Rank(src < dst ? 0 : 1),
                          .kind = CollectiveKind::broadcast,
                          .element_size = static_cast<std::uint8_t>(size_of(model_.type))});
  }
  return call;
}

void TrainingSteps::send(std::int64_t from, std::int64_t to, std::int64_t micro_batch) {
  const bool is_forward = to > from;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const CallId call = pipeline_call(from, to, micro_batch, i);
    const std::array after{workers_[i].last};
    job_.add_task({.rank = workers_[i].rank,
                   .call = call,
                   .label = job_.call(call).label,
                   .stream = is_forward ? streams::send_forward : streams::send_backward,
                   .kind = TaskKind::call},
                  after);
  }
}

/// Receives are posted as soon as the one before is over; the next compute waits for it.
void TrainingSteps::receive(std::int64_t from, std::int64_t to, std::int64_t micro_batch) {
  const bool is_forward = to > from;
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const CallId call = pipeline_call(from, to, micro_batch, i);
    workers_[i].also.push_back(
        job_.add_task({.rank = workers_[i].rank,
                       .call = call,
                       .label = job_.call(call).label,
                       .stream = is_forward ? streams::receive_forward : streams::receive_backward,
                       .kind = TaskKind::call},
                      {}));
  }
}

bool TrainingSteps::overlaps_tensor() const { return model_.overlaps_tensor && model_.tensor > 1; }

/// Of a call of tensor ranks: all of it, or where they run beside products what does, or what is left.
Bytes TrainingSteps::tensor_bytes(bool is_beside) const {
  const std::int64_t elements = model_.micro_batch * model_.sequence / model_.context * model_.hidden;
  const std::int64_t beside = overlaps_tensor()
                                  ? static_cast<std::int64_t>(static_cast<double>(elements / model_.tensor) *
                                                              compute::constants::tensor_hidden) *
                                        model_.tensor
                                  : 0;
  return {(is_beside ? beside : elements - beside) * size_of(model_.type)};
}

/// The calls of tensor ranks before or behind half a layer. `is_beside`: without what runs beside its products.
void TrainingSteps::tensor_calls(LabelId label, bool is_before, bool is_beside) {
  if (is_before && !model_.sequence_parallel) return;
  Bytes size = tensor_bytes(false);
  if (!is_beside) size.count += tensor_bytes(true).count;
  const CollectiveKind behind = model_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  call_all(tensor_groups_, is_before ? CollectiveKind::all_gather : behind, streams::tensor, label, tensor_, size,
           model_.type);
}

/// What of both runs beside the product between them; what comes behind it waits for that, too.
void TrainingSteps::tensor_calls_beside(LabelId label) {
  for (const CollectiveKind kind : {CollectiveKind::all_gather, CollectiveKind::reduce_scatter}) {
    call_beside(tensor_groups_, streams::tensor, call_of(kind, label, tensor_, tensor_bytes(true), model_.type),
                [&](Worker& worker, const Task& task) {
                  const std::array after{worker.last};
                  worker.later.push_back(job_.add_task(task, after));
                });
  }
}

/// Tokens to experts, and back.
void TrainingSteps::exchange_tokens(bool is_there) {
  Call call{.size = {boundary_bytes_ * model_.experts_per_token},
            .label = job_.add_label("experts"),
            .planner = expert_.planner,
            .chunk = expert_.chunk,
            .kind = CollectiveKind::all_to_all,
            .element_size = static_cast<std::uint8_t>(size_of(model_.type))};
  if (routed_) {
    const LayerRouting& layer = routed_->of(step_, layer_);
    call.size = is_there ? layer.there_size : layer.back_size;
    call.matrix = is_there ? layer.there : layer.back;
    call.element_size = is_there ? layer.there_element : layer.back_element;
  }
  call_all(expert_groups_, streams::expert, call);
}

/// Experts compute in proportion to the tokens that they get.
void TrainingSteps::compute_experts(LabelId label, Picoseconds balanced) {
  const LayerRouting& layer = routed_->of(step_, layer_);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const std::size_t place = i / static_cast<std::size_t>(model_.tensor_of_experts()) % layer.load.size();
    const auto duration = static_cast<std::int64_t>(std::ceil(static_cast<double>(balanced.count) * layer.load[place]));
    workers_[i].before = workers_[i].last;
    chain(workers_[i], {.duration = duration, .label = label, .stream = streams::compute}, true);
  }
}

/// Attention or the feed-forward part of one layer, with the calls around it; those of the forward pass once more where
/// the backward pass runs it again.
void TrainingSteps::half_layer(bool is_forward, bool is_attention, LabelId label) {
  const LabelId tensor_label = job_.add_label("tensor");
  const bool routes_tokens = !is_attention && !is_dense_layer();
  // Experts that are shared otherwise get tokens from each rank's own part of the sequence.
  const bool is_apart = routes_tokens && model_.tensor_of_experts() != model_.tensor;
  const bool has_calls = !is_apart || model_.shared_experts > 0;
  const bool is_beside = overlaps_tensor() && !routes_tokens;
  const bool is_again = !is_forward && model_.recomputes;
  if (has_calls) tensor_calls(tensor_label, true, is_beside);
  if (routes_tokens) exchange_tokens(true);
  if (is_apart) expert_tensor_call(CollectiveKind::all_gather);
  for (int times = is_again ? 2 : 1; is_beside && times > 0; --times) tensor_calls_beside(tensor_label);
  const auto way = static_cast<std::size_t>(is_forward ? 0 : 1);
  if (is_attention) {
    compute_attention(is_forward, label);
  } else if (routes_tokens && routed_) {
    compute_experts(label, times_.feed_forward[way]);
  } else {
    compute(label, (routes_tokens ? times_.feed_forward : times_.dense)[way]);
  }
  for (Worker& worker : workers_) {
    worker.also.insert(worker.also.end(), worker.later.begin(), worker.later.end());
    worker.later.clear();
  }
  if (is_apart) expert_tensor_call(CollectiveKind::reduce_scatter);
  if (routes_tokens) exchange_tokens(false);
  if (has_calls) tensor_calls(tensor_label, false, is_beside);
  if (!is_again) return;
  if (has_calls) tensor_calls(tensor_label, true, is_beside);
  if (routes_tokens) exchange_tokens(true);
  if (routes_tokens) exchange_tokens(false);
  if (has_calls) tensor_calls(tensor_label, false, is_beside);
}

/// Tokens of all ranks that share an expert, for each of them; behind it their sums for each.
void TrainingSteps::expert_tensor_call(CollectiveKind kind) {
  const Bytes size{boundary_bytes_ * model_.experts_per_token * model_.tensor_of_experts()};
  call_all(expert_tensor_groups_, kind, streams::tensor, job_.add_label("expert tensor"), tensor_, size, model_.type);
}

void TrainingSteps::output_layer(bool is_forward, LabelId label) {
  if (model_.vocabulary > 0) compute(label, times_.output[is_forward ? 0 : 1]);
}

/// "forward 3"; where a rank has several stages, "forward 3 of stage 5".
LabelId TrainingSteps::label_of(const Pass& pass) {
  constexpr const char* ways[] = {"forward", "backward", "weights"};
  const char* const way = ways[static_cast<std::size_t>(pass.kind)];
  if (model_.virtual_stages == 1) return job_.add_label(fmt::format("{} {}", way, pass.micro_batch));
  return job_.add_label(fmt::format("{} {} of stage {}", way, pass.micro_batch, pass.stage));
}

void TrainingSteps::forward(const Pass& pass) {
  const auto [kind, micro_batch, stage] = pass;
  const LabelId label = label_of(pass);
  if (stage > 0) receive(stage - 1, stage, micro_batch);
  const std::int64_t layers = model_.layers_of(stage), first = model_.first_layer_of(stage);
  const bool gathers = model_.sharding == Sharding::full || (model_.overlaps_parameters && micro_batch == 0);
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    layer_ = first + layer;
    if (gathers) gather_layer();
    half_layer(true, true, label);
    half_layer(true, false, label);
  }
  if (stage == stages() - 1) {
    output_layer(true, label);
  } else {
    send(stage, stage + 1, micro_batch);
  }
}

void TrainingSteps::backward(const Pass& pass) {
  const auto [kind, micro_batch, stage] = pass;
  const LabelId label = label_of(pass);
  if (stage < stages() - 1) {
    receive(stage + 1, stage, micro_batch);
  } else {
    output_layer(false, label);
  }
  const bool is_last = micro_batch == micro_batches_ - 1 || model_.sharding == Sharding::full;
  const bool adds_gradients = is_last && !defers_weights();
  const std::int64_t first = model_.first_layer_of(stage);
  for (std::int64_t layer = model_.layers_of(stage); layer-- > 0;) {
    layer_ = first + layer;
    if (model_.sharding == Sharding::full) gather_layer();
    half_layer(false, false, label);
    half_layer(false, true, label);
    if (adds_gradients) scatter_layer(stage, layer);
  }
  if (stage > 0) send(stage, stage - 1, micro_batch);
}

/// Gradients of the weights of a stage, put off by a backward pass before; those of the last micro-batch are then added
/// up.
void TrainingSteps::weights(const Pass& pass) {
  const auto [kind, micro_batch, stage] = pass;
  const LabelId label = label_of(pass);
  for (std::int64_t layer = model_.layers_of(stage); layer-- > 0;) {
    layer_ = model_.first_layer_of(stage) + layer;
    compute(label, is_dense_layer() ? times_.dense_weights : times_.weights);
    if (micro_batch == micro_batches_ - 1) scatter_layer(stage, layer);
  }
}

}  // namespace espalier::scenario
