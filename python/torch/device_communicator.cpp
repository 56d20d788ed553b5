#include "python/torch/device_communicator.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "engine/cuda/device/cuda_device.h"
#include "engine/cuda/kernels/embedded_kernels.h"
#include "python/torch/tensor_elements.h"

namespace espalier::python {
namespace {

/// Parts of a buffer begin where kernels read and write whole vectors.
constexpr std::size_t alignment = 256;

constexpr std::array<std::pair<const char*, DeviceTensors>, 3> names = {
    {{"auto", DeviceTensors::automatic}, {"engine", DeviceTensors::engine}, {"host", DeviceTensors::host}}};

std::size_t staged_size(const at::Tensor& tensor) { return (tensor.nbytes() + alignment - 1) / alignment * alignment; }

}  // namespace

Result<DeviceTensors> parse_device_tensors(const std::string& name) {
  for (const auto& [known, value] : names) {
    if (name == known) return value;
  }
  return fail(ErrorCode::invalid_input, "ESPALIER_DEVICE_TENSORS: '" + name + "' is none of auto, engine and host", "");
}

std::string to_string(DeviceTensors who) { return names.at(static_cast<std::size_t>(who)).first; }

bool wants_engine(DeviceTensors who, c10::Device device) {
  return who == DeviceTensors::engine ? !device.is_cpu() : who == DeviceTensors::automatic && device.is_cuda();
}

Result<std::unique_ptr<engine::Device>> open_gpu(c10::Device device) {
  const auto image = engine::cuda::embedded_kernels();
  if (image.empty()) {
    return fail(ErrorCode::unsupported,
                "this package was built without CUDA kernels (" + std::string(engine::cuda::why_no_kernels()) + ")",
                "build it where nvcc is found (docs/gpu.md)");
  }
  const auto driver = engine::cuda::Driver::load();
  if (!driver) return tl::unexpected(driver.error());
  auto opened = engine::cuda::CudaDevice::open(*driver, std::max<int>(0, device.index()), image);
  if (!opened) return tl::unexpected(opened.error());
  return std::unique_ptr<engine::Device>(std::move(*opened));
}

DeviceCommunicator::~DeviceCommunicator() {
  for (const StagingBuffer& buffer : {sent_, received_}) ranks_->free(buffer.data);
}

Result<void> DeviceCommunicator::reserve(StagingBuffer& buffer, std::size_t bytes) {
  if (buffer.bytes >= bytes) return {};
  ranks_->free(std::exchange(buffer, {}).data);
  const std::size_t rounded = std::bit_ceil(std::max(bytes, alignment));
  const auto data = ranks_->allocate(rounded, engine::MemorySpace::device);
  if (!data) return tl::unexpected(data.error());
  buffer = {*data, rounded};
  return {};
}

at::Tensor DeviceCommunicator::part_of(const StagingBuffer& buffer, std::size_t begin, std::size_t bytes) const {
  return row_of(static_cast<std::byte*>(buffer.data) + begin, static_cast<std::int64_t>(bytes),
                at::device(device_).dtype(at::kByte));
}

Result<void> DeviceCommunicator::run(CallArguments arguments, const at::Tensor& send, const at::Tensor& receive,
                                     DeviceStage& stage) {
  const bool is_in_place = send.defined() && receive.defined() && send.data_ptr() == receive.data_ptr();
  arguments.send = nullptr;
  arguments.receive = nullptr;
  if (receive.defined() && receive.nbytes() > 0) {
    if (auto reserved = reserve(received_, receive.nbytes()); !reserved) return reserved;
    arguments.receive = received_.data;
  }
  if (send.defined() && send.nbytes() > 0) {
    StagingBuffer& buffer = is_in_place && receive.nbytes() >= send.nbytes() ? received_ : sent_;
    if (auto reserved = reserve(buffer, send.nbytes()); !reserved) return reserved;
    arguments.send = buffer.data;
    part_of(buffer, 0, send.nbytes()).copy_(bytes_in(send), true);
  }
  stage.settle();
  if (auto ran = ranks_->run(arguments); !ran) return ran;
  if (arguments.receive != nullptr) bytes_in(receive).copy_(part_of(received_, 0, receive.nbytes()), true);
  return {};
}

Result<void> DeviceCommunicator::send(const at::Tensor& tensor, std::uint32_t peer, DeviceStage& stage) {
  const std::size_t bytes = tensor.nbytes();
  if (auto reserved = reserve(sent_, bytes); !reserved) return reserved;
  part_of(sent_, 0, bytes).copy_(bytes_in(tensor), true);
  stage.settle();
  return ranks_->send(sent_.data, bytes, ElementType::uint8, peer);
}

Result<at::Tensor> DeviceCommunicator::receive(std::size_t bytes, std::uint32_t peer) {
  if (auto reserved = reserve(received_, bytes); !reserved) return tl::unexpected(reserved.error());
  if (auto came = ranks_->receive(received_.data, bytes, ElementType::uint8, peer); !came) {
    return tl::unexpected(came.error());
  }
  return part_of(received_, 0, bytes);
}

Result<void> DeviceCommunicator::exchange(const std::vector<at::Tensor>& received, const std::vector<at::Tensor>& sent,
                                          DeviceStage& stage) {
  const auto staged_bytes = [](const std::vector<at::Tensor>& tensors) {
    std::size_t bytes = 0;
    for (const at::Tensor& tensor : tensors) bytes += staged_size(tensor);
    return bytes;
  };
  if (auto reserved = reserve(sent_, staged_bytes(sent)); !reserved) return reserved;
  if (auto reserved = reserve(received_, staged_bytes(received)); !reserved) return reserved;
  std::size_t begin = 0;
  for (const at::Tensor& tensor : sent) {
    if (tensor.nbytes() > 0) part_of(sent_, begin, tensor.nbytes()).copy_(bytes_in(tensor), true);
    begin += staged_size(tensor);
  }
  stage.settle();
  ranks_->group_begin();
  std::size_t from = 0;
  std::size_t to = 0;
  for (std::uint32_t peer = 0; peer < ranks_->size(); ++peer) {
    const std::size_t out = sent[peer].nbytes();
    const std::size_t in = received[peer].nbytes();
    const bool is_self = peer == ranks_->rank();
    const auto place = [](const StagingBuffer& buffer, std::size_t at) {
      return static_cast<std::byte*>(buffer.data) + at;
    };
    if (out > 0 && !is_self) {
      if (auto noted = ranks_->send(place(sent_, from), out, ElementType::uint8, peer); !noted) return noted;
    }
    if (in > 0 && !is_self) {
      if (auto noted = ranks_->receive(place(received_, to), in, ElementType::uint8, peer); !noted) return noted;
    }
    from += staged_size(sent[peer]);
    to += staged_size(received[peer]);
  }
  if (auto ended = ranks_->group_end(); !ended) return ended;
  begin = 0;
  for (std::size_t peer = 0; peer < received.size(); ++peer) {
    const std::size_t bytes = received[peer].nbytes();
    if (bytes > 0 && peer != ranks_->rank()) bytes_in(received[peer]).copy_(part_of(received_, begin, bytes), true);
    begin += staged_size(received[peer]);
  }
  return {};
}

}  // namespace espalier::python
