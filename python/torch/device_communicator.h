#pragma once

// Tested by: python/tests/torch_backend.py

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "python/torch/device_stage.h"
#include "python/torch/engine_job.h"

namespace espalier::python {

/// Who works on tensors of devices: the engine on the GPU where it can and the tensors are of CUDA; the engine,
/// whatever PyTorch calls the device whose memory a GPU's is; the host.
enum class DeviceTensors : std::uint8_t { automatic, engine, host };

/// "auto", "engine" or "host". Throws std::runtime_error for others.
DeviceTensors parse_device_tensors(const std::string& name);
std::string to_string(DeviceTensors who);
/// Whether the engine is to work on tensors of this device, if it can.
bool wants_engine(DeviceTensors who, c10::Device device);

/// The GPU of a tensor's device as the engine's. Throws std::runtime_error where the engine cannot work on it.
Owned<EngineGpu> open_gpu(Engine& engine, c10::Device device);

/// Calls on the memory of GPUs, each rank's on one of its own: a job whose ranks work there.
///
/// The engine reaches memory that it made, and PyTorch hands out parts of larger memories. So a call works on staging
/// buffers, memory of the engine's that is kept from call to call; tensors are copied there and back on the GPU, in the
/// stream of the call's stage. Used by one thread.
class DeviceCommunicator {
 public:
  DeviceCommunicator(std::shared_ptr<EngineJob> ranks, c10::Device device)
      : ranks_(std::move(ranks)), device_(device) {}
  DeviceCommunicator(const DeviceCommunicator&) = delete;
  DeviceCommunicator& operator=(const DeviceCommunicator&) = delete;
  ~DeviceCommunicator();

  [[nodiscard]] c10::Device device() const { return device_; }
  [[nodiscard]] EngineJob& ranks() const { return *ranks_; }

  // All throw std::runtime_error where the engine fails.
  /// A collective on dense tensors of the device, undefined where the rank has none; its `send` and `receive` are set
  /// here.
  void run(EngineCall call, const at::Tensor& send, const at::Tensor& receive, DeviceStage& stage);
  /// Sends and receives a dense tensor for every rank but this one, by direct messages.
  void exchange(const std::vector<at::Tensor>& received, const std::vector<at::Tensor>& sent, DeviceStage& stage);
  /// A message of a dense tensor.
  void send(const at::Tensor& tensor, std::uint32_t peer, DeviceStage& stage);
  /// A message of so many bytes, as a tensor of the device that is good until the next call.
  at::Tensor receive(std::size_t bytes, std::uint32_t peer);

 private:
  struct StagingBuffer {
    void* data = nullptr;
    std::size_t bytes = 0;
  };

  void reserve(StagingBuffer& buffer, std::size_t bytes);
  /// So many bytes of a buffer as a tensor.
  [[nodiscard]] at::Tensor part_of(const StagingBuffer& buffer, std::size_t begin, std::size_t bytes) const;

  std::shared_ptr<EngineJob> ranks_;
  c10::Device device_;
  StagingBuffer sent_;
  StagingBuffer received_;
};

}  // namespace espalier::python
