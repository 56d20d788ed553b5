#include "python/torch/device_communicator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "python/torch/tensor_elements.h"

namespace espalier::python {
namespace {

/// Parts of a buffer begin where kernels read and write whole vectors.
constexpr std::size_t alignment = 256;

constexpr std::array<std::pair<const char*, DeviceTensors>, 3> names = {
    {{"auto", DeviceTensors::automatic}, {"engine", DeviceTensors::engine}, {"host", DeviceTensors::host}}};

std::size_t staged_size(const at::Tensor& tensor) { return (tensor.nbytes() + alignment - 1) / alignment * alignment; }

}  // namespace

DeviceTensors parse_device_tensors(const std::string& name) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  throw std::runtime_error("ESPALIER_DEVICE_TENSORS: '" + name + "' is none of auto, engine and host");
}

std::string to_string(DeviceTensors who) { return names.at(static_cast<std::size_t>(who)).first; }

bool wants_engine(DeviceTensors who, c10::Device device) {
  return who == DeviceTensors::engine ? !device.is_cpu() : who == DeviceTensors::automatic && device.is_cuda();
}

Owned<EngineGpu> open_gpu(Engine& engine, c10::Device device) {
  EngineGpu* gpu = nullptr;
  expect(engine.open_gpu(std::max<int>(0, device.index()), &gpu));
  return Owned<EngineGpu>(gpu);
}

DeviceCommunicator::~DeviceCommunicator() {
  for (const StagingBuffer& buffer : {sent_, received_}) ranks_->free(buffer.data);
}

void DeviceCommunicator::reserve(StagingBuffer& buffer, std::size_t bytes) {
  if (buffer.bytes >= bytes) return;
  ranks_->free(std::exchange(buffer, {}).data);
  const std::size_t rounded = std::bit_ceil(std::max(bytes, alignment));
  void* data = nullptr;
  expect(ranks_->allocate(rounded, &data));
  buffer = {data, rounded};
}

at::Tensor DeviceCommunicator::part_of(const StagingBuffer& buffer, std::size_t begin, std::size_t bytes) const {
  return row_of(static_cast<std::byte*>(buffer.data) + begin, static_cast<std::int64_t>(bytes),
                at::device(device_).dtype(at::kByte));
}

void DeviceCommunicator::run(EngineCall call, const at::Tensor& send, const at::Tensor& receive, DeviceStage& stage) {
  const bool is_in_place = send.defined() && receive.defined() && send.data_ptr() == receive.data_ptr();
  call.send = nullptr;
  call.receive = nullptr;
  if (receive.defined() && receive.nbytes() > 0) {
    reserve(received_, receive.nbytes());
    call.receive = received_.data;
  }
  if (send.defined() && send.nbytes() > 0) {
    StagingBuffer& buffer = is_in_place && receive.nbytes() >= send.nbytes() ? received_ : sent_;
    reserve(buffer, send.nbytes());
    call.send = buffer.data;
    part_of(buffer, 0, send.nbytes()).copy_(bytes_in(send), true);
  }
  stage.settle();
  expect(ranks_->run(call));
  if (call.receive != nullptr) bytes_in(receive).copy_(part_of(received_, 0, receive.nbytes()), true);
}

void DeviceCommunicator::send(const at::Tensor& tensor, std::uint32_t peer, DeviceStage& stage) {
  const std::size_t bytes = tensor.nbytes();
  reserve(sent_, bytes);
  part_of(sent_, 0, bytes).copy_(bytes_in(tensor), true);
  stage.settle();
  expect(ranks_->send(sent_.data, bytes, peer));
}

at::Tensor DeviceCommunicator::receive(std::size_t bytes, std::uint32_t peer) {
  reserve(received_, bytes);
  expect(ranks_->receive(received_.data, bytes, peer));
  return part_of(received_, 0, bytes);
}

void DeviceCommunicator::exchange(const std::vector<at::Tensor>& received, const std::vector<at::Tensor>& sent,
                                  DeviceStage& stage) {
  const auto staged_bytes = [](const std::vector<at::Tensor>& tensors) {
    std::size_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += staged_size(tensor);
    return bytes;
  };
  reserve(sent_, staged_bytes(sent));
  reserve(received_, staged_bytes(received));
  std::size_t begin = 0;
  for (const at::Tensor& tensor : sent) {
    if (tensor.nbytes() > 0) part_of(sent_, begin, tensor.nbytes()).copy_(bytes_in(tensor), true);
    begin += staged_size(tensor);
  }
  stage.settle();
  PeerBytes out(sent.size());
  PeerBytes in(received.size());
  std::size_t from = 0;
  std::size_t to = 0;
  for (std::uint32_t peer = 0; peer < ranks_->size(); ++peer) {
    if (peer != ranks_->rank()) {
      out.set(peer, static_cast<std::byte*>(sent_.data) + from, sent[peer].nbytes());
      in.set(peer, static_cast<std::byte*>(received_.data) + to, received[peer].nbytes());
    }
    from += staged_size(sent[peer]);
    to += staged_size(received[peer]);
  }
  exchange_bytes(*ranks_, out, in);
  begin = 0;
  for (std::size_t peer = 0; peer < received.size(); ++peer) {
    const std::size_t bytes = received[peer].nbytes();
    if (bytes > 0 && peer != ranks_->rank()) bytes_in(received[peer]).copy_(part_of(received_, begin, bytes), true);
    begin += staged_size(received[peer]);
  }
}

}  // namespace espalier::python
