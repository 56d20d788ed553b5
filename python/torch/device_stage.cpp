#include "python/torch/device_stage.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace espalier::python {
namespace {

template <typename Pairs>
std::vector<at::Tensor> stand_ins_of(const Pairs& pairs) {
  std::vector<at::Tensor> tensors;
  std::ranges::transform(pairs, std::back_inserter(tensors), [](const auto& pair) { return pair.stand_in; });
  return tensors;
}

}  // namespace

DeviceStage::DeviceStage(c10::Device device) : device_(device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  begin_.emplace(device.type());
  begin_->record(guard.getStream(device));
  stream_ = guard.getStreamFromGlobalPool(device);
}

void DeviceStage::run(const std::function<void()>& call) {
  if (!stream_) {
    call();
    return;
  }
  const c10::StreamGuard guard(*stream_);
  begin_->block(*stream_);
  call();
  copy_out();
  settle();
}

void DeviceStage::settle() {
  if (stream_) stream_->synchronize();
}

std::vector<DeviceStage::Pair> DeviceStage::stand_ins_for(const std::vector<at::Tensor>& tensors) const {
  std::vector<Pair> pairs;
  for (const at::Tensor& tensor : tensors) {
    const auto options = at::device(at::kCPU).dtype(tensor.dtype()).pinned_memory(device_.is_cuda());
    pairs.push_back({tensor, at::empty(tensor.sizes(), options)});
  }
  return pairs;
}

std::vector<at::Tensor> DeviceStage::reads(const std::vector<at::Tensor>& tensors) {
  if (is_in_place()) return tensors;
  const std::vector<Pair> pairs = stand_ins_for(tensors);
  copy(pairs, true);
  return stand_ins_of(pairs);
}

std::vector<at::Tensor> DeviceStage::writes(const std::vector<at::Tensor>& tensors) {
  if (is_in_place()) return tensors;
  const std::vector<Pair> pairs = stand_ins_for(tensors);
  written_.insert(written_.end(), pairs.begin(), pairs.end());
  return stand_ins_of(pairs);
}

std::vector<at::Tensor> DeviceStage::updates(const std::vector<at::Tensor>& tensors) {
  if (is_in_place()) return tensors;
  const std::vector<Pair> pairs = stand_ins_for(tensors);
  copy(pairs, true);
  written_.insert(written_.end(), pairs.begin(), pairs.end());
  return stand_ins_of(pairs);
}

/// Ends when the copies are done: the engine reads the stand-ins next, or somebody the tensors, on whatever stream.
void DeviceStage::copy(const std::vector<Pair>& pairs, bool is_in) {
  if (!stream_ || pairs.empty()) return;
  const c10::StreamGuard guard(*stream_);
  begin_->block(*stream_);
  for (const auto& [tensor, stand_in] : pairs) {
    const at::Tensor& to = is_in ? stand_in : tensor;
    to.copy_(is_in ? tensor : stand_in, true);
  }
  settle();
}

void DeviceStage::copy_out() { copy(written_, false); }

}  // namespace espalier::python
