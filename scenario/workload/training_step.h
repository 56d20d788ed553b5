#pragma once

// Tested by: tests/unit/scenario/workload/training_test.cpp

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "scenario/workload/training.h"
#include "scenario/workload/training_compute.h"

namespace espalier::scenario {

/// Streams of a rank in a training step.
namespace training_streams {
inline constexpr std::uint16_t compute = 0;
inline constexpr std::uint16_t tensor = 1;
inline constexpr std::uint16_t data = 2;
inline constexpr std::uint16_t expert = 3;
inline constexpr std::uint16_t send_forward = 4;
inline constexpr std::uint16_t receive_forward = 5;
inline constexpr std::uint16_t send_backward = 6;
inline constexpr std::uint16_t receive_backward = 7;
inline constexpr std::uint16_t context = 8;
}  // namespace training_streams

/// Writes the tasks of training steps into a job, one place of the pipeline after the other. Requires: a model whose
/// sizes divide each other.
class TrainingSteps {
 public:
  /// `averager`: what averages gradients; null: all_reduce calls.
  TrainingSteps(Job& job, const TrainingModel& model, const std::vector<Rank>& ranks, Averager* averager);
  /// Errors: those of the averager.
  Result<void> add();
  /// What the model's routing makes of it; nothing without one.
  [[nodiscard]] std::optional<RoutingFigures> routing() const {
    return routed_ ? std::optional(routed_->figures()) : std::nullopt;
  }

 private:
  /// A rank of a place while its tasks are written.
  struct Worker {
    Rank rank;
    TaskId last;                  ///< The end of what it does one after the other.
    std::vector<TaskId> also;     ///< What its next compute waits for as well.
    std::vector<TaskId> updates;  ///< Gradients on their way; the optimizer waits for them.
    TaskId gathered;              ///< The last gathering of parameters (Sharding::full).
    std::vector<TaskId> later;    ///< What the compute behind its next one waits for as well.
    std::vector<TaskId> beside;   ///< Exchanges of sequences that go on while it computes.
    TaskId before;  ///< Where its last layer began: the next layer's parameters are gathered from there on.
  };
  /// How calls of one use are made.
  struct Use {
    LabelId planner;
    Bytes chunk;
  };
  using Pass = compute::Pass;

  void add_place(std::int64_t place);
  [[nodiscard]] LabelId label_of(const Pass& pass);
  void forward(const Pass& pass);
  void backward(const Pass& pass);
  void weights(const Pass& pass);
  void compute_attention(bool is_forward, LabelId label);
  void attend(Picoseconds whole, Picoseconds core, bool is_forward, LabelId label);
  void attend_in_ring(Picoseconds before, Picoseconds core, Picoseconds behind, bool is_forward, LabelId label);
  void context_call(CollectiveKind kind, Bytes size);
  void context_call_beside(CollectiveKind kind, Bytes size);
  void half_layer(bool is_forward, bool is_attention, const LabelId label);
  void exchange_tokens(bool is_there);
  void expert_tensor_call(CollectiveKind kind);
  void compute_experts(LabelId label, Picoseconds balanced);
  [[nodiscard]] bool overlaps_tensor() const;
  void tensor_calls(LabelId label, bool is_before, bool is_beside);
  void tensor_calls_beside(LabelId label);
  [[nodiscard]] Bytes tensor_bytes(bool is_beside) const;
  void output_layer(bool is_forward, LabelId label);
  [[nodiscard]] std::int64_t table_parameters() const;
  void gather_layer();
  void gather_beside(const std::vector<GroupId>& groups, Bytes size);
  void scatter_layer(std::int64_t stage, std::int64_t layer);
  void flush_bucket();
  void add_tied_gradients();
  void end_step();

  void compute(LabelId label, Picoseconds duration);
  void call_all(const std::vector<GroupId>& groups, CollectiveKind kind, std::uint16_t stream, LabelId label,
                const Use& use, Bytes size, ElementType type);
  void call_all(const std::vector<GroupId>& groups, std::uint16_t stream, const Call& call);
  /// For a group to be set.
  static Call call_of(CollectiveKind kind, LabelId label, const Use& use, Bytes size, ElementType type);
  template <class Add>
  void call_beside(const std::vector<GroupId>& groups, std::uint16_t stream, Call call, const Add& add);
  /// `behind_last`: behind the call of this kind before, too.
  void update_all(const std::vector<GroupId>& groups, CollectiveKind kind, LabelId label, Bytes size, ElementType type,
                  bool behind_last = false);
  void add_gradients(const std::vector<GroupId>& all, const std::vector<GroupId>& sharing,
                     const std::vector<GroupId>& apart, std::int64_t sharers, LabelId label, Bytes size);
  void average_gradients();
  void send(std::int64_t from, std::int64_t to, std::int64_t micro_batch);
  void receive(std::int64_t from, std::int64_t to, std::int64_t micro_batch);
  CallId pipeline_call(std::int64_t from, std::int64_t to, std::int64_t micro_batch, std::size_t worker);

  [[nodiscard]] std::int64_t stages() const { return model_.stages(); }
  [[nodiscard]] bool defers_weights() const { return model_.order == compute::Order::deferred_weights; }
  [[nodiscard]] Rank rank_of(std::int64_t stage, std::size_t worker) const {
    return ranks_[static_cast<std::size_t>(stage % model_.pipeline) * workers_per_place_ + worker];
  }
  TaskId chain(Worker& worker, Task task, bool takes_also);
  void set_groups(std::int64_t place);
  [[nodiscard]] bool is_dense_layer() const { return model_.is_dense(layer_); }
  Use make_use(const std::string& planner, Bytes chunk) {
    return {planner.empty() ? LabelId() : job_.add_label(planner), chunk};
  }

  Job& job_;
  const TrainingModel& model_;
  const std::vector<Rank>& ranks_;
  Averager* averager_;
  Result<void> averaged_;  ///< The averager's first error.
  LayerCost cost_;
  ComputeTimes times_;
  std::size_t workers_per_place_;
  std::int64_t micro_batches_;
  std::optional<RoutedLayers> routed_;
  std::int64_t step_ = 0;
  std::int64_t place_ = 0;       ///< That is being written.
  std::int64_t layer_ = 0;       ///< Of the model, that is being written.
  std::int64_t boundary_bytes_;  ///< Activations that a rank hands to the next stage.

  // Of the place that is being written.
  std::vector<Worker> workers_;
  std::vector<TaskId> after_;                ///< Of the task that is being written.
  std::vector<CallId> call_of_rank_;         ///< Of the calls that are being written.
  std::vector<std::vector<Worker>> places_;  ///< Kept from step to step.
  std::vector<GroupId> tensor_groups_, context_groups_, data_groups_, expert_groups_, expert_data_groups_;
  std::vector<GroupId> expert_tensor_groups_;           ///< Where experts are shared otherwise than layers.
  std::vector<GroupId> sharing_groups_, apart_groups_;  ///< With a shard_group: it, and those with the same share.
  std::vector<GroupId> expert_sharing_groups_, expert_apart_groups_;
  Bytes gradient_bytes_, expert_gradient_bytes_;  ///< In the bucket.
  MatrixSizes gradient_matrices_;                 ///< In the bucket.
  std::vector<Bytes> updated_, expert_updated_;   ///< Sizes of the buckets of the step.

  std::vector<CallId> tied_calls_;      ///< By worker: of the first place and the last one.
  std::vector<CallId> pipeline_calls_;  ///< By boundary, direction, micro-batch and worker; none: not yet added.
  Use tensor_, data_, expert_, context_;
};

}  // namespace espalier::scenario
