// A CUDA driver for tests: a libcuda.so.1 whose GPUs are this process's memory and threads. Streams do their work when
// somebody asks about it, kernels run the interpreter's code on a thread per block. Environment, read by cuInit:
// FAKE_CUDA_GPUS (2), FAKE_CUDA_MULTIPROCESSORS (16), FAKE_CUDA_PEERS (1; 0: no GPU reaches another), FAKE_CUDA_MEMORY
// (bytes of a GPU), FAKE_CUDA_DMA_BUFS (1; 0: none), FAKE_CUDA_IPC (1; 0: none), FAKE_CUDA_COOPERATIVE (1; 0: no
// cooperative launches), FAKE_CUDA_HANG (0; 1: kernels of the interpreter never end),
// FAKE_CUDA_PTX_VERSION (90, that of the kernels), FAKE_CUDA_FAIL=FUNCTION:CALL:STATUS: that call of a function,
// counted from 1, returns the status; a sticky one is what every later call returns, too.
#include "tests/support/fake_cuda/fake_driver.h"

using namespace espalier::test;  // NOLINT: what follows are the library's own names.
using espalier::engine::cuda::DeviceAddress;
using espalier::engine::cuda::DriverHandle;
using espalier::engine::cuda::DriverStatus;
using espalier::engine::cuda::KernelKind;

extern "C" {

DriverStatus cuInit(unsigned) {
  FakeDriver& driver = fake();
  const std::lock_guard lock(driver.mutex);
  driver.is_initialized = true;
  driver.gpus = static_cast<int>(number_from("FAKE_CUDA_GPUS", 2));
  driver.multiprocessors = static_cast<int>(number_from("FAKE_CUDA_MULTIPROCESSORS", 16));
  driver.has_dma_bufs = number_from("FAKE_CUDA_DMA_BUFS", 1) != 0;
  driver.has_peers = number_from("FAKE_CUDA_PEERS", 1) != 0;
  driver.has_cooperative = number_from("FAKE_CUDA_COOPERATIVE", 1) != 0;
  driver.has_ipc = number_from("FAKE_CUDA_IPC", 1) != 0;
  driver.hangs = number_from("FAKE_CUDA_HANG", 0) != 0;
  driver.ptx_version = static_cast<int>(number_from("FAKE_CUDA_PTX_VERSION", 90));
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
      for (const KernelKind kind : {KernelKind::run, KernelKind::reduce, KernelKind::divide, KernelKind::pattern}) {
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

DriverStatus cuDeviceGetAttribute(int* value, int attribute, int device) {
  ENTER(cuDeviceGetAttribute);
  *value = attribute == espalier::engine::cuda::attribute_multiprocessors ? fake().multiprocessors : 1;
  if (attribute == espalier::engine::cuda::attribute_pci_bus) *value = device;
  if (attribute == espalier::engine::cuda::attribute_dma_buf) *value = fake().has_dma_bufs ? 1 : 0;
  if (attribute == espalier::engine::cuda::attribute_cooperative_launch) *value = fake().has_cooperative ? 1 : 0;
  if (attribute == espalier::engine::cuda::attribute_pageable_memory) *value = 0;
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

DriverStatus cuMemsetD8Async(DeviceAddress to, unsigned char value, std::size_t bytes, DriverHandle stream) {
  ENTER(cuMemsetD8Async);
  give(stream_of(stream), [=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return true;
  });
  return status_success;
}

DriverStatus cuMemcpyAsync(DeviceAddress to, DeviceAddress from, std::size_t bytes, DriverHandle stream) {
  ENTER(cuMemcpyAsync);
  give(stream_of(stream), [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  });
  return status_success;
}

DriverStatus cuMemcpyDtoDAsync_v2(DeviceAddress to, DeviceAddress from, std::size_t bytes, DriverHandle stream) {
  ENTER(cuMemcpyDtoDAsync_v2);
  give(stream_of(stream), [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  });
  return status_success;
}

DriverStatus cuMemcpyPeerAsync(DeviceAddress to, DriverHandle, DeviceAddress from, DriverHandle, std::size_t bytes,
                               DriverHandle stream) {
  ENTER(cuMemcpyPeerAsync);
  give(stream_of(stream), [=] {
    std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes);
    return true;
  });
  return status_success;
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

DriverStatus cuFuncGetAttribute(int* value, int attribute, DriverHandle) {
  ENTER(cuFuncGetAttribute);
  *value = attribute == espalier::engine::cuda::function_attribute_ptx_version ? fake().ptx_version : 0;
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
  give_kernel(stream_of(stream), *static_cast<FakeKernel*>(function), grid, parameters[0]);
  return status_success;
}

DriverStatus cuLaunchCooperativeKernel(DriverHandle function, unsigned grid, unsigned, unsigned, unsigned, unsigned,
                                       unsigned, unsigned, DriverHandle stream, void** parameters) {
  ENTER(cuLaunchCooperativeKernel);
  if (grid > static_cast<unsigned>(fake().multiprocessors * blocks_per_fake_multiprocessor)) {
    return cooperative_launch_too_large;
  }
  if (!fake().has_cooperative) return not_supported;
  give_kernel(stream_of(stream), *static_cast<FakeKernel*>(function), grid, parameters[0]);
  return status_success;
}

}  // extern "C"
