#include "python/torch/call_record.h"

#include <ATen/ATen.h>

#include <tuple>

namespace espalier::python {
namespace {

[[maybe_unused]] const char* name_in_records(c10d::OpType type) {
  switch (type) {
    case c10d::OpType::BROADCAST: return "broadcast";
    case c10d::OpType::ALLREDUCE: return "allreduce";
    case c10d::OpType::ALLREDUCE_COALESCED: return "allreduce_coalesced";
    case c10d::OpType::REDUCE: return "reduce";
    case c10d::OpType::ALLGATHER:
    case c10d::OpType::ALLGATHER_COALESCED: return "all_gather";
    case c10d::OpType::_ALLGATHER_BASE: return "_allgather_base";
    case c10d::OpType::GATHER: return "gather";
    case c10d::OpType::SCATTER: return "scatter";
    case c10d::OpType::REDUCE_SCATTER: return "reduce_scatter";
    case c10d::OpType::_REDUCE_SCATTER_BASE: return "_reduce_scatter_base";
    case c10d::OpType::ALLTOALL: return "all_to_all";
    case c10d::OpType::ALLTOALL_BASE: return "all_to_allv";
    case c10d::OpType::SEND: return "send";
    case c10d::OpType::RECV:
    case c10d::OpType::RECVANYSOURCE: return "recv";
    case c10d::OpType::BARRIER: return "barrier";
    default: break;
  }
  if (type == coalesced_all_gather) return "allgather_into_tensor_coalesced";
  return type == coalesced_reduce_scatter ? "reduce_scatter_tensor_coalesced" : "unknown";
}

[[maybe_unused]] std::int64_t elements_of(const std::vector<at::Tensor>& tensors) {
  std::int64_t elements = 0;
  for (const at::Tensor& tensor : tensors) elements += tensor.numel();
  return elements;
}

}  // namespace

#if ESPALIER_RECORDS_CALLS

void record_call(const BackendBase& group, const CallRecord& call) {
  if (!at::hasCallbacks()) return;
  const std::vector<std::int64_t> no_splits;
  const auto& some = call.inputs.empty() ? call.outputs : call.inputs;
  const at::ScalarType type = some.empty() ? at::kByte : some.front().scalar_type();
  const int step = call.is_of_all_ranks ? 1 : 0;  // Between members; none where it is not known.
  RECORD_PARAM_COMMS_DATA(std::make_tuple(call.number, call.is_message),
                          std::make_tuple(group.getGroupUid(), group.getGroupDesc()), call.inputs, call.outputs,
                          call.rank, name_in_records(call.type), elements_of(call.inputs), elements_of(call.outputs),
                          type, no_splits, no_splits, step - 1, step, call.members);
}

#else

void record_call(const BackendBase&, const CallRecord&) {}

#endif

}  // namespace espalier::python
