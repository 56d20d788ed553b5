#include "scenario/workload/training_step.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace espalier::scenario {

namespace streams = training_streams;

TrainingSteps::TrainingSteps(Job& job, const TrainingModel& model, const std::vector<Rank>& ranks, Averager* averager)
    : job_(job),
      model_(model),
      ranks_(ranks),
      averager_(averager),
      cost_(cost_of_layer(model)),
      times_(times_of(model)),
      workers_per_place_(static_cast<std::size_t>(model.tensor * model.data)),
      micro_batches_(model.micro_batches()),
      boundary_bytes_(model.micro_batch * model.sequence * model.hidden * size_of(model.type) /
                      (model.sequence_parallel ? model.tensor : 1)),
      places_(static_cast<std::size_t>(model.pipeline)),
      tensor_(make_use(model.tensor_planner, model.tensor_chunk)),
      data_(make_use(model.data_planner, model.data_chunk)),
      expert_(make_use(model.expert_planner, model.expert_chunk)) {
  if (model.routing) routed_.emplace(job, model);
}

Result<void> TrainingSteps::add() {
  for (std::int64_t step = 0; step < model_.steps; ++step) {
    step_ = step;
    pipeline_calls_.assign(static_cast<std::size_t>(2 * (stages() - 1) * micro_batches_) * workers_per_place_,
                           CallId());
    for (std::int64_t place = 0; place < model_.pipeline; ++place) add_place(place);
    if (!averaged_) break;
  }
  return averaged_;
}

void TrainingSteps::set_groups(std::int64_t place) {
  const auto tensor = static_cast<std::size_t>(model_.tensor), data = static_cast<std::size_t>(model_.data);
  const auto expert = static_cast<std::size_t>(model_.expert);
  // The ranks of a group: `count` workers from `first` on, `stride` apart.
  const auto group = [&](std::size_t first, std::size_t count, std::size_t stride) {
    std::vector<Rank> members;
    for (std::size_t i = 0; i < count; ++i) members.push_back(rank_of(place, first + i * stride));
    return job_.add_group(std::move(members));
  };
  tensor_groups_.clear();
  data_groups_.clear();
  expert_groups_.clear();
  expert_data_groups_.clear();
  for (std::size_t d = 0; d < data && tensor > 1; ++d) tensor_groups_.push_back(group(d * tensor, tensor, 1));
  for (std::size_t t = 0; t < tensor && data > 1; ++t) data_groups_.push_back(group(t, data, tensor));
  for (std::size_t t = 0; t < tensor; ++t) {
    for (std::size_t e = 0; e < data && expert > 1; e += expert) {
      expert_groups_.push_back(group(t + e * tensor, expert, tensor));
    }
    for (std::size_t e = 0; e < expert && data > expert; ++e) {
      expert_data_groups_.push_back(group(t + e * tensor, data / expert, expert * tensor));
    }
  }
}

void TrainingSteps::add_place(std::int64_t place) {
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
  std::vector<TaskId> after;
  if (!worker.last.is_none()) after.push_back(worker.last);
  if (takes_also) {
    after.insert(after.end(), worker.also.begin(), worker.also.end());
    worker.also.clear();
  }
  task.rank = worker.rank;
  worker.last = job_.add_task(task, after);
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
  std::vector<CallId> calls;
  for (const GroupId group : groups) {
    Call of_group = call;
    of_group.group = group;
    calls.push_back(job_.add_call(of_group));
  }
  for (Worker& worker : workers_) {
    for (const CallId id : calls) {
      if (job_.rank_in(job_.call(id).group, worker.rank).is_none()) continue;
      chain(worker, {.call = id, .label = call.label, .stream = stream, .kind = TaskKind::call}, false);
      break;
    }
  }
}

void TrainingSteps::call_all(const std::vector<GroupId>& groups, CollectiveKind kind, std::uint16_t stream,
                             LabelId label, const Use& use, Bytes size, ElementType type) {
  call_all(groups, stream,
           {.size = size,
            .label = label,
            .planner = use.planner,
            .chunk = use.chunk,
            .kind = kind,
            .element_size = static_cast<std::uint8_t>(size_of(type))});
}

/// Calls on the data stream that workers do not wait for now.
void TrainingSteps::update_all(const std::vector<GroupId>& groups, CollectiveKind kind, LabelId label, Bytes size,
                               ElementType type) {
  for (const GroupId group : groups) {
    const CallId call = job_.add_call({.size = size,
                                       .group = group,
                                       .label = label,
                                       .planner = data_.planner,
                                       .chunk = data_.chunk,
                                       .kind = kind,
                                       .element_size = static_cast<std::uint8_t>(size_of(type))});
    for (Worker& worker : workers_) {
      if (job_.rank_in(group, worker.rank).is_none()) continue;
      const std::array after{worker.last};
      worker.updates.push_back(job_.add_task(
          {.rank = worker.rank, .call = call, .label = label, .stream = streams::data, .kind = TaskKind::call}, after));
    }
  }
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

/// The calls of tensor ranks before or behind half a layer.
void TrainingSteps::tensor_calls(LabelId label, bool is_before) {
  if (is_before && !model_.sequence_parallel) return;
  const Bytes activations{model_.micro_batch * model_.sequence * model_.hidden * size_of(model_.type)};
  const CollectiveKind behind = model_.sequence_parallel ? CollectiveKind::reduce_scatter : CollectiveKind::all_reduce;
  call_all(tensor_groups_, is_before ? CollectiveKind::all_gather : behind, streams::tensor, label, tensor_,
           activations, model_.type);
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
    const std::size_t place = i / static_cast<std::size_t>(model_.tensor) % layer.load.size();
    const auto duration = static_cast<std::int64_t>(std::ceil(static_cast<double>(balanced.count) * layer.load[place]));
    workers_[i].before = workers_[i].last;
    chain(workers_[i], {.duration = duration, .label = label, .stream = streams::compute}, true);
  }
}

/// Attention or the feed-forward part of one layer, with the calls around it; those of the forward pass once more where
/// the backward pass runs it again.
void TrainingSteps::half_layer(bool is_forward, bool is_attention, LabelId label) {
  const LabelId tensor_label = job_.add_label("tensor");
  const bool routes_tokens = !is_attention && model_.experts > 0;
  tensor_calls(tensor_label, true);
  if (routes_tokens) exchange_tokens(true);
  const Picoseconds duration = (is_attention ? times_.attention : times_.feed_forward)[is_forward ? 0 : 1];
  if (routes_tokens && routed_) {
    compute_experts(label, duration);
  } else {
    compute(label, duration);
  }
  if (routes_tokens) exchange_tokens(false);
  tensor_calls(tensor_label, false);
  if (is_forward || !model_.recomputes) return;
  tensor_calls(tensor_label, true);
  tensor_calls(tensor_label, false);
}

void TrainingSteps::output_layer(bool is_forward, LabelId label) {
  if (model_.vocabulary > 0) compute(label, times_.output[is_forward ? 0 : 1]);
}

/// Parameters of the next layer, gathered while the layer before is computed.
void TrainingSteps::gather_layer() {
  if (model_.sharding != Sharding::full) return;
  const std::int64_t parameters =
      (cost_.attention_parameters + (model_.experts > 0 ? 0 : cost_.feed_forward_parameters)) / model_.tensor;
  const LabelId label = job_.add_label("parameters");
  for (const GroupId group : data_groups_) {
    const CallId call = job_.add_call({.size = {parameters * size_of(model_.type)},
                                       .group = group,
                                       .label = label,
                                       .planner = data_.planner,
                                       .chunk = data_.chunk,
                                       .kind = CollectiveKind::all_gather,
                                       .element_size = static_cast<std::uint8_t>(size_of(model_.type))});
    for (Worker& worker : workers_) {
      if (job_.rank_in(group, worker.rank).is_none()) continue;
      std::vector<TaskId> after;
      if (!worker.gathered.is_none()) after.push_back(worker.gathered);
      if (!worker.before.is_none()) after.push_back(worker.before);
      worker.gathered = job_.add_task(
          {.rank = worker.rank, .call = call, .label = label, .stream = streams::data, .kind = TaskKind::call}, after);
      worker.also.push_back(worker.gathered);
    }
  }
}

/// The gradients of a layer, and of embedding or output layer where they sit, go into the bucket.
void TrainingSteps::scatter_layer(std::int64_t stage, std::int64_t layer) {
  const std::int64_t element = size_of(model_.gradients);
  const bool is_dense = model_.experts == 0;
  std::int64_t parameters = cost_.attention_parameters + (is_dense ? cost_.feed_forward_parameters : 0);
  const int tables =
      (stage == 0 && layer == 0 ? 1 : 0) + (stage == stages() - 1 && layer == model_.layers_of(stage) - 1 ? 1 : 0);
  if (model_.vocabulary > 0) {
    parameters += tables * model_.vocabulary * model_.hidden;
    gradient_matrices_.rows += tables * model_.vocabulary / model_.tensor;
    gradient_matrices_.columns += tables * model_.hidden;
  }
  gradient_bytes_.count += parameters / model_.tensor * element;
  const MatrixSizes matrices = matrices_of_layer(model_);
  gradient_matrices_.rows += matrices.rows;
  gradient_matrices_.columns += matrices.columns;
  if (!is_dense) {
    expert_gradient_bytes_.count +=
        cost_.feed_forward_parameters / model_.tensor * (model_.experts / model_.expert) * element;
  }
  const bool is_full = gradient_bytes_.count + expert_gradient_bytes_.count >= model_.bucket.count;
  // A place's first stage is the last one on the way back.
  const bool is_last = layer == 0 && stage < model_.pipeline;
  if (is_full || is_last || model_.sharding == Sharding::full) flush_bucket();
}

void TrainingSteps::flush_bucket() {
  const CollectiveKind kind =
      model_.sharding == Sharding::none ? CollectiveKind::all_reduce : CollectiveKind::reduce_scatter;
  if (averager_ != nullptr) {
    average_gradients();
  } else if (gradient_bytes_.count > 0) {
    update_all(data_groups_, kind, job_.add_label("gradients"), gradient_bytes_, model_.gradients);
    updated_.push_back(gradient_bytes_);
  }
  if (expert_gradient_bytes_.count > 0) {
    update_all(expert_data_groups_, kind, job_.add_label("expert gradients"), expert_gradient_bytes_, model_.gradients);
    expert_updated_.push_back(expert_gradient_bytes_);
  }
  gradient_bytes_ = expert_gradient_bytes_ = {};
  gradient_matrices_ = {};
}

/// The bucket, by the averager.
void TrainingSteps::average_gradients() {
  const Call all_reduce{.size = gradient_bytes_,
                        .label = job_.add_label("gradients"),
                        .planner = data_.planner,
                        .chunk = data_.chunk,
                        .element_size = static_cast<std::uint8_t>(size_of(model_.gradients))};
  for (const GroupId group : data_groups_) {
    if (!averaged_) return;
    std::vector<Worker*> members;
    std::vector<std::vector<TaskId>> after;
    for (const Rank rank : job_.ranks(group)) {
      members.push_back(&*std::ranges::find(workers_, rank, &Worker::rank));
      after.push_back({members.back()->last});
    }
    Call call = all_reduce;
    call.group = group;
    const auto last = averager_->add(call, streams::data, after, gradient_matrices_);
    if (!last) {
      averaged_ = tl::unexpected(last.error());
      return;
    }
    for (std::size_t i = 0; i < members.size(); ++i) members[i]->updates.push_back((*last)[i]);
  }
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
  for (std::int64_t layer = 0; layer < layers; ++layer) {
    layer_ = first + layer;
    gather_layer();
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
    gather_layer();
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
    compute(label, times_.weights);
    if (micro_batch == micro_batches_ - 1) scatter_layer(stage, layer);
  }
}

/// The optimizer waits for all gradients; where each rank updated its share only, parameters are gathered behind it.
void TrainingSteps::end_step() {
  const LabelId label = job_.add_label("optimizer");
  for (Worker& worker : workers_) {
    std::vector<TaskId> after = worker.updates;
    worker.updates.clear();
    if (!worker.last.is_none()) after.push_back(worker.last);
    worker.last = job_.add_task({.duration = times_.optimizer.count, .rank = worker.rank, .label = label}, after);
    worker.before = worker.last;
  }
  if (model_.sharding != Sharding::optimizer) return;
  const std::int64_t per_gradient = size_of(model_.gradients), per_parameter = size_of(model_.type);
  const auto gather = [&](const std::vector<GroupId>& groups, const std::vector<Bytes>& buckets) {
    for (const Bytes bucket : buckets) {
      update_all(groups, CollectiveKind::all_gather, job_.add_label("parameters"),
                 {bucket.count / per_gradient * per_parameter}, model_.type);
    }
  };
  gather(data_groups_, updated_);
  gather(expert_data_groups_, expert_updated_);
  for (Worker& worker : workers_) {
    worker.also.insert(worker.also.end(), worker.updates.begin(), worker.updates.end());
    worker.updates.clear();
  }
}

}  // namespace espalier::scenario
