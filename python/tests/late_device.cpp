// A device for tests of what PyTorch's backends do with tensors that are not on the CPU: `privateuseone`, two of them,
// in host memory. Its streams work as late as they may: what they are given is done when somebody waits for them.
// Whoever forgets to order streams, or to wait, reads old values. Loaded by torch.ops.load_library.

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/library.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <utility>

namespace espalier::python {
namespace {

constexpr c10::DeviceType type = c10::DeviceType::PrivateUse1;
constexpr c10::DeviceIndex device_count = 2;

using StreamKey = std::pair<c10::DeviceIndex, c10::StreamId>;

StreamKey key_of(const c10::Stream& stream) { return {stream.device_index(), stream.id()}; }

/// Work that was given to streams and is not done.
class Streams {
 public:
  void give(StreamKey stream, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queues_[stream].work.push_back(std::move(work));
  }
  std::uint64_t given(StreamKey stream) {
    const std::lock_guard lock(mutex_);
    return queues_[stream].done + queues_[stream].work.size();
  }
  bool is_done(StreamKey stream, std::uint64_t mark) {
    const std::lock_guard lock(mutex_);
    return queues_[stream].done >= mark;
  }
  void work_off(StreamKey stream, std::uint64_t mark) {
    const std::lock_guard lock(mutex_);
    Queue& queue = queues_[stream];
    while (queue.done < mark && !queue.work.empty()) {
      const auto next = std::move(queue.work.front());
      queue.work.pop_front();
      ++queue.done;  // Before it runs: it may wait for other streams, never for its own.
      next();
    }
  }

 private:
  struct Queue {
    std::deque<std::function<void()>> work;
    std::uint64_t done = 0;
  };

  std::recursive_mutex mutex_;
  std::map<StreamKey, Queue> queues_;
};

Streams& streams() {
  static auto* const all = new Streams;  // Never destroyed: threads may outlive it.
  return *all;
}

thread_local c10::DeviceIndex current_device = 0;
thread_local std::array<c10::StreamId, device_count> current_streams{};

c10::Stream current_stream(c10::DeviceIndex device) {
  return c10::Stream(c10::Stream::UNSAFE, c10::Device(type, device),
                     current_streams.at(static_cast<std::size_t>(device)));
}

struct LateEvent {
  StreamKey stream;
  std::uint64_t mark = 0;
};

struct LateGuard final : c10::impl::DeviceGuardImplInterface {
  c10::DeviceType type() const override { return python::type; }
  c10::Device exchangeDevice(c10::Device device) const override {
    const c10::Device before = getDevice();
    current_device = device.index();
    return before;
  }
  c10::Device getDevice() const override { return {python::type, current_device}; }
  void setDevice(c10::Device device) const override { current_device = device.index(); }
  void uncheckedSetDevice(c10::Device device) const noexcept override { current_device = device.index(); }
  c10::Stream getStream(c10::Device device) const noexcept override { return current_stream(device.index()); }
  c10::Stream getDefaultStream(c10::Device device) const override { return c10::Stream(c10::Stream::DEFAULT, device); }
  c10::Stream getStreamFromGlobalPool(c10::Device device, bool) const override {
    return c10::Stream(c10::Stream::UNSAFE, device, 7);
  }
  c10::Stream exchangeStream(c10::Stream stream) const noexcept override {
    const c10::Stream before = current_stream(stream.device_index());
    current_streams.at(static_cast<std::size_t>(stream.device_index())) = stream.id();
    return before;
  }
  c10::DeviceIndex deviceCount() const noexcept override { return device_count; }

  void record(void** event, const c10::Stream& stream, c10::DeviceIndex, c10::EventFlag) const override {
    if (*event == nullptr) *event = new LateEvent;
    *static_cast<LateEvent*>(*event) = {key_of(stream), streams().given(key_of(stream))};
  }
  void block(void* event, const c10::Stream& stream) const override {
    if (event == nullptr) return;
    const LateEvent recorded = *static_cast<LateEvent*>(event);
    if (recorded.stream == key_of(stream)) return;
    streams().give(key_of(stream), [recorded] { streams().work_off(recorded.stream, recorded.mark); });
  }
  bool queryEvent(void* event) const override {
    if (event == nullptr) return true;
    const LateEvent& recorded = *static_cast<LateEvent*>(event);
    return streams().is_done(recorded.stream, recorded.mark);
  }
  void destroyEvent(void* event, c10::DeviceIndex) const noexcept override { delete static_cast<LateEvent*>(event); }
  bool queryStream(const c10::Stream& stream) const override {
    return streams().is_done(key_of(stream), streams().given(key_of(stream)));
  }
  void synchronizeStream(const c10::Stream& stream) const override {
    streams().work_off(key_of(stream), streams().given(key_of(stream)));
  }
};

c10::DataPtr allocate_memory(std::size_t bytes) {
  void* const data = bytes == 0 ? nullptr : std::malloc(bytes);
  return {data, data, &std::free, c10::Device(type, current_device)};
}

/// As page_allocator.cpp's: versions differ in what there is to override.
struct LateAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) const { return allocate_memory(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return allocate_memory(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &std::free; }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
};

LateAllocator allocator;

const c10::DispatchKeySet keys(c10::DispatchKey::PrivateUse1);

at::Tensor empty(at::IntArrayRef sizes, c10::optional<at::ScalarType> dtype, c10::optional<at::Layout>,
                 c10::optional<at::Device> device, c10::optional<bool>, c10::optional<at::MemoryFormat> format) {
  const c10::DeviceIndex before = current_device;
  if (device && device->has_index()) current_device = device->index();
  at::Tensor made = at::detail::empty_generic(sizes, &allocator, keys, c10::dtype_or_default(dtype), format);
  current_device = before;
  return made;
}

at::Tensor empty_strided(at::IntArrayRef sizes, at::IntArrayRef strides, c10::optional<at::ScalarType> dtype,
                         c10::optional<at::Layout>, c10::optional<at::Device> device, c10::optional<bool>) {
  const c10::DeviceIndex before = current_device;
  if (device && device->has_index()) current_device = device->index();
  at::Tensor made = at::detail::empty_strided_generic(sizes, strides, &allocator, keys, c10::dtype_or_default(dtype));
  current_device = before;
  return made;
}

/// The same memory as a tensor of the CPU.
at::Tensor on_cpu(const at::Tensor& tensor) {
  if (tensor.device().is_cpu()) return tensor;
  at::Tensor same =
      at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(), at::device(at::kCPU).dtype(tensor.dtype()));
  same._set_conj(tensor.is_conj());
  same._set_neg(tensor.is_neg());
  return same;
}

/// A copy from or to the device, on its current stream.
at::Tensor copy_from(const at::Tensor& self, const at::Tensor& to, bool non_blocking) {
  const c10::Stream stream = current_stream((self.device().is_cpu() ? to : self).device().index());
  streams().give(key_of(stream), [self, to] {
    const at::NoGradGuard no_gradients;
    on_cpu(to).copy_(on_cpu(self));
  });
  if (!non_blocking) LateGuard().synchronizeStream(stream);
  return to;
}

/// Adds to all elements, late.
void add_late(at::Tensor tensor, double value) {
  streams().give(key_of(current_stream(tensor.device().index())), [tensor, value] {
    const at::NoGradGuard no_gradients;
    on_cpu(tensor).add_(value);
  });
}

/// Makes another stream of the tensor's device the current one of this thread.
void use_stream(const at::Tensor& tensor, std::int64_t id) {
  LateGuard().exchangeStream(c10::Stream(c10::Stream::UNSAFE, tensor.device(), id));
}

at::Tensor view(const at::Tensor& self, at::IntArrayRef sizes) { return at::native::view(self, sizes); }

at::Tensor as_strided(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides,
                      c10::optional<std::int64_t> offset) {
  return at::native::as_strided_tensorimpl(self, sizes, strides, offset);
}

at::Tensor reshape_alias(const at::Tensor& self, at::IntArrayRef sizes, at::IntArrayRef strides) {
  return at::native::_reshape_alias(self, sizes, strides);
}

at::Tensor view_as_real(const at::Tensor& self) { return at::native::view_as_real(self); }

at::Tensor view_as_complex(const at::Tensor& self) { return at::native::view_as_complex(self); }

const at::Tensor& resize(const at::Tensor& self, at::IntArrayRef sizes, c10::optional<at::MemoryFormat> format) {
  const c10::DeviceIndex before = std::exchange(current_device, self.device().index());
  at::native::resize_(self, sizes, format);
  current_device = before;
  return self;
}

at::Tensor copy_from_and_resize(const at::Tensor& self, const at::Tensor& to) {
  to.resize_(self.sizes());
  return copy_from(self, to, false);
}

void on_the_cpu(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  at::native::cpu_fallback(operation, stack);
}

C10_REGISTER_GUARD_IMPL(PrivateUse1, LateGuard);

TORCH_LIBRARY_IMPL(_, PrivateUse1, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&on_the_cpu>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, library) {
  library.impl("empty.memory_format", &empty);
  library.impl("empty_strided", &empty_strided);
  library.impl("_copy_from", &copy_from);
  library.impl("view", &view);
  library.impl("as_strided", &as_strided);
  library.impl("_reshape_alias", &reshape_alias);
  library.impl("view_as_real", &view_as_real);
  library.impl("view_as_complex", &view_as_complex);
  library.impl("resize_", &resize);
  library.impl("_copy_from_and_resize", &copy_from_and_resize);
}

/// PyTorch 1.13 hands calls to the process group for tensors of the CPU and of CUDA only.
void to_the_group(const c10::OperatorHandle& operation, torch::jit::Stack* stack) {
  operation.redispatchBoxed(c10::DispatchKeySet(c10::DispatchKey::CPU), stack);
}

TORCH_LIBRARY_IMPL(c10d, PrivateUse1, library) {
  for (const char* const name : {"allgather_", "allreduce_", "alltoall_", "broadcast_", "gather_", "recv_", "reduce_",
                                 "reduce_scatter_", "scatter_", "send"}) {
    library.impl(name, torch::CppFunction::makeFromBoxedFunction<&to_the_group>());
  }
}

TORCH_LIBRARY_IMPL(_, AutogradPrivateUse1, library) { library.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY(late_device, library) {
  library.def("add_late(Tensor tensor, float value) -> ()", &add_late);
  library.def("use_stream(Tensor tensor, int id) -> ()", &use_stream);
}

}  // namespace
}  // namespace espalier::python
