#include <ATen/ATen.h>

#include <algorithm>
#include <stdexcept>

#include "python/torch/process_group.h"

// How the group's thread carries calls out: which memory the engine works on.

namespace espalier::python {

void ProcessGroupEspalier::move_now(EngineCollective kind, const at::Tensor& send, const at::Tensor& receive,
                                    at::ScalarType type, std::size_t part_bytes, std::uint32_t root) {
  const auto element = element_of(type);
  const std::size_t bytes = part_bytes * (kind == EngineCollective::broadcast ? 1 : members());
  EngineCall call;
  call.collective = kind;
  call.count = bytes / (element ? c10::elementSize(type) : 1);
  call.element = element.value_or(EngineElement::uint8);
  call.root = root;
  if (part_bytes > 0) run(call, send, receive);
}

void ProcessGroupEspalier::gather_now(EngineCollective kind, const Tensors& outputs, const Tensors& inputs,
                                      std::uint32_t root) {
  const std::size_t bytes = bytes_of(inputs);
  if (bytes == 0) return;
  at::Tensor send = inputs.front();
  const at::ScalarType first = send.scalar_type();
  const bool are_alike = std::ranges::all_of(inputs, [&](const at::Tensor& one) { return one.scalar_type() == first; });
  const at::ScalarType type = are_alike ? first : at::kByte;
  if (inputs.size() > 1 || !is_dense(send)) {
    send = at::empty({static_cast<std::int64_t>(bytes)}, send.options().dtype(at::kByte));
    pack(inputs, send);
  }
  if (outputs.empty()) {  // Of a gather, on others than its root.
    move_now(kind, send, {}, type, bytes, root);
  } else if (const at::Tensor row = side_by_side(outputs); row.defined()) {
    move_now(kind, send, row, type, bytes, root);
  } else {
    const at::Tensor all = scratch(bytes * members(), send);
    move_now(kind, send, all, type, bytes, root);
    unpack(all, outputs);
  }
}

void ProcessGroupEspalier::scatter_now(const at::Tensor& output, const Tensors& parts, std::uint32_t root) {
  at::Tensor send;
  if (!parts.empty()) {
    send = side_by_side(parts);
    if (!send.defined()) {
      send = scratch(bytes_of(parts), output);
      pack(parts, send);
    }
  }
  const at::Tensor into = is_dense(output) ? output : at::empty(output.sizes(), output.options());
  move_now(EngineCollective::scatter, send, into, output.scalar_type(), output.nbytes(), root);
  if (!into.is_same(output)) output.copy_(into);
}

void ProcessGroupEspalier::all_reduce_now(const char* call, const at::Tensor& tensor, const c10d::ReduceOp& operation) {
  if (tensor.numel() == 0) return;
  if (is_bitwise(tensor, operation)) {
    const at::Tensor own = dense(tensor);
    const at::Tensor all = at::empty({getSize(), own.numel()}, own.options());
    move_now(EngineCollective::all_gather, own, all, own.scalar_type(), own.nbytes());
    tensor.copy_(combine_rows(all, operation).view(tensor.sizes()));
    return;
  }
  const Numbers numbers = Numbers::of(call, tensor, operation);
  if (shared_ && tensor.is_cpu() && numbers.values.is_alias_of(tensor)) shared_->note(tensor);
  run({EngineCollective::all_reduce, nullptr, nullptr, static_cast<std::size_t>(numbers.values.numel()), numbers.type,
       numbers.operation},
      numbers.values, numbers.values);
  numbers.write_back(tensor);
}

void ProcessGroupEspalier::reduce_now(const at::Tensor& tensor, const c10d::ReduceOp& operation, std::uint32_t root) {
  if (tensor.numel() == 0) return;
  const bool is_root = getRank() == static_cast<int>(root);
  if (is_bitwise(tensor, operation)) {
    const at::Tensor own = dense(tensor);
    const at::Tensor all = is_root ? at::empty({getSize(), own.numel()}, own.options()) : at::Tensor();
    move_now(EngineCollective::gather, own, all, own.scalar_type(), own.nbytes(), root);
    if (is_root) tensor.copy_(combine_rows(all, operation).view(tensor.sizes()));
    return;
  }
  const Numbers numbers = Numbers::of("reduce", tensor, operation);
  run({EngineCollective::reduce, nullptr, nullptr, static_cast<std::size_t>(numbers.values.numel()), numbers.type,
       numbers.operation, root},
      numbers.values, is_root ? numbers.values : at::Tensor());
  if (is_root) numbers.write_back(tensor);
}

void ProcessGroupEspalier::reduce_scatter_now(const char* call, const at::Tensor& output, const at::Tensor& flat,
                                              const c10d::ReduceOp& operation) {
  if (output.numel() == 0) return;
  if (is_bitwise(output, operation)) {
    const at::Tensor all = at::empty({getSize(), output.numel()}, output.options());
    move_now(EngineCollective::all_to_all, flat, all, output.scalar_type(), output.nbytes());
    output.copy_(combine_rows(all, operation).view(output.sizes()));
    return;
  }
  const Numbers numbers = Numbers::of(call, flat, operation);
  Numbers result = numbers;
  if (is_dense(output) && numbers.values.scalar_type() == output.scalar_type()) {
    result.values = output;
  } else {
    std::vector<std::int64_t> sizes = numbers.values.sizes().vec();
    sizes.front() /= getSize();
    result.values = at::empty(sizes, numbers.values.options());
  }
  run({EngineCollective::reduce_scatter, nullptr, nullptr, static_cast<std::size_t>(numbers.values.numel()),
       numbers.type, numbers.operation},
      numbers.values, result.values);
  result.write_back(output);
}

void ProcessGroupEspalier::exchange_now(const Tensors& outputs, const Tensors& inputs) {
  const auto self = static_cast<std::size_t>(getRank());
  if (outputs[self].numel() != inputs[self].numel()) {
    throw std::runtime_error("all_to_all: what this rank sends to itself and what it receives differ in size");
  }
  Tensors sent;
  Tensors received;
  for (std::size_t peer = 0; peer < members(); ++peer) {
    sent.push_back(dense(inputs[peer]));
    received.push_back(is_dense(outputs[peer]) ? outputs[peer]
                                               : at::empty(outputs[peer].sizes(), outputs[peer].options()));
  }
  // Also who has nothing to send or to receive: ranks compare their counts.
  if (in_use_ != nullptr) {
    if (outputs[self].numel() > 0) received[self].copy_(sent[self].reshape(received[self].sizes()));
    in_use_->exchange(received, sent, *stage_);
  } else {
    PeerBytes out(members());
    PeerBytes in(members());
    for (std::size_t peer = 0; peer < members(); ++peer) {
      out.set(peer, sent[peer].data_ptr(), sent[peer].nbytes());
      in.set(peer, received[peer].data_ptr(), received[peer].nbytes());
    }
    exchange_bytes(jobs_->host(), out, in);
  }
  for (std::size_t peer = 0; peer < members(); ++peer) {
    if (!received[peer].is_same(outputs[peer])) outputs[peer].copy_(received[peer]);
  }
}

/// Every rank gets the entries of all, padded to the longest, and adds them up.
void ProcessGroupEspalier::add_sparse_now(const at::Tensor& tensor) {
  const at::Tensor own = tensor.coalesce();
  const std::int64_t entries = own._nnz();
  at::Tensor counts = at::empty({getSize()}, at::kLong);
  move_now(EngineCollective::all_gather, at::full({1}, entries, at::kLong), counts, at::kLong, sizeof(std::int64_t));
  const std::int64_t most = counts.max().item<std::int64_t>();
  const auto gathered = [&](const at::Tensor& part) {  // Entries are its first dimension.
    std::vector<std::int64_t> sizes = part.sizes().vec();
    sizes.front() = most;
    const at::Tensor padded = at::zeros(sizes, part.options());
    padded.narrow(0, 0, entries).copy_(part);
    sizes.insert(sizes.begin(), getSize());
    at::Tensor all = at::empty(sizes, part.options());
    move_now(EngineCollective::all_gather, padded, all, padded.scalar_type(), padded.nbytes());
    Tensors kept;
    for (std::int64_t rank = 0; rank < getSize(); ++rank) {
      kept.push_back(all[rank].narrow(0, 0, counts[rank].item<std::int64_t>()));
    }
    return at::cat(kept);
  };
  const at::Tensor indices = gathered(own._indices().t().contiguous()).t();
  const at::Tensor values = gathered(own._values().contiguous());
  const at::Tensor sum = at::_sparse_coo_tensor_unsafe(indices, values, tensor.sizes(), tensor.options()).coalesce();
  tensor.copy_(sum);
}

}  // namespace espalier::python
