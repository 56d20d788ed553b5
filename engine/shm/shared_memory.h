#pragma once

// Tested by: tests/unit/engine/communicator/live_groups_test.cpp

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/file_descriptor.h"
#include "base/result.h"
#include "engine/device/device.h"

namespace espalier::engine {

/// Memory that other processes of this machine can map: a memfd, so that nothing has a name that could be left behind
/// or taken by another user, and the size of /dev/shm does not matter. Its size is sealed.
class SharedMemory {
 public:
  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept { swap(other); }
  SharedMemory& operator=(SharedMemory&& other) noexcept {
    SharedMemory moved(std::move(other));
    swap(moved);
    return *this;
  }
  ~SharedMemory();

  /// Zeroed memory; all of it is there when this returns.
  /// Errors: unavailable, with the bytes asked for, when memory, file descriptors or a limit do not allow it.
  static Result<SharedMemory> create(const char* name, std::int64_t bytes);
  /// Moves whole pages of this process into shared memory, where they are, with what is in them; the destructor moves
  /// them back into private memory. Nobody else may use them meanwhile. Locked pages stay locked.
  /// Requires: whole pages that check_replaceable allows. Errors: unavailable as `create`. The pages are then as they
  /// were.
  static Result<SharedMemory> adopt(void* data, std::int64_t bytes);
  /// Maps memory of another process. Errors: unavailable when it is not reachable from here, or its size is not sealed.
  static Result<SharedMemory> open(std::int64_t process, int fd, std::int64_t bytes);

  /// Lets a device's queues reach it as long as it is mapped here. The device outlives it. Errors: those of
  /// Device::pin.
  Result<void> pin(Device& device);

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] int fd() const { return fd_.get(); }

 private:
  void swap(SharedMemory& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(fd_, other.fd_);
    std::swap(is_adopted_, other.is_adopted_);
    std::swap(pinned_by_, other.pinned_by_);
  }

  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
  FileDescriptor fd_;  ///< Only of memory that this process created.
  bool is_adopted_ = false;
  Device* pinned_by_ = nullptr;
};

}  // namespace espalier::engine
