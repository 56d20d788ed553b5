#pragma once

// Tested by: python/tests/torch_backend.py

#include <c10/core/Event.h>
#include <c10/core/Stream.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "python/torch/c10d_versions.h"

namespace espalier::python {

/// Where the tensors of one call lie for whoever carries it out: those of the CPU where they are; those of a device
/// there, too, where the engine works on the device (DeviceCommunicator), else on a stand-in in host memory (pinned for
/// CUDA), which is copied from the tensor before the call and to it afterwards.
///
/// Copies, and what PyTorch computes meanwhile, run on a stream of PyTorch's pool, behind what the device's current
/// stream was given before the call was made; `run` returns when all is done, so whoever waits for the call has its
/// result on every stream.
///
/// It knows devices only by what PyTorch has for all of them (c10::impl::DeviceGuardImplInterface). Made by the thread
/// that makes the call, and from then on used by the one that carries it out.
class DeviceStage {
 public:
  explicit DeviceStage(c10::Device device);
  DeviceStage(const DeviceStage&) = delete;
  DeviceStage& operator=(const DeviceStage&) = delete;

  [[nodiscard]] c10::Device device() const { return device_; }
  /// From now on tensors are worked on where they lie.
  void stay_on_device() { stays_ = true; }

  /// The call between the work that it waits for and the end of all copies. What fails throws, and nothing is copied
  /// back then.
  void run(const std::function<void()>& call);
  /// Ends when the device has done what the call gave it: others than PyTorch touch the memory next.
  void settle();

  /// Where a tensor lies that the call reads, writes, or both. Requires: the tensor is on the device.
  at::Tensor reads(const at::Tensor& tensor) { return reads(std::vector{tensor}).front(); }
  at::Tensor writes(const at::Tensor& tensor) { return writes(std::vector{tensor}).front(); }
  at::Tensor updates(const at::Tensor& tensor) { return updates(std::vector{tensor}).front(); }
  std::vector<at::Tensor> reads(const std::vector<at::Tensor>& tensors);
  std::vector<at::Tensor> writes(const std::vector<at::Tensor>& tensors);
  std::vector<at::Tensor> updates(const std::vector<at::Tensor>& tensors);
  /// What `run` does at its end, for who has no `run`.
  void copy_out();

 private:
  struct Pair {
    at::Tensor tensor;
    at::Tensor stand_in;
  };

  [[nodiscard]] bool is_in_place() const { return !stream_ || stays_; }
  std::vector<Pair> stand_ins_for(const std::vector<at::Tensor>& tensors) const;
  void copy(const std::vector<Pair>& pairs, bool is_in);

  c10::Device device_;
  bool stays_ = false;
  std::optional<c10::Stream> stream_;  ///< Of the copies. None: the CPU.
  std::optional<c10::Event> begin_;    ///< Behind what the current stream was given before the call.
  std::vector<Pair> written_;
};

/// A tensor of a message and its stage.
struct StagedTensor {
  at::Tensor tensor;
  std::shared_ptr<DeviceStage> stage;
};

}  // namespace espalier::python
