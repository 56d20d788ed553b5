#include "engine/cuda/device/cuda_device.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <thread>

#include "engine/cuda/device/cuda_queue.h"
#include "engine/cuda/device/cuda_rank_kernel.h"
#include "engine/cuda/device/gpu_clock.h"
#include "engine/cuda/kernels/kernel_call.h"
#include "engine/memory/available_memory.h"

namespace espalier::engine::cuda {
namespace {

constexpr std::int64_t page_size = 4096;

std::size_t whole_pages(std::int64_t bytes) {
  return static_cast<std::size_t>((bytes + page_size - 1) / page_size * page_size);
}

/// What ranks tell each other of memory of their GPUs.
struct SharedGpuMemory {
  std::int64_t process = 0;
  std::int32_t device = 0;
  std::int32_t padding = 0;
  std::uint64_t context = 0;  ///< As the address, of that process.
  DeviceAddress address = 0;
  std::uint64_t offset = 0;  ///< From the begin of what the handle opens.
  IpcHandle handle{};
};

}  // namespace

Result<std::unique_ptr<CudaDevice>> CudaDevice::open(std::shared_ptr<const Driver> driver, int ordinal,
                                                     std::span<const unsigned char> image) {
  if (image.empty()) {
    return fail(ErrorCode::unsupported, "this espalier was built without its CUDA kernels",
                "build it where nvcc 12.8 or newer is found (docs/gpu.md)");
  }
  if (ordinal < 0 || ordinal >= driver->device_count()) {
    return fail(ErrorCode::invalid_input,
                fmt::format("there is no GPU {}: the driver sees {}", ordinal, driver->device_count()),
                "CUDA_VISIBLE_DEVICES says which GPUs it shows");
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(std::move(driver), ordinal));
  if (auto done = device->set_up(image); !done) return tl::unexpected(done.error());
  return device;
}

Result<void> CudaDevice::set_up(std::span<const unsigned char> image) {
  const DriverApi& api = driver_->api();
  const std::string of = fmt::format("GPU {}", ordinal_);
  if (auto done = driver_->check(api.device_get(&device_, ordinal_), "find " + of); !done) return done;
  std::array<char, 256> text{};
  if (auto done = driver_->check(api.device_name(text.data(), 255, device_), "name " + of); !done) return done;
  model_ = text.data();
  const auto multiprocessors = attribute(attribute_multiprocessors);
  if (!multiprocessors) return tl::unexpected(multiprocessors.error());
  multiprocessors_ = static_cast<std::uint32_t>(*multiprocessors);
  const auto pageable = attribute(attribute_pageable_memory);
  if (!pageable) return tl::unexpected(pageable.error());
  reaches_unpinned_ = *pageable != 0;
  if (auto done = driver_->check(api.retain_context(&context_, device_), "open " + of); !done) {
    context_ = nullptr;
    return done;
  }
  make_current();
  return driver_->check(api.load_module(&module_, image.data()), "load the kernels on " + of);
}

CudaDevice::~CudaDevice() {
  if (context_ == nullptr || is_lost()) return;
  make_current();
  if (module_ != nullptr) driver_->api().unload_module(module_);
  driver_->api().release_context(device_);
}

Result<int> CudaDevice::attribute(int which) const {
  int value = 0;
  const auto done = driver_->check(driver_->api().device_attribute(&value, which, device_),
                                   fmt::format("read attribute {} of GPU {}", which, ordinal_));
  if (!done) return tl::unexpected(done.error());
  return value;
}

Result<std::unique_ptr<DeviceQueue>> CudaDevice::make_queue() { return CudaQueue::make(*this); }

Result<std::unique_ptr<DeviceQueue>> CudaDevice::adopt_stream(void* stream) { return CudaQueue::adopt(*this, stream); }

std::unique_ptr<Device::BesideCapture> CudaDevice::work_beside_capture() {
  class Relaxed final : public BesideCapture {
   public:
    explicit Relaxed(const DriverApi& api) : api_(api) { api_.exchange_capture_mode(&mode_); }
    ~Relaxed() override { api_.exchange_capture_mode(&mode_); }

   private:
    const DriverApi& api_;
    int mode_ = capture_mode_relaxed;
  };
  return std::make_unique<Relaxed>(driver_->api());
}

Result<std::byte*> CudaDevice::allocate(std::int64_t bytes, MemorySpace space) {
  make_current();
  const DriverApi& api = driver_->api();
  const std::string action =
      fmt::format("allocate {} bytes {}", bytes,
                  space == MemorySpace::device ? fmt::format("on GPU {}", ordinal_) : std::string("of pinned memory"));
  std::byte* data = nullptr;
  if (space == MemorySpace::device) {
    DeviceAddress address = 0;
    if (auto done = driver_->check(api.allocate(&address, whole_pages(bytes)), action); !done) {
      return tl::unexpected(done.error());
    }
    auto zeroed = driver_->check(api.fill(address, 0, whole_pages(bytes), nullptr), action);
    if (!zeroed) {
      api.free(address);
      return tl::unexpected(zeroed.error());
    }
    zeroed = driver_->check(api.await_stream(nullptr), action);
    if (!zeroed) return tl::unexpected(zeroed.error());  // It may be written yet: nobody else may get it.
    data = reinterpret_cast<std::byte*>(address);
  } else {
    if (auto checked = check_available(bytes, "pinned memory"); !checked) return tl::unexpected(checked.error());
    void* pinned = nullptr;
    if (auto done = driver_->check(api.allocate_host(&pinned, whole_pages(bytes), portable_and_mapped), action);
        !done) {
      return tl::unexpected(done.error());
    }
    std::memset(pinned, 0, whole_pages(bytes));
    data = static_cast<std::byte*>(pinned);
  }
  const std::lock_guard lock(mutex_);
  memories_[data] = space;
  return data;
}

void CudaDevice::release(std::byte* data, std::int64_t) {
  if (is_lost()) return;
  MemorySpace space{};
  {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(data);
    if (found == memories_.end()) return;
    space = found->second;
    memories_.erase(found);
  }
  make_current();
  if (space == MemorySpace::device) {
    driver_->api().free(reinterpret_cast<DeviceAddress>(data));
  } else {
    driver_->api().free_host(data);
  }
}

Result<DmaBuf> CudaDevice::export_memory(const std::byte* data, std::int64_t bytes) {
  make_current();
  const auto address = reinterpret_cast<DeviceAddress>(data);
  // Copies that the driver would do behind the caller's back are then done when their call returns, as cards need it.
  const unsigned is_on = 1;
  if (auto done = driver_->check(driver_->api().set_pointer_attribute(&is_on, pointer_attribute_sync_memops, address),
                                 "prepare memory for network cards");
      !done) {
    return tl::unexpected(done.error());
  }
  const auto has_dma_bufs = attribute(attribute_dma_buf);
  if (!has_dma_bufs) return tl::unexpected(has_dma_bufs.error());
  if (*has_dma_bufs == 0) {
    return fail(ErrorCode::unsupported, fmt::format("GPU {} ({}) gives no dma-buf", ordinal_, model_),
                "that takes the open kernel modules of NVIDIA's driver");
  }
  // The driver takes whole pages only.
  constexpr auto page = static_cast<DeviceAddress>(page_size);
  const std::int64_t offset = static_cast<std::int64_t>(address % page);
  int descriptor = -1;
  const auto done = driver_->check(driver_->api().export_range(&descriptor, address - address % page,
                                                               whole_pages(bytes + offset), range_handle_dma_buf, 0),
                                   fmt::format("export {} bytes of GPU {} as a dma-buf", bytes, ordinal_));
  if (!done) return tl::unexpected(done.error());
  return DmaBuf{FileDescriptor(descriptor), offset};
}

Result<std::string> CudaDevice::share_memory(const std::byte* data, std::int64_t bytes) {
  make_current();
  const DriverApi& api = driver_->api();
  const std::string action = fmt::format("share {} bytes of GPU {} with other processes", bytes, ordinal_);
  SharedGpuMemory memory;
  memory.process = getpid();
  memory.device = device_;
  memory.context = reinterpret_cast<std::uint64_t>(context_);
  memory.address = reinterpret_cast<DeviceAddress>(data);
  DeviceAddress begin = 0;  // A handle is that of a whole allocation.
  std::size_t whole = 0;
  auto done = driver_->check(api.address_range(&begin, &whole, memory.address), action);
  if (done) done = driver_->check(api.make_ipc_handle(&memory.handle, begin), action);
  if (!done) return tl::unexpected(done.error());
  memory.offset = memory.address - begin;
  return std::string(reinterpret_cast<const char*>(&memory), sizeof(memory));
}

Result<std::byte*> CudaDevice::open_memory(std::string_view shared) {
  SharedGpuMemory memory;
  if (shared.size() != sizeof(memory)) {
    return fail(ErrorCode::unsupported, fmt::format("GPU {} does not open memory of another kind of device", ordinal_));
  }
  std::memcpy(&memory, shared.data(), sizeof(memory));
  make_current();
  if (memory.process == getpid()) {  // The driver opens nothing of its own process, which has it anyway.
    auto reached = reach(memory.device, reinterpret_cast<DriverHandle>(memory.context));
    if (!reached) return tl::unexpected(reached.error());
    return reinterpret_cast<std::byte*>(memory.address);
  }
  DeviceAddress begin = 0;
  const DriverStatus status = driver_->api().open_ipc_handle(&begin, memory.handle, ipc_lazy_peer_access);
  if (auto done = driver_->check(status, fmt::format("open memory of another process on GPU {}", ordinal_)); !done) {
    if (status == status_already_mapped) {
      done.error().help =
          "memory that its owner has freed is still open here: allocate 2 MiB or more at a time, which has "
          "a place of its own, or free it later";
    }
    return tl::unexpected(done.error());
  }
  auto* const data = reinterpret_cast<std::byte*>(begin + memory.offset);
  const std::lock_guard lock(mutex_);
  opened_.emplace(data, begin);
  return data;
}

void CudaDevice::close_memory(std::byte* data) {
  if (is_lost()) return;
  DeviceAddress begin = 0;
  {
    const std::lock_guard lock(mutex_);
    const auto found = opened_.find(data);
    if (found == opened_.end()) return;
    begin = found->second;
    opened_.erase(found);
  }
  make_current();
  driver_->api().close_ipc_handle(begin);
}

std::optional<KernelSite> CudaDevice::kernel_site() {
  if (!carries_out_calls_) return std::nullopt;
  const auto limit = residency(ElementType::float32, ReduceOperation::sum);
  if (!limit) return std::nullopt;
  std::uint64_t place = 1;  // Of the device on the machine's PCI buses.
  for (const int part : {attribute_pci_domain, attribute_pci_bus, attribute_pci_device}) {
    const auto number = attribute(part);
    if (!number) return std::nullopt;
    place = place << 16U | static_cast<std::uint16_t>(*number);
  }
  return KernelSite{place, limit->multiprocessors * limit->blocks_per_multiprocessor};
}

Result<std::unique_ptr<RankKernel>> CudaDevice::make_rank_kernel(const RankKernel::Shape& shape) {
  return CudaRankKernel::make(*this, shape);
}

Result<DeviceClock> CudaDevice::compare_clock() {
  return compare_clocks(*this, ElementType::float32, ReduceOperation::sum);
}

Result<void> CudaDevice::pin(std::byte* data, std::int64_t bytes) {
  make_current();
  return driver_->check(driver_->api().register_host(data, whole_pages(bytes), portable_and_mapped),
                        fmt::format("let GPU {} reach {} bytes of the host's", ordinal_, bytes));
}

void CudaDevice::unpin(std::byte* data) {
  if (is_lost()) return;
  make_current();
  driver_->api().unregister_host(data);
}

Result<void> CudaDevice::await(DriverHandle stream, std::chrono::milliseconds longest, std::string_view action) {
  make_current();
  const auto until = std::chrono::steady_clock::now() + (is_lost() ? std::chrono::milliseconds(0) : longest);
  std::optional<Error> failed;
  while (true) {
    const DriverStatus status = driver_->api().query_stream(stream);
    if (status == status_success) return failed ? tl::unexpected(*failed) : Result<void>();
    if (status != status_not_ready) {
      if (!failed) {
        failed = driver_->describe(status, action);
        continue;  // It may have been of this one question.
      }
      const StatusKind kind = kind_of(status);
      if (kind == StatusKind::sticky || kind == StatusKind::lost)
        return tl::unexpected(*failed);  // Nothing runs there.
      break;
    } else if (std::chrono::steady_clock::now() >= until) {
      if (!failed) {
        failed = Error{ErrorCode::unavailable,
                       fmt::format("cannot {}: GPU {} does not end it within {} ms", action, ordinal_, longest.count()),
                       "it hangs: see nvidia-smi and the kernel's log"};
      }
      break;
    } else {
      std::this_thread::yield();
    }
  }
  give_up();
  return tl::unexpected(*failed);
}

Result<DriverHandle> CudaDevice::find_kernel(KernelKind kind, ElementType type, ReduceOperation operation) {
  const std::string name = kernel_name(kind, type, operation);
  const std::lock_guard lock(mutex_);
  if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second;
  make_current();
  DriverHandle kernel = nullptr;
  const auto done = driver_->check(driver_->api().get_function(&kernel, module_, name.c_str()), "find kernel " + name);
  if (!done) return tl::unexpected(done.error());
  kernels_[name] = kernel;
  return kernel;
}

Result<ResidencyLimit> CudaDevice::residency(ElementType type, ReduceOperation operation) {
  const auto cooperative = has_cooperative_launch();
  if (!cooperative) return tl::unexpected(cooperative.error());
  if (!*cooperative) {
    return fail(ErrorCode::unsupported,
                fmt::format("GPU {} ({}) has no cooperative launches, which blocks that wait for each other need",
                            ordinal_, model_));
  }
  const auto kernel = find_kernel(KernelKind::run, type, operation);
  if (!kernel) return tl::unexpected(kernel.error());
  int blocks = 0;
  const auto done = driver_->check(driver_->api().resident_blocks(&blocks, *kernel, threads_per_block, shared_bytes()),
                                   "ask how many blocks run at a time");
  if (!done) return tl::unexpected(done.error());
  return ResidencyLimit{multiprocessors_, static_cast<std::uint32_t>(blocks)};
}

Result<void> CudaDevice::use_bulk_copies() {
  constexpr int min_version = 90;
  const auto kernel = find_kernel(KernelKind::run, ElementType::float32, ReduceOperation::sum);
  if (!kernel) return tl::unexpected(kernel.error());
  int version = 0;
  const auto done = driver_->check(driver_->api().function_attribute(&version, function_attribute_ptx_version, *kernel),
                                   fmt::format("ask what the kernels of GPU {} are compiled for", ordinal_));
  if (!done) return done;
  if (version < min_version) {
    return fail(ErrorCode::unsupported,
                fmt::format("GPU {} ({}) runs kernels compiled for sm_{}, and bulk copies begin with sm_{}", ordinal_,
                            model_, version, min_version),
                "on an sm_90 GPU or newer, build with -DESPALIER_CUDA_ARCHITECTURES for it (docs/gpu.md)");
  }
  copies_in_bulk_ = true;
  return {};
}

Result<bool> CudaDevice::has_cooperative_launch() const {
  const auto cooperative = attribute(attribute_cooperative_launch);
  if (!cooperative) return tl::unexpected(cooperative.error());
  return *cooperative != 0;
}

Result<bool> CudaDevice::can_reach(const CudaDevice& peer) const { return can_reach(peer.device_); }

Result<bool> CudaDevice::can_reach(int device) const {
  if (device == device_) return true;
  int can = 0;
  const auto done = driver_->check(driver_->api().can_access_peer(&can, device_, device), "ask for peer access");
  if (!done) return tl::unexpected(done.error());
  return can != 0;
}

Result<void> CudaDevice::reach(const CudaDevice& peer) { return reach(peer.device_, peer.context_); }

Result<void> CudaDevice::reach(int device, DriverHandle context) {
  if (device == device_) return {};
  const auto can = can_reach(device);
  if (!can) return tl::unexpected(can.error());
  if (!*can) {
    return fail(ErrorCode::unsupported, fmt::format("GPU {} cannot reach the memory of GPU {}", ordinal_, device),
                "peer access needs NVLink or PCIe without an IOMMU between (nvidia-smi topo -p2p r)");
  }
  make_current();
  const DriverStatus status = driver_->api().enable_peer_access(context, 0);
  if (status == status_peer_access_already_enabled) return {};
  return driver_->check(status, fmt::format("let GPU {} reach GPU {}", ordinal_, device));
}

}  // namespace espalier::engine::cuda
