#include <algorithm>
#include <array>

#include "scenario/workload/training_step.h"

// What groups of ranks do together: those that share sequences attend to all of them, replicas add gradients up and
// gather parameters.

namespace espalier::scenario {

namespace streams = training_streams;

/// A call that workers wait for.
void TrainingSteps::context_call(CollectiveKind kind, Bytes size) {
  call_all(context_groups_, kind, streams::context, job_.add_label("context"), context_, size, model_.type);
}

/// A call of each group beside what its workers compute; `add` takes each worker's task.
template <class Add>
void TrainingSteps::call_beside(const std::vector<GroupId>& groups, std::uint16_t stream, Call call, const Add& add) {
  for (const GroupId group : groups) {
    call.group = group;
    const CallId id = job_.add_call(call);
    for (Worker& worker : workers_) {
      if (job_.rank_in(group, worker.rank).is_none()) continue;
      add(worker, Task{.rank = worker.rank, .call = id, .label = call.label, .stream = stream, .kind = TaskKind::call});
    }
  }
}

/// A call that begins when what is before it is over, and that what comes behind the next computation waits for.
void TrainingSteps::context_call_beside(CollectiveKind kind, Bytes size) {
  const Call call = call_of(kind, job_.add_label("context"), context_, size, model_.type);
  call_beside(context_groups_, streams::context, call, [&](Worker& worker, const Task& task) {
    const std::array after{worker.last};
    worker.beside.push_back(job_.add_task(task, after));
  });
}

/// Attention of a layer, with exchanges among ranks that share sequences; where the backward pass runs the forward pass
/// again, with those of both.
void TrainingSteps::compute_attention(bool is_forward, LabelId label) {
  if (model_.context == 1) return compute(label, times_.attention[is_forward ? 0 : 1]);
  if (is_forward) return attend(times_.attention[0], times_.core[0], true, label);
  Picoseconds back = times_.attention[1];
  if (model_.recomputes) {
    attend(times_.attention[0], times_.core[0], true, label);
    back.count = std::max<std::int64_t>(0, back.count - times_.attention[0].count);
  }
  attend(back, times_.core[1], false, label);
}

/// `core` of the whole is between the products, half of the rest before it, half behind.
void TrainingSteps::attend(Picoseconds whole, Picoseconds core, bool is_forward, LabelId label) {
  core.count = std::min(core.count, whole.count);
  const Picoseconds before{(whole.count - core.count) / 2};
  const Picoseconds behind{whole.count - core.count - before.count};
  const compute::ContextBytes bytes = compute::context_bytes(plan_of(model_));
  const std::int64_t element = size_of(model_.type);
  const auto whole_elements = [&](double count) { return Bytes{static_cast<std::int64_t>(count) / element * element}; };
  switch (model_.context_exchange) {
    case compute::ContextExchange::ring: return attend_in_ring(before, core, behind, is_forward, label);
    case compute::ContextExchange::all_gather:
      compute(label, before);
      context_call(CollectiveKind::all_gather, whole_elements(bytes.gathered));
      compute(label, core);
      if (!is_forward) context_call(CollectiveKind::reduce_scatter, whole_elements(bytes.gathered));
      return compute(label, behind);
    case compute::ContextExchange::all_to_all:
      compute(label, before);
      context_call(CollectiveKind::all_to_all, whole_elements(is_forward ? bytes.exchanged_in : bytes.exchanged_out));
      compute(label, core);
      context_call(CollectiveKind::all_to_all, whole_elements(is_forward ? bytes.exchanged_out : bytes.exchanged_in));
      return compute(label, behind);
  }
}

/// Keys and values go round while a rank attends to those that it has; forward the last part waits for them, backward
/// gradients of keys and values go round once those of the first part are there.
void TrainingSteps::attend_in_ring(Picoseconds before, Picoseconds core, Picoseconds behind, bool is_forward,
                                   LabelId label) {
  const compute::ContextBytes bytes = compute::context_bytes(plan_of(model_));
  const std::int64_t element = size_of(model_.type);
  const Bytes size{static_cast<std::int64_t>(bytes.gathered) / element * element};
  const auto join = [&] {
    for (Worker& worker : workers_) {
      worker.also.insert(worker.also.end(), worker.beside.begin(), worker.beside.end());
      worker.beside.clear();
    }
  };
  const std::int64_t part = core.count / model_.context;
  compute(label, before);
  context_call_beside(CollectiveKind::all_gather, size);
  if (is_forward) {
    compute(label, {core.count - part});
    join();
    return compute(label, {part + behind.count});
  }
  compute(label, {part});
  context_call_beside(CollectiveKind::reduce_scatter, size);
  compute(label, {core.count - part});
  join();
  compute(label, behind);
}

/// Calls on the data stream that workers do not wait for now.
void TrainingSteps::update_all(const std::vector<GroupId>& groups, CollectiveKind kind, LabelId label, Bytes size,
                               ElementType type, bool behind_last) {
  call_beside(groups, streams::data, call_of(kind, label, data_, size, type), [&](Worker& worker, const Task& task) {
    std::vector<TaskId> after{worker.last};
    if (behind_last && !worker.updates.empty()) after.push_back(worker.updates.back());
    worker.updates.push_back(job_.add_task(task, after));
  });
}

/// Of the embedding and the output layer, where they sit beside the layer that is written; of all tensor ranks.
std::int64_t TrainingSteps::table_parameters() const {
  const bool is_one = model_.tied && model_.pipeline == 1;
  const int tables = (layer_ == 0 ? 1 : 0) + (layer_ == model_.layers - 1 && !is_one ? 1 : 0);
  return tables * model_.vocabulary * model_.hidden;
}

/// Parameters of the next layer, gathered while the layer before is computed; its experts' too.
void TrainingSteps::gather_layer() {
  const std::int64_t element = size_of(model_.type);
  gather_beside(model_.sharers() < model_.replicas() ? sharing_groups_ : data_groups_,
                {(cost_.replicated(is_dense_layer()) + table_parameters()) / model_.tensor * element});
  if (is_dense_layer()) return;
  const std::int64_t of_rank =
      cost_.feed_forward_parameters / model_.tensor_of_experts() * (model_.experts / model_.expert);
  gather_beside(expert_apart_groups_.empty() ? expert_data_groups_ : expert_sharing_groups_, {of_rank * element});
}

void TrainingSteps::gather_beside(const std::vector<GroupId>& groups, Bytes size) {
  const Call call = call_of(CollectiveKind::all_gather, job_.add_label("parameters"), data_, size, model_.type);
  call_beside(groups, streams::data, call, [&](Worker& worker, const Task& task) {
    std::vector<TaskId> after;
    if (!worker.gathered.is_none()) after.push_back(worker.gathered);
    if (!worker.before.is_none()) after.push_back(worker.before);
    worker.gathered = job_.add_task(task, after);
    worker.also.push_back(worker.gathered);
  });
}

/// The gradients of a layer, and of embedding or output layer where they sit, go into the bucket.
void TrainingSteps::scatter_layer(std::int64_t stage, std::int64_t layer) {
  const std::int64_t element = size_of(model_.gradients);
  const bool is_dense = is_dense_layer();
  std::int64_t parameters = cost_.replicated(is_dense);
  if (const std::int64_t table = table_parameters(); table > 0) {
    const std::int64_t tables = table / (model_.vocabulary * model_.hidden);
    parameters += table;
    gradient_matrices_.rows += tables * model_.vocabulary / model_.tensor;
    gradient_matrices_.columns += tables * model_.hidden;
  }
  gradient_bytes_.count += parameters / model_.tensor * element;
  const MatrixSizes matrices = matrices_of_layer(model_);
  gradient_matrices_.rows += matrices.rows;
  gradient_matrices_.columns += matrices.columns;
  if (!is_dense) {
    expert_gradient_bytes_.count +=
        cost_.feed_forward_parameters / model_.tensor_of_experts() * (model_.experts / model_.expert) * element;
  }
  const bool is_full = gradient_bytes_.count + expert_gradient_bytes_.count >= model_.bucket.count;
  // A place's first stage is the last one on the way back.
  const bool is_last = layer == 0 && stage < model_.pipeline;
  if (is_full || is_last || model_.sharding == Sharding::full) flush_bucket();
}

/// Where ranks share what is sharded within a group: each gets its share of the group's sum, and groups add shares up.
void TrainingSteps::add_gradients(const std::vector<GroupId>& all, const std::vector<GroupId>& sharing,
                                  const std::vector<GroupId>& apart, std::int64_t sharers, LabelId label, Bytes size) {
  if (model_.sharding == Sharding::none || (sharing.empty() && !apart.empty())) {
    return update_all(all, CollectiveKind::all_reduce, label, size, model_.gradients);
  }
  if (apart.empty()) return update_all(all, CollectiveKind::reduce_scatter, label, size, model_.gradients);
  update_all(sharing, CollectiveKind::reduce_scatter, label, size, model_.gradients);
  const std::int64_t element = size_of(model_.gradients);
  const Bytes of_share{(size.count / element + sharers - 1) / sharers * element};
  update_all(apart, CollectiveKind::all_reduce, label, of_share, model_.gradients, true);
}

void TrainingSteps::flush_bucket() {
  if (averager_ != nullptr) {
    average_gradients();
  } else if (gradient_bytes_.count > 0) {
    add_gradients(data_groups_, sharing_groups_, apart_groups_, model_.sharers(), job_.add_label("gradients"),
                  gradient_bytes_);
    updated_.push_back(gradient_bytes_);
  }
  if (expert_gradient_bytes_.count > 0) {
    add_gradients(expert_data_groups_, expert_sharing_groups_, expert_apart_groups_, model_.expert_sharers(),
                  job_.add_label("expert gradients"), expert_gradient_bytes_);
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

/// The first place and the last one add up what each has of the gradients of a matrix that both keep.
void TrainingSteps::add_tied_gradients() {
  const bool is_first = place_ == 0, is_last = place_ == model_.pipeline - 1;
  if (!model_.tied || model_.vocabulary == 0 || is_first == is_last) return;
  if (is_first) tied_calls_.clear();
  const LabelId label = job_.add_label("embedding gradients");
  const Bytes size{model_.vocabulary / model_.tensor * model_.hidden * size_of(model_.gradients)};
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    Worker& worker = workers_[i];
    if (is_first) {
      Call call = call_of(CollectiveKind::all_reduce, label, data_, size, model_.gradients);
      call.group = job_.add_group({worker.rank, rank_of(model_.pipeline - 1, i)});
      tied_calls_.push_back(job_.add_call(call));
    }
    std::vector<TaskId> after = worker.updates;
    if (!worker.last.is_none()) after.push_back(worker.last);
    worker.updates.push_back(job_.add_task(
        {.rank = worker.rank, .call = tied_calls_[i], .label = label, .stream = streams::data, .kind = TaskKind::call},
        after));
  }
}

/// The optimizer waits for all gradients; where each rank updated its share only, parameters are gathered behind it.
void TrainingSteps::end_step() {
  add_tied_gradients();
  const LabelId label = job_.add_label("optimizer");
  for (Worker& worker : workers_) {
    std::vector<TaskId> after = worker.updates;
    worker.updates.clear();
    if (!worker.last.is_none()) after.push_back(worker.last);
    worker.last = job_.add_task({.duration = times_.optimizer.count, .rank = worker.rank, .label = label}, after);
    worker.before = worker.last;
  }
  if (model_.sharding != Sharding::optimizer || model_.overlaps_parameters) return;
  const std::int64_t per_gradient = size_of(model_.gradients), per_parameter = size_of(model_.type);
  const auto gather = [&](const std::vector<GroupId>& groups, const std::vector<Bytes>& buckets) {
    for (const Bytes bucket : buckets) {
      update_all(groups, CollectiveKind::all_gather, job_.add_label("parameters"),
                 {bucket.count / per_gradient * per_parameter}, model_.type);
    }
  };
  gather(apart_groups_.empty() ? data_groups_ : sharing_groups_, updated_);
  gather(expert_apart_groups_.empty() ? expert_data_groups_ : expert_sharing_groups_, expert_updated_);
  for (Worker& worker : workers_) {
    worker.also.insert(worker.also.end(), worker.updates.begin(), worker.updates.end());
    worker.updates.clear();
  }
}

}  // namespace espalier::scenario
