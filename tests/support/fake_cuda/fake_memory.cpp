// The fake driver: memory of GPUs, of the processor, and of other processes.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "tests/support/fake_cuda/fake_driver.h"

using namespace espalier::test;  // NOLINT: what follows are the library's own names.
using espalier::engine::cuda::DeviceAddress;
using espalier::engine::cuda::DriverStatus;
using espalier::engine::cuda::IpcHandle;

namespace {

/// What the fake driver writes into a handle.
struct FakeHandle {
  pid_t process = 0;
  int file = -1;
  std::size_t bytes = 0;
};

/// The number of a file that a path leads to, 0 where it leads nowhere.
std::uint64_t file_number(const std::string& path) {
  struct stat of {};
  return stat(path.c_str(), &of) == 0 ? of.st_ino : 0;
}

/// Whether its owner has given some memory of this path's process back that is still open here.
bool has_freed_memory_open(pid_t process) {
  const std::string of_process = "/proc/" + std::to_string(process) + "/fd/";
  return std::ranges::any_of(fake().opened, [&](const auto& each) {
    const auto& [path, number] = each.second;
    return path.starts_with(of_process) && file_number(path) != number;
  });
}

}  // namespace

extern "C" {

DriverStatus cuMemAlloc_v2(DeviceAddress* address, std::size_t bytes) {
  ENTER(cuMemAlloc_v2);
  if (!may_allocate()) return stream_capture_unsupported;
  if (bytes > fake().memory - fake().used) return out_of_memory;
  const int file = memfd_create("a fake GPU's memory", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, static_cast<off_t>(whole_pages(bytes))) != 0) return out_of_memory;
  void* const data = mmap(nullptr, whole_pages(bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (data == MAP_FAILED) return out_of_memory;
  std::memset(data, 0xEE, bytes);  // As memory is: not zero.
  *address = reinterpret_cast<DeviceAddress>(data);
  fake().used += bytes;
  fake().memories[*address] = {bytes, file};
  fake().reachable[*address] = whole_pages(bytes);
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
  fake().reachable.erase(address);
  munmap(reinterpret_cast<void*>(address), whole_pages(memory.bytes));
  close(memory.file);
  return status_success;
}

DriverStatus cuMemHostAlloc(void** data, std::size_t bytes, unsigned) {
  ENTER(cuMemHostAlloc);
  if (!may_allocate()) return stream_capture_unsupported;
  DeviceAddress address = 0;
  const DriverStatus given = give(&address, bytes);
  *data = reinterpret_cast<void*>(address);
  if (given == status_success) fake().reachable[address] = whole_pages(bytes);
  return given;
}

DriverStatus cuMemFreeHost(void* data) {
  const std::lock_guard lock(fake().mutex);
  fake().reachable.erase(reinterpret_cast<DeviceAddress>(data));
  std::free(data);
  return status_success;
}

DriverStatus cuMemHostRegister_v2(void* data, std::size_t bytes, unsigned) {
  ENTER(cuMemHostRegister_v2);
  if (fake().reaches(reinterpret_cast<DeviceAddress>(data), 1)) return host_memory_already_registered;
  fake().reachable[reinterpret_cast<DeviceAddress>(data)] = bytes;
  return status_success;
}

DriverStatus cuMemHostUnregister(void* data) {
  ENTER(cuMemHostUnregister);
  return fake().reachable.erase(reinterpret_cast<DeviceAddress>(data)) == 1 ? status_success : invalid_value;
}

DriverStatus cuMemGetAddressRange_v2(DeviceAddress* begin, std::size_t* bytes, DeviceAddress address) {
  ENTER(cuMemGetAddressRange_v2);
  const auto after = fake().memories.upper_bound(address);
  if (after == fake().memories.begin()) return not_found;
  const auto& [first, memory] = *std::prev(after);
  if (address - first >= memory.bytes) return not_found;
  *begin = first;
  *bytes = memory.bytes;
  return status_success;
}

DriverStatus cuIpcGetMemHandle(IpcHandle* handle, DeviceAddress address) {
  ENTER(cuIpcGetMemHandle);
  const auto found = fake().memories.find(address);
  if (!fake().has_ipc) return not_supported;
  if (found == fake().memories.end()) return invalid_value;
  const FakeHandle told{getpid(), found->second.file, found->second.bytes};
  std::memcpy(handle->bytes, &told, sizeof(told));
  return status_success;
}

/// Not in the process whose memory it is, as the driver has it; nor in the place of memory that was freed and is still
/// open, which the driver says when the two lie over each other.
DriverStatus cuIpcOpenMemHandle_v2(DeviceAddress* address, IpcHandle handle, unsigned flags) {
  ENTER(cuIpcOpenMemHandle_v2);
  FakeHandle told;
  std::memcpy(&told, handle.bytes, sizeof(told));
  if (flags != espalier::engine::cuda::ipc_lazy_peer_access || told.process == getpid()) return invalid_value;
  if (!fake().has_peers) return peer_access_unsupported;
  const std::string path = "/proc/" + std::to_string(told.process) + "/fd/" + std::to_string(told.file);
  if (has_freed_memory_open(told.process)) return espalier::engine::cuda::status_already_mapped;
  const int file = open(path.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return invalid_value;
  void* const data = mmap(nullptr, whole_pages(told.bytes), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  close(file);
  if (data == MAP_FAILED) return out_of_memory;
  *address = reinterpret_cast<DeviceAddress>(data);
  fake().reachable[*address] = whole_pages(told.bytes);
  fake().opened[*address] = {path, file_number(path)};
  return status_success;
}

DriverStatus cuIpcCloseMemHandle(DeviceAddress address) {
  ENTER(cuIpcCloseMemHandle);
  const auto found = fake().reachable.find(address);
  if (found == fake().reachable.end()) return invalid_value;
  munmap(reinterpret_cast<void*>(address), found->second);
  fake().reachable.erase(found);
  fake().opened.erase(address);
  return status_success;
}

}  // extern "C"
