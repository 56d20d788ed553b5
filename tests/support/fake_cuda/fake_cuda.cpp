// A CUDA driver for tests: a libcuda.so.1 whose GPUs are this process's memory and threads. Streams do their work when
// somebody asks about it, kernels run the interpreter's code on a thread per block. Environment, read by cuInit:
// FAKE_CUDA_GPUS (2), FAKE_CUDA_MULTIPROCESSORS (16), FAKE_CUDA_PEERS (1; 0: no GPU reaches another), FAKE_CUDA_MEMORY
// (bytes of a GPU), FAKE_CUDA_DMA_BUFS (1; 0: none), FAKE_CUDA_FAIL=FUNCTION:CALL:STATUS: that call of a function,
// counted from 1, returns the status; a sticky one is what every later call returns, too.
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "engine/cuda/driver/driver_api.h"
#include "engine/cuda/kernels/host_kernels.h"
#include "engine/cuda/kernels/kernel_names.h"

namespace espalier::test {
namespace {

using engine::cuda::DeviceAddress;
using engine::cuda::DivideCall;
using engine::cuda::DriverHandle;
using engine::cuda::DriverStatus;
using engine::cuda::KernelCall;
using engine::cuda::KernelKind;
using engine::cuda::ReduceCall;
using engine::cuda::status_not_ready;
using engine::cuda::status_success;

constexpr DriverStatus invalid_value = 1;
constexpr DriverStatus out_of_memory = 2;
constexpr DriverStatus not_initialized = 3;
constexpr DriverStatus no_binary = 209;
constexpr DriverStatus not_found = 500;
constexpr DriverStatus cooperative_launch_too_large = 720;
constexpr std::uint32_t fat_binary_magic = 0xBA55ED50;
constexpr int blocks_per_fake_multiprocessor = 2;

struct FakeKernel {
  KernelKind kind{};
  ElementType type{};
  ReduceOperation operation{};
};

struct FakeStream;

struct FakeEvent {
  bool is_done = true;
  FakeStream* stream = nullptr;
};

/// True once it is done; asked again and again until then.
using Work = std::function<bool()>;

struct FakeStream {
  std::deque<Work> work;
};

/// Threads that run the blocks of a launch.
struct RunningKernel {
  std::vector<std::thread> threads;
  std::atomic<std::size_t> ended = 0;
};

/// Of a GPU: pages of a file, which may be exported.
struct FakeMemory {
  std::size_t bytes = 0;
  int file = -1;
};

struct FakeDriver {
  std::recursive_mutex mutex;
  bool is_initialized = false;
  int gpus = 0;
  int multiprocessors = 0;
  bool has_peers = true;
  std::size_t memory = 0;
  std::string fails_in;
  int fails_at = 0;
  DriverStatus fails_with = 0;
  std::map<std::string, int> calls;
  DriverStatus lost = status_success;
  std::size_t used = 0;
  bool has_dma_bufs = true;
  std::map<DeviceAddress, FakeMemory> memories;
  std::map<std::string, FakeKernel> kernels;
  FakeStream default_stream;
};

FakeDriver& fake() {
  static FakeDriver driver;
  return driver;
}

long number_from(const char* name, long otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::atol(text) : otherwise;
}

bool is_sticky(DriverStatus status) { return status == 214 || (status >= 700 && status < 720); }

/// What a call returns before it does anything.
DriverStatus enter(const char* function) {
  FakeDriver& driver = fake();
  if (!driver.is_initialized) return not_initialized;
  if (driver.lost != status_success) return driver.lost;
  if (driver.fails_in == function && ++driver.calls[function] == driver.fails_at) {
    if (is_sticky(driver.fails_with)) driver.lost = driver.fails_with;
    return driver.fails_with;
  }
  return status_success;
}

FakeStream& stream_of(DriverHandle handle) {
  return handle == nullptr ? fake().default_stream : *static_cast<FakeStream*>(handle);
}

/// Does what can be done; whether that was all.
bool advance(FakeStream& stream) {
  while (!stream.work.empty() && stream.work.front()()) stream.work.pop_front();
  return stream.work.empty();
}

/// Blocks of the interpreter wait for each other, on other GPUs too: a thread each, while streams go on.
Work interpreter_work(const FakeKernel& kernel, std::uint32_t blocks, const KernelCall& call) {
  auto running = std::make_shared<RunningKernel>();
  return [=] {
    if (running->threads.empty()) {
      for (std::uint32_t block = 0; block < blocks; ++block) {
        running->threads.emplace_back([=] {
          engine::cuda::run_block_on_host(kernel.type, kernel.operation, call, call.blocks[block]);
          running->ended.fetch_add(1, std::memory_order_release);
        });
      }
    }
    if (running->ended.load(std::memory_order_acquire) < running->threads.size()) return false;
    for (std::thread& thread : running->threads) thread.join();
    return true;
  };
}

template <class Call>
Call copy_parameter(const void* parameter) {
  Call call;
  std::memcpy(&call, parameter, sizeof(call));
  return call;
}

Work kernel_work(const FakeKernel& kernel, std::uint32_t blocks, const void* parameter) {
  if (kernel.kind == KernelKind::run) return interpreter_work(kernel, blocks, copy_parameter<KernelCall>(parameter));
  if (kernel.kind == KernelKind::divide) {
    return [kernel, call = copy_parameter<DivideCall>(parameter)] {
      engine::cuda::divide_on_host(kernel.type, call);
      return true;
    };
  }
  return [kernel, call = copy_parameter<ReduceCall>(parameter)] {
    engine::cuda::reduce_on_host(kernel.type, kernel.operation, call);
    return true;
  };
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + 4095) / 4096 * 4096; }

DriverStatus give(DeviceAddress* address, std::size_t bytes) {
  void* const data = std::aligned_alloc(4096, whole_pages(bytes));
  if (data == nullptr) return out_of_memory;
  std::memset(data, 0xEE, bytes);  // As memory is: not zero.
  *address = reinterpret_cast<DeviceAddress>(data);
  return status_success;
}

}  // namespace
}  // namespace espalier::test

using namespace espalier::test;  // NOLINT: what follows are the library's own names.
using espalier::engine::cuda::DeviceAddress;
using espalier::engine::cuda::DriverHandle;
using espalier::engine::cuda::DriverStatus;
using espalier::engine::cuda::KernelKind;

#define ENTER(function)                     \
  const std::lock_guard lock(fake().mutex); \
  if (const DriverStatus status = enter(#function); status != status_success) return status

extern "C" {

DriverStatus cuInit(unsigned) {
  FakeDriver& driver = fake();
  const std::lock_guard lock(driver.mutex);
  driver.is_initialized = true;
  driver.gpus = static_cast<int>(number_from("FAKE_CUDA_GPUS", 2));
  driver.multiprocessors = static_cast<int>(number_from("FAKE_CUDA_MULTIPROCESSORS", 16));
  driver.has_dma_bufs = number_from("FAKE_CUDA_DMA_BUFS", 1) != 0;
  driver.has_peers = number_from("FAKE_CUDA_PEERS", 1) != 0;
  driver.memory = static_cast<std::size_t>(number_from("FAKE_CUDA_MEMORY", 1L << 30));
  driver.calls.clear();
  driver.lost = status_success;
  driver.fails_in.clear();
  if (const char* const fails = std::getenv("FAKE_CUDA_FAIL"); fails != nullptr) {
    const std::string text = fails;
    const std::size_t first = text.find(':');
    const std::size_t second = text.find(':', first + 1);
    driver.fails_in = text.substr(0, first);
    driver.fails_at = std::atoi(text.c_str() + first + 1);
    driver.fails_with = std::atoi(text.c_str() + second + 1);
  }
  for (const auto type : espalier::all_element_types) {
    for (const auto operation : espalier::all_reduce_operations) {
      for (const KernelKind kind : {KernelKind::run, KernelKind::reduce, KernelKind::divide}) {
        driver.kernels.try_emplace(espalier::engine::cuda::kernel_name(kind, type, operation),
                                   FakeKernel{kind, type, operation});
      }
    }
  }
  return driver.gpus == 0 ? 100 : status_success;  // CUDA_ERROR_NO_DEVICE.
}

DriverStatus cuDriverGetVersion(int* version) {
  ENTER(cuDriverGetVersion);
  *version = 13000;
  return status_success;
}

DriverStatus cuGetErrorName(DriverStatus status, const char** name) {
  static const std::map<DriverStatus, const char*> names = {
      {1, "CUDA_ERROR_INVALID_VALUE"},       {2, "CUDA_ERROR_OUT_OF_MEMORY"},
      {100, "CUDA_ERROR_NO_DEVICE"},         {209, "CUDA_ERROR_NO_BINARY"},
      {214, "CUDA_ERROR_ECC_UNCORRECTABLE"}, {700, "CUDA_ERROR_ILLEGAL_ADDRESS"},
      {719, "CUDA_ERROR_LAUNCH_FAILED"},     {720, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"}};
  const auto found = names.find(status);
  *name = found == names.end() ? nullptr : found->second;
  return found == names.end() ? invalid_value : status_success;
}

DriverStatus cuGetErrorString(DriverStatus, const char** text) {
  *text = "as the fake driver has it";
  return status_success;
}

DriverStatus cuDeviceGetCount(int* count) {
  ENTER(cuDeviceGetCount);
  *count = fake().gpus;
  return status_success;
}

DriverStatus cuDeviceGet(int* device, int ordinal) {
  ENTER(cuDeviceGet);
  *device = ordinal;
  return status_success;
}

DriverStatus cuDeviceGetName(char* name, int length, int) {
  ENTER(cuDeviceGetName);
  std::strncpy(name, "Fake GPU", static_cast<std::size_t>(length));
  return status_success;
}

DriverStatus cuDeviceGetAttribute(int* value, int attribute, int) {
  ENTER(cuDeviceGetAttribute);
  *value = 1;
  if (attribute == espalier::engine::cuda::attribute_multiprocessors) *value = fake().multiprocessors;
  if (attribute == espalier::engine::cuda::attribute_dma_buf) *value = fake().has_dma_bufs ? 1 : 0;
  return status_success;
}

DriverStatus cuDeviceCanAccessPeer(int* can, int, int) {
  ENTER(cuDeviceCanAccessPeer);
  *can = fake().has_peers ? 1 : 0;
  return status_success;
}

DriverStatus cuDevicePrimaryCtxRetain(DriverHandle* context, int device) {
  ENTER(cuDevicePrimaryCtxRetain);
  static int contexts[64];
  *context = &contexts[device];
  return status_success;
}

DriverStatus cuDevicePrimaryCtxRelease_v2(int) { return status_success; }
DriverStatus cuCtxSetCurrent(DriverHandle) {
  ENTER(cuCtxSetCurrent);
  return status_success;
}
DriverStatus cuCtxEnablePeerAccess(DriverHandle, unsigned) {
  ENTER(cuCtxEnablePeerAccess);
  return status_success;
}

DriverStatus cuMemAlloc_v2(DeviceAddress* address, std::size_t bytes) {
  ENTER(cuMemAlloc_v2);
  if (bytes > fake().memory - fake().used) return out_of_memory;
  const int file = memfd_create("a fake GPU's memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(whole_pages(bytes))) != 0) return out_of_memory;
  void* const data = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return out_of_memory;
  std::memset(data, 0xEE, bytes);  // As memory is: not zero.
  *address = reinterpret_cast<DeviceAddress>(data);
  fake().used += bytes;
  fake().memories[*address] = {bytes, file};
  return status_success;
}

DriverStatus cuPointerSetAttribute(const void*, int, DeviceAddress address) {
  ENTER(cuPointerSetAttribute);
  return fake().memories.contains(address) ? status_success : invalid_value;
}

/// Whole pages of one memory, as the driver wants them.
DriverStatus cuMemGetHandleForAddressRange(void* handle, DeviceAddress address, std::size_t bytes, int kind,
                                           unsigned long long flags) {
  ENTER(cuMemGetHandleForAddressRange);
  const auto found = fake().memories.find(address);
  if (!fake().has_dma_bufs || kind != espalier::engine::cuda::range_handle_dma_buf || flags != 0 || bytes % 4096 != 0 ||
      found == fake().memories.end() || bytes > whole_pages(found->second.bytes)) {
    return invalid_value;
  }
  *static_cast<int*>(handle) = dup(found->second.file);
  return status_success;
}

DriverStatus cuMemFree_v2(DeviceAddress address) {
  const std::lock_guard lock(fake().mutex);
  const FakeMemory memory = fake().memories[address];
  fake().used -= memory.bytes;
  fake().memories.erase(address);
  munmap(reinterpret_cast<void*>(address), whole_pages(memory.bytes));
  close(memory.file);
  return status_success;
}

DriverStatus cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  ENTER(cuMemHostAlloc);
  DeviceAddress address = 0;
  const DriverStatus given = give(&address, bytes);
  *data = reinterpret_cast<void*>(address);
  return given;
}

DriverStatus cuMemFreeHost(void* data) {
  std::free(data);
  return status_success;
}

DriverStatus cuMemsetD8Async(DeviceAddress to, unsigned char value, std::size_t bytes, DriverHandle stream) {
  ENTER(cuMemsetD8Async);
  stream_of(stream).work.emplace_back([=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return true;
  });
  return status_success;
}

DriverStatus cuMemcpyAsync(DeviceAddress to, DeviceAddress from, std::size_t bytes, DriverHandle stream) {
  ENTER(cuMemcpyAsync);
  stream_of(stream).work.emplace_back([=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  });
  return status_success;
}

DriverStatus cuStreamCreate(DriverHandle* stream, unsigned) {
  ENTER(cuStreamCreate);
  *stream = new FakeStream();
  return status_success;
}

DriverStatus cuStreamDestroy_v2(DriverHandle stream) {
  const std::lock_guard lock(fake().mutex);
  delete static_cast<FakeStream*>(stream);
  return status_success;
}

DriverStatus cuStreamQuery(DriverHandle stream) {
  ENTER(cuStreamQuery);
  return advance(stream_of(stream)) ? status_success : status_not_ready;
}

DriverStatus cuStreamSynchronize(DriverHandle stream) {
  for (;;) {
    {
      ENTER(cuStreamSynchronize);
      if (advance(stream_of(stream))) return status_success;
    }
    std::this_thread::yield();
  }
}

DriverStatus cuStreamWaitValue32_v2(DriverHandle stream, DeviceAddress word, std::uint32_t value, unsigned) {
  ENTER(cuStreamWaitValue32_v2);
  stream_of(stream).work.emplace_back([=] {
    const std::uint32_t seen = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(word), __ATOMIC_ACQUIRE);
    return static_cast<std::int32_t>(seen - value) >= 0;
  });
  return status_success;
}

DriverStatus cuEventCreate(DriverHandle* event, unsigned) {
  ENTER(cuEventCreate);
  *event = new FakeEvent();
  return status_success;
}

DriverStatus cuEventDestroy_v2(DriverHandle event) {
  const std::lock_guard lock(fake().mutex);
  delete static_cast<FakeEvent*>(event);
  return status_success;
}

DriverStatus cuEventRecord(DriverHandle event, DriverHandle stream) {
  ENTER(cuEventRecord);
  auto* const recorded = static_cast<FakeEvent*>(event);
  recorded->is_done = false;
  recorded->stream = &stream_of(stream);
  recorded->stream->work.emplace_back([recorded] {
    recorded->is_done = true;
    return true;
  });
  return status_success;
}

DriverStatus cuEventQuery(DriverHandle event) {
  ENTER(cuEventQuery);
  auto* const asked = static_cast<FakeEvent*>(event);
  if (!asked->is_done) advance(*asked->stream);
  return asked->is_done ? status_success : status_not_ready;
}

DriverStatus cuModuleLoadData(DriverHandle* module, const void* image) {
  ENTER(cuModuleLoadData);
  std::uint32_t magic = 0;
  std::memcpy(&magic, image, sizeof(magic));
  static int loaded;
  *module = &loaded;
  return magic == fat_binary_magic ? status_success : no_binary;
}

DriverStatus cuModuleUnload(DriverHandle) { return status_success; }

DriverStatus cuModuleGetFunction(DriverHandle* function, DriverHandle, const char* name) {
  ENTER(cuModuleGetFunction);
  const auto found = fake().kernels.find(name);
  if (found == fake().kernels.end()) return not_found;
  *function = &found->second;
  return status_success;
}

DriverStatus cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, DriverHandle, int, std::size_t) {
  ENTER(cuOccupancyMaxActiveBlocksPerMultiprocessor);
  *blocks = blocks_per_fake_multiprocessor;
  return status_success;
}

DriverStatus cuLaunchKernel(DriverHandle function, unsigned grid, unsigned, unsigned, unsigned, unsigned, unsigned,
                            unsigned, DriverHandle stream, void** parameters, void**) {
  ENTER(cuLaunchKernel);
  stream_of(stream).work.push_back(kernel_work(*static_cast<FakeKernel*>(function), grid, parameters[0]));
  return status_success;
}

DriverStatus cuLaunchCooperativeKernel(DriverHandle function, unsigned grid, unsigned, unsigned, unsigned, unsigned,
                                       unsigned, unsigned, DriverHandle stream, void** parameters) {
  ENTER(cuLaunchCooperativeKernel);
  if (grid > static_cast<unsigned>(fake().multiprocessors * blocks_per_fake_multiprocessor)) {
    return cooperative_launch_too_large;
  }
  stream_of(stream).work.push_back(kernel_work(*static_cast<FakeKernel*>(function), grid, parameters[0]));
  return status_success;
}

}  // extern "C"
