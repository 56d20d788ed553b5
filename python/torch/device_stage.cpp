#include "python/torch/device_stage.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

namespace espalier::python {
namespace {

template <typename Function>
std::vector<at::Tensor> of_each(const std::vector<at::Tensor>& tensors, const Function& function) {
  std::vector<at::Tensor> stand_ins;
  std::ranges::transform(tensors, std::back_inserter(stand_ins), function);
  return stand_ins;
}

}  // namespace

DeviceStage::DeviceStage(c10::Device device) : device_(device) {
  if (device.is_cpu()) return;
  const c10::impl::VirtualGuardImpl guard(device.type());
  begin_.emplace(device.type());
  begin_->record(guard.getStream(device));
  stream_ = guard.getStreamFromGlobalPool(device);
}

at::Tensor DeviceStage::stand_in_for(const at::Tensor& tensor) {
  return at::empty(tensor.sizes(), at::device(at::kCPU).dtype(tensor.dtype()).pinned_memory(device_.is_cuda()));
}

at::Tensor DeviceStage::reads(const at::Tensor& tensor) {
  if (!stream_) return tensor;
  read_.push_back({tensor, stand_in_for(tensor)});
  return read_.back().stand_in;
}

at::Tensor DeviceStage::writes(const at::Tensor& tensor) {
  if (!stream_) return tensor;
  written_.push_back({tensor, stand_in_for(tensor)});
  return written_.back().stand_in;
}

at::Tensor DeviceStage::updates(const at::Tensor& tensor) {
  if (!stream_) return tensor;
  written_.push_back({tensor, reads(tensor)});
  return written_.back().stand_in;
}

std::vector<at::Tensor> DeviceStage::reads(const std::vector<at::Tensor>& tensors) {
  return of_each(tensors, [this](const at::Tensor& tensor) { return reads(tensor); });
}

std::vector<at::Tensor> DeviceStage::writes(const std::vector<at::Tensor>& tensors) {
  return of_each(tensors, [this](const at::Tensor& tensor) { return writes(tensor); });
}

std::vector<at::Tensor> DeviceStage::updates(const std::vector<at::Tensor>& tensors) {
  return of_each(tensors, [this](const at::Tensor& tensor) { return updates(tensor); });
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
  stream_->synchronize();
}

void DeviceStage::copy_in() { copy(read_, true); }

void DeviceStage::copy_out() { copy(written_, false); }

void DeviceStage::run(const std::function<void()>& call) {
  copy_in();
  call();
  copy_out();
}

}  // namespace espalier::python
