#include <ATen/ATen.h>

#include <utility>

#include "python/torch/process_group.h"

// The calls: what they check and what their Work gives. How they are carried out is in carry_out.cpp.

namespace espalier::python {
namespace {

void require_one(const char* call, const char* which, std::size_t count) {
  if (count != 1) refuse_call(call, std::string("requires a single-element ") + which + " list");
}

/// Where the engine works for tensors that are all on one device, as `check_tensors` found.
std::shared_ptr<DeviceStage> stage_of(const std::vector<at::Tensor>& tensors) {
  return std::make_shared<DeviceStage>(tensors.front().device());
}

/// A list of a tensor for every member.
void check_parts(const char* call, const char* which, const std::vector<at::Tensor>& parts, std::size_t members,
                 const at::Tensor& part) {
  if (parts.size() != members) {
    refuse_call(call, std::string("invalid ") + which + " tensor list at index 0 (expected length " +
                          std::to_string(members) + ", got " + std::to_string(parts.size()) + ")");
  }
  check_alike(call, parts, part);
}

void check_whole(const char* call, const at::Tensor& whole, const at::Tensor& part, std::size_t members) {
  check_tensors(call, {whole, part});
  if (whole.scalar_type() != part.scalar_type()) refuse_call(call, "output and input must have the same type");
  if (whole.numel() != part.numel() * static_cast<std::int64_t>(members)) {
    refuse_call(call, "the larger tensor must have " + std::to_string(members) + " times the elements of the other, " +
                          std::to_string(part.numel()) + "; it has " + std::to_string(whole.numel()));
  }
}

/// Of each pair, the first is as large as one part of the second for every member.
void check_pairs(const char* call, const std::vector<at::Tensor>& wholes, const std::vector<at::Tensor>& parts,
                 std::size_t members) {
  if (wholes.empty()) refuse_call(call, "requires non-empty tensor lists");
  if (wholes.size() != parts.size()) refuse_call(call, "requires input/output tensor lists to have the same length");
  check_tensors(call, wholes);
  for (std::size_t i = 0; i < wholes.size(); ++i) check_whole(call, wholes[i], parts[i], members);
}

/// Parts of a tensor along its first dimension.
std::vector<at::Tensor> split_rows(const char* call, const at::Tensor& tensor, const std::vector<std::int64_t>& rows,
                                   std::size_t members) {
  if (rows.empty()) {
    if (tensor.dim() == 0 || tensor.size(0) % static_cast<std::int64_t>(members) != 0) {
      refuse_call(call, "Tensor's dim 0 does not divide equally across group size");
    }
    return tensor.chunk(static_cast<std::int64_t>(members));
  }
  std::int64_t sum = 0;
  for (const std::int64_t count : rows) sum += count;
  if (rows.size() != members || tensor.dim() == 0 || sum != tensor.size(0)) {
    refuse_call(call, "Split sizes doesn't match total dim 0 size");
  }
  return tensor.split_with_sizes(rows);
}

/// Their elements in a row, without a copy where they lie so.
at::Tensor joined(const std::vector<at::Tensor>& parts) {
  if (const at::Tensor row = side_by_side(parts); row.defined()) return row;
  std::vector<at::Tensor> flat;
  for (const at::Tensor& part : parts) flat.push_back(part.reshape({-1}));
  return at::cat(flat);
}

}  // namespace

ProcessGroupEspalier::Work ProcessGroupEspalier::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  if (tensors.empty()) refuse_call("broadcast", "requires non-empty tensor list");
  check_alike("broadcast", tensors, tensors.front());
  const std::uint32_t root = checked_root("broadcast", options.rootRank);
  if (options.rootTensor < 0 || options.rootTensor >= static_cast<std::int64_t>(tensors.size())) {
    refuse_call("broadcast", "invalid root tensor: " + std::to_string(options.rootTensor));
  }
  return start({c10d::OpType::BROADCAST, "espalier:broadcast", options.timeout}, tensors, {tensors, {}},
               stage_of(tensors),
               [this, given = tensors, root, first = static_cast<std::size_t>(options.rootTensor)](DeviceStage& stage) {
                 const Tensors tensors = stage.updates(given);
                 const at::Tensor& tensor = tensors[first];
                 const at::Tensor values = dense(tensor);
                 move_now(EngineCollective::broadcast, values, values, values.scalar_type(), values.nbytes(), root);
                 if (!values.is_same(tensor)) tensor.copy_(values);
                 for (const at::Tensor& other : tensors) {
                   if (!other.is_same(tensor)) other.copy_(tensor);
                 }
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  constexpr const char* call = "allreduce";
  if (tensors.empty()) refuse_call(call, "requires non-empty tensor list");
  const Kind kind{c10d::OpType::ALLREDUCE, "espalier:all_reduce", options.timeout};
  const c10d::ReduceOp operation = options.reduceOp;
  if (tensors.size() == 1 && tensors.front().is_sparse()) {
    if (operation != c10d::ReduceOp::SUM) refuse_call(call, "sparse tensors can only be summed");
    if (!tensors.front().device().is_cpu()) refuse_call(call, "requires sparse tensors to be on the CPU");
    return start(kind, tensors, {tensors, {}}, stage_of(tensors),
                 [this, tensor = tensors.front()](DeviceStage&) { add_sparse_now(tensor); });
  }
  check_alike(call, tensors, tensors.front());
  if (tensors.size() > 1 && (operation == c10d::ReduceOp::AVG || is_premul_sum(operation))) {
    refuse_call(call, "averages and pre-multiplied sums take one tensor");
  }
  check_operation(call, tensors.front(), operation);
  return start(kind, tensors, {tensors, {}}, stage_of(tensors), [this, given = tensors, operation](DeviceStage& stage) {
    const Tensors tensors = stage.updates(given);
    at::Tensor first = tensors.front();
    for (std::size_t i = 1; i < tensors.size(); ++i) combine(first, tensors[i], operation);
    all_reduce_now(call, first, operation);
    for (std::size_t i = 1; i < tensors.size(); ++i) tensors[i].copy_(first);
  });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::allreduce_coalesced(Tensors& tensors,
                                                                     const c10d::AllreduceCoalescedOptions& options) {
  constexpr const char* call = "allreduce_coalesced";
  if (tensors.empty()) refuse_call(call, "requires non-empty tensor list");
  check_tensors(call, tensors);
  for (const at::Tensor& tensor : tensors) {
    if (tensor.scalar_type() != tensors.front().scalar_type()) refuse_call(call, "tensors must all have the same type");
  }
  const c10d::ReduceOp operation = options.reduceOp;
  check_operation(call, tensors.front(), operation);
  return start({c10d::OpType::ALLREDUCE_COALESCED, "espalier:all_reduce", options.timeout}, tensors, {tensors, {}},
               stage_of(tensors), [this, given = tensors, operation](DeviceStage& stage) {
                 const Tensors tensors = stage.updates(given);
                 const auto count = static_cast<std::int64_t>(bytes_of(tensors)) / tensors.front().element_size();
                 const at::Tensor together = at::empty({count}, tensors.front().options());
                 pack(tensors, bytes_in(together));
                 all_reduce_now(call, together, operation);
                 unpack(bytes_in(together), tensors);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  constexpr const char* call = "reduce";
  require_one(call, "tensor", tensors.size());
  check_tensors(call, tensors);
  const std::uint32_t root = checked_root(call, options.rootRank);
  const c10d::ReduceOp operation = options.reduceOp;
  check_operation(call, tensors.front(), operation);
  return start({c10d::OpType::REDUCE, "espalier:reduce", options.timeout}, tensors, {tensors, {}}, stage_of(tensors),
               [this, tensor = tensors.front(), operation, root](DeviceStage& stage) {
                 reduce_now(stage.updates(tensor), operation, root);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::allgather(Lists& outputs, Tensors& inputs,
                                                           const c10d::AllgatherOptions& options) {
  constexpr const char* call = "allgather";
  if (inputs.empty()) refuse_call(call, "requires non-empty input tensor list");
  if (outputs.size() != inputs.size()) refuse_call(call, "requires input/output tensor lists to have the same length");
  check_alike(call, inputs, inputs.front());
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const std::size_t expected = members() * inputs.size();
    if (outputs[i].size() != expected) {
      refuse_call(call, "invalid output tensor list at index " + std::to_string(i) + " (expected length " +
                            std::to_string(expected) + ", got " + std::to_string(outputs[i].size()) + ")");
    }
    check_alike(call, outputs[i], inputs.front());
  }
  Outputs given{outputs.front(), outputs.size() > 1 ? outputs : Lists{}};
  return start({c10d::OpType::ALLGATHER, "espalier:all_gather", options.timeout}, inputs, std::move(given),
               stage_of(inputs), [this, outputs, inputs](DeviceStage& stage) {
                 const Tensors first = stage.writes(outputs.front());
                 gather_now(EngineCollective::all_gather, first, stage.reads(inputs), 0);
                 for (std::size_t list = 1; list < outputs.size(); ++list) {
                   const Tensors others = stage.writes(outputs[list]);
                   for (std::size_t i = 0; i < others.size(); ++i) others[i].copy_(first[i]);
                 }
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::_allgather_base(at::Tensor& output, at::Tensor& input,
                                                                 const c10d::AllgatherOptions& options) {
  check_whole("_allgather_base", output, input, members());
  return start({c10d::OpType::_ALLGATHER_BASE, "espalier:_all_gather_base", options.timeout}, {input}, {{output}, {}},
               stage_of({input}), [this, output, input](DeviceStage& stage) {
                 gather_now(EngineCollective::all_gather, {stage.writes(output)}, {stage.reads(input)}, 0);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::allgather_coalesced(Lists& outputs, Tensors& inputs,
                                                                     const c10d::AllgatherOptions& options) {
  constexpr const char* call = "allgather_coalesced";
  if (inputs.empty()) refuse_call(call, "requires non-empty input tensor list");
  if (outputs.size() != members()) refuse_call(call, "output lists should be equal to world size");
  check_tensors(call, inputs);
  Tensors all;  // By rank, and of each the tensors in their order: as the bytes come.
  for (const Tensors& list : outputs) {
    if (list.size() != inputs.size())
      refuse_call(call, "invalid output size: expected " + std::to_string(inputs.size()));
    for (std::size_t i = 0; i < list.size(); ++i) check_alike(call, {list[i]}, inputs[i]);
    all.insert(all.end(), list.begin(), list.end());
  }
  return start({c10d::OpType::ALLGATHER_COALESCED, "espalier:all_gather", options.timeout}, inputs,
               {outputs.front(), outputs}, stage_of(inputs), [this, all, inputs](DeviceStage& stage) {
                 gather_now(EngineCollective::all_gather, stage.writes(all), stage.reads(inputs), 0);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::allgather_into_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::AllgatherOptions& options) {
  constexpr const char* call = "allgather_into_tensor_coalesced";
  check_pairs(call, outputs, inputs, members());
  return start({coalesced_all_gather, "espalier:all_gather", options.timeout}, inputs, {outputs, {}}, stage_of(inputs),
               [this, outputs, inputs](DeviceStage& stage) {
                 const Tensors written = stage.writes(outputs);
                 const Tensors read = stage.reads(inputs);
                 for (std::size_t i = 0; i < read.size(); ++i) {
                   gather_now(EngineCollective::all_gather, {written[i]}, {read[i]}, 0);
                 }
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::gather(Lists& outputs, Tensors& inputs,
                                                        const c10d::GatherOptions& options) {
  constexpr const char* call = "gather";
  const std::uint32_t root = checked_root(call, options.rootRank);
  require_one(call, "input tensor", inputs.size());
  check_tensors(call, inputs);
  const bool is_root = getRank() == static_cast<int>(root);
  if (is_root) {
    require_one(call, "output", outputs.size());
    check_parts(call, "output", outputs.front(), members(), inputs.front());
  } else if (!outputs.empty()) {
    refuse_call(call, "requires empty output on non-root");
  }
  const Tensors parts = is_root ? outputs.front() : Tensors{};
  return start({c10d::OpType::GATHER, "espalier:gather", options.timeout}, inputs, {parts, {}}, stage_of(inputs),
               [this, parts, inputs, root](DeviceStage& stage) {
                 gather_now(EngineCollective::gather, stage.writes(parts), stage.reads(inputs), root);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::scatter(Tensors& outputs, Lists& inputs,
                                                         const c10d::ScatterOptions& options) {
  constexpr const char* call = "scatter";
  const std::uint32_t root = checked_root(call, options.rootRank);
  require_one(call, "output tensor", outputs.size());
  check_tensors(call, outputs);
  const bool is_root = getRank() == static_cast<int>(root);
  if (is_root) {
    require_one(call, "input", inputs.size());
    check_parts(call, "input", inputs.front(), members(), outputs.front());
  } else if (!inputs.empty()) {
    refuse_call(call, "requires empty input on non-root");
  }
  const Tensors parts = is_root ? inputs.front() : Tensors{};
  return start({c10d::OpType::SCATTER, "espalier:scatter", options.timeout}, parts, {outputs, {}}, stage_of(outputs),
               [this, parts, output = outputs.front(), root](DeviceStage& stage) {
                 scatter_now(stage.writes(output), stage.reads(parts), root);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::reduce_scatter(Tensors& outputs, Lists& inputs,
                                                                const c10d::ReduceScatterOptions& options) {
  constexpr const char* call = "reduce_scatter";
  require_one(call, "output tensor", outputs.size());
  require_one(call, "input", inputs.size());
  check_tensors(call, outputs);
  check_parts(call, "input", inputs.front(), members(), outputs.front());
  const c10d::ReduceOp operation = options.reduceOp;
  check_operation(call, outputs.front(), operation);
  return start({c10d::OpType::REDUCE_SCATTER, "espalier:reduce_scatter", options.timeout}, inputs.front(),
               {outputs, {}}, stage_of(outputs),
               [this, output = outputs.front(), parts = inputs.front(), operation](DeviceStage& stage) {
                 reduce_scatter_now(call, stage.writes(output), joined(stage.reads(parts)), operation);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                                                      const c10d::ReduceScatterOptions& options) {
  constexpr const char* call = "_reduce_scatter_base";
  check_whole(call, input, output, members());
  const c10d::ReduceOp operation = options.reduceOp;
  check_operation(call, output, operation);
  return start({c10d::OpType::_REDUCE_SCATTER_BASE, "espalier:_reduce_scatter_base", options.timeout}, {input},
               {{output}, {}}, stage_of({output}), [this, output, input, operation](DeviceStage& stage) {
                 reduce_scatter_now(call, stage.writes(output), dense(stage.reads(input)).view({-1}), operation);
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::reduce_scatter_tensor_coalesced(
    Tensors& outputs, Tensors& inputs, const c10d::ReduceScatterOptions& options) {
  constexpr const char* call = "reduce_scatter_tensor_coalesced";
  check_pairs(call, inputs, outputs, members());
  const c10d::ReduceOp operation = options.reduceOp;
  for (const at::Tensor& output : outputs) check_operation(call, output, operation);
  return start({coalesced_reduce_scatter, "espalier:reduce_scatter", options.timeout}, inputs, {outputs, {}},
               stage_of(outputs), [this, outputs, inputs, operation](DeviceStage& stage) {
                 const Tensors written = stage.writes(outputs);
                 const Tensors read = stage.reads(inputs);
                 for (std::size_t i = 0; i < read.size(); ++i) {
                   reduce_scatter_now(call, written[i], dense(read[i]).view({-1}), operation);
                 }
               });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::alltoall_base(at::Tensor& output, at::Tensor& input,
                                                               std::vector<std::int64_t>& output_splits,
                                                               std::vector<std::int64_t>& input_splits,
                                                               const c10d::AllToAllOptions& options) {
  constexpr const char* call = "alltoall_base";
  check_tensors(call, {output, input});
  if (output.scalar_type() != input.scalar_type()) refuse_call(call, "tensors are not equal in data type");
  const Kind kind{c10d::OpType::ALLTOALL_BASE, "espalier:all_to_all", options.timeout};
  const Tensors outputs = split_rows(call, output, output_splits, members());
  const Tensors inputs = split_rows(call, input, input_splits, members());
  if (!output_splits.empty() || !input_splits.empty()) {
    return start(kind, {input}, {{output}, {}}, stage_of({output}), [this, outputs, inputs](DeviceStage& stage) {
      exchange_now(stage.writes(outputs), stage.reads(inputs));
    });
  }
  if (output.numel() != input.numel()) refuse_call(call, "tensors are not equal in size");
  return start(kind, {input}, {{output}, {}}, stage_of({output}), [this, output, input](DeviceStage& stage) {
    const at::Tensor received = stage.writes(output);
    const at::Tensor values = dense(stage.reads(input));
    const at::Tensor into = is_dense(received) ? received : at::empty(received.sizes(), received.options());
    move_now(EngineCollective::all_to_all, values, into, values.scalar_type(), values.nbytes() / members());
    if (!into.is_same(received)) received.copy_(into);
  });
}

ProcessGroupEspalier::Work ProcessGroupEspalier::alltoall(Tensors& outputs, Tensors& inputs,
                                                          const c10d::AllToAllOptions& options) {
  constexpr const char* call = "alltoall";
  if (inputs.size() != members() || outputs.size() != members()) {
    refuse_call(call, "requires a tensor for each of the " + std::to_string(members()) + " ranks in both lists");
  }
  check_tensors(call, inputs);
  check_tensors(call, outputs);
  check_tensors(call, {inputs.front(), outputs.front()});  // All on one device.
  return start(
      {c10d::OpType::ALLTOALL, "espalier:all_to_all", options.timeout}, inputs, {outputs, {}}, stage_of(inputs),
      [this, outputs, inputs](DeviceStage& stage) { exchange_now(stage.writes(outputs), stage.reads(inputs)); });
}

}  // namespace espalier::python
