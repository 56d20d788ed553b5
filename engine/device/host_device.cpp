#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <system_error>

#include "engine/device/device.h"
#include "engine/memory/available_memory.h"
#include "engine/reduction/copy.h"
#include "engine/reduction/reduce.h"

namespace espalier::engine {

Result<std::byte*> HostDevice::allocate(std::int64_t bytes, MemorySpace space) {
  if (space == MemorySpace::device) return fail(ErrorCode::unsupported, "the host has no device memory");
  if (auto checked = check_available(bytes, "memory"); !checked) return tl::unexpected(checked.error());
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) {
    return fail(ErrorCode::unavailable,
                fmt::format("cannot get {} bytes of memory: {}", bytes, std::generic_category().message(errno)),
                "free memory, or raise ulimit -v");
  }
  return static_cast<std::byte*>(data);
}

void HostDevice::release(std::byte* data, std::int64_t bytes) { munmap(data, static_cast<std::size_t>(bytes)); }

void HostDevice::copy(std::byte* to, const std::byte* from, std::size_t bytes) { copy_bytes(to, from, bytes); }

void HostDevice::reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
                        std::span<const void* const> sources, std::size_t element_count) {
  find_reduce_to_many(type, operation)(targets.data(), targets.size(), first, sources.data(), sources.size(),
                                       element_count);
}

void HostDevice::divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) {
  divide_by(type, data, element_count, ranks);
}

}  // namespace espalier::engine
