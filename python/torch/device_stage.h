#pragma once

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "python/torch/c10d_versions.h"

namespace espalier::python {

/// Where the engine works for the tensors of one call: on a tensor of the CPU where it lies; for one of a device, on a
/// stand-in in host memory (pinned for CUDA), which is copied from the tensor before the call and to it afterwards.
///
/// The copies run on a stream of PyTorch's pool, behind what the device's current stream was given before the call was
/// made; `run` returns when they are done, so whoever waits for the call has its result on every stream.
///
/// It knows devices only by what PyTorch has for all of them (c10::impl::DeviceGuardImplInterface). Made by the thread
/// that makes the call, used by the one that carries it out.
class DeviceStage {
 public:
  explicit DeviceStage(c10::Device device);
  DeviceStage(const DeviceStage&) = delete;
  DeviceStage& operator=(const DeviceStage&) = delete;

  /// What the call works on instead of a tensor that it reads, writes, or both. Requires: the tensor is on the device.
  at::Tensor reads(const at::Tensor& tensor);
  at::Tensor writes(const at::Tensor& tensor);
  at::Tensor updates(const at::Tensor& tensor);
  std::vector<at::Tensor> reads(const std::vector<at::Tensor>& tensors);
  std::vector<at::Tensor> writes(const std::vector<at::Tensor>& tensors);
  std::vector<at::Tensor> updates(const std::vector<at::Tensor>& tensors);

  void copy_in();
  void copy_out();
  /// The call between both; what fails throws, and nothing is copied back then.
  void run(const std::function<void()>& call);

 private:
  struct Pair {
    at::Tensor tensor;
    at::Tensor stand_in;
  };

  at::Tensor stand_in_for(const at::Tensor& tensor);
  void copy(const std::vector<Pair>& pairs, bool is_in);

  c10::Device device_;
  std::optional<c10::Stream> stream_;  ///< Of the copies. None: the CPU.
  std::optional<c10::Event> begin_;    ///< Behind what the current stream was given before the call.
  std::vector<Pair> read_;
  std::vector<Pair> written_;
};

/// A tensor of a message and its stage.
struct StagedTensor {
  at::Tensor tensor;  ///< What the engine works on.
  std::shared_ptr<DeviceStage> stage;
};

}  // namespace espalier::python
