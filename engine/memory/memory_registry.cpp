#include "engine/memory/memory_registry.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "engine/transport/transport.h"

namespace espalier::engine {

MemoryRegistry::~MemoryRegistry() {
  for (auto& [begin, memory] : memories_) give_back(memory);
}

Result<std::byte*> MemoryRegistry::allocate(std::int64_t bytes, MemorySpace space) {
  constexpr std::int64_t page = 4096;
  Memory memory;
  memory.bytes = std::max<std::int64_t>(page, (bytes + page - 1) / page * page);
  memory.space = space;
  for (const auto& transport : transports_) {
    auto made = transport->allocate(memory.bytes, space);
    if (!made) return tl::unexpected(made.error());
    if (made->data == nullptr) continue;
    memory.data = made->data;
    memory.registrations.emplace_back(transport.get(), std::move(made->registration));
    break;
  }
  if (memory.data == nullptr) {
    const auto data = device_.allocate(memory.bytes, space);
    if (!data) return tl::unexpected(data.error());
    memory.data = *data;
    memory.is_allocated = true;
  }
  const std::lock_guard lock(mutex_);
  if (auto done = complete(memory); !done) {
    give_back(memory);
    return tl::unexpected(done.error());
  }
  return keep(std::move(memory));
}

Result<std::byte*> MemoryRegistry::allocate_for_caller(std::int64_t bytes, MemorySpace space) {
  auto data = allocate(bytes, space);
  if (!data || space != MemorySpace::host) return data;
  const std::lock_guard lock(mutex_);
  Memory& memory = memories_.at(*data);
  // What the device allocated on the host is private as it is.
  if (!memory.is_allocated) memory.private_at_fork = PrivateAtFork(memory.data, memory.bytes);
  return data;
}

Result<void> MemoryRegistry::add(void* data, std::int64_t bytes, MemorySpace space) {
  // Whole pages, for that is what transports can share, and so that one call suits them all.
  const std::int64_t page = sysconf(_SC_PAGESIZE);
  if (bytes <= 0 || bytes % page != 0 ||
      reinterpret_cast<std::uintptr_t>(data) % static_cast<std::uint64_t>(page) != 0) {
    return fail(ErrorCode::invalid_input,
                fmt::format("a buffer of {} bytes at {} is not whole pages of {} bytes", bytes, fmt::ptr(data), page),
                fmt::format("take it from aligned_alloc({}, ...) or mmap, or let the communicator allocate it", page));
  }
  auto* begin = static_cast<std::byte*>(data);
  const std::lock_guard lock(mutex_);
  const auto after = memories_.lower_bound(begin + bytes);
  if (after != memories_.begin()) {
    const auto& [start, before] = *std::prev(after);
    if (start + before.bytes > begin) {
      return fail(ErrorCode::invalid_input,
                  fmt::format("the buffer of {} bytes at {} overlaps one that is registered", bytes, fmt::ptr(data)),
                  "register memory once, and deregister it before you register it in another way");
    }
  }
  Memory memory;
  memory.data = begin;
  memory.bytes = bytes;
  memory.space = space;
  if (auto done = complete(memory); !done) return done;
  if (space != MemorySpace::device) {  // Last: a transport may have put other pages there.
    if (auto pinned = device_.pin(begin, bytes); !pinned) return pinned;
    memory.is_pinned = true;
  }
  keep(std::move(memory));
  return {};
}

void MemoryRegistry::release(const void* data) {
  const std::lock_guard lock(mutex_);
  const auto found = memories_.find(static_cast<const std::byte*>(data));
  if (found == memories_.end()) return;
  Memory memory = std::move(found->second);
  memories_.erase(found);
  generation_.fetch_add(1, std::memory_order_relaxed);
  give_back(memory);
}

MemoryPlace MemoryRegistry::find(const void* data, std::int64_t bytes) const {
  const auto* begin = static_cast<const std::byte*>(data);
  const std::lock_guard lock(mutex_);
  const auto after = memories_.upper_bound(begin);
  if (after == memories_.begin()) return {};
  const auto& [start, memory] = *std::prev(after);
  const std::int64_t offset = begin - start;
  if (offset + bytes > memory.bytes) return {};
  return {&memory, offset};
}

Result<void> MemoryRegistry::complete(Memory& memory) {
  for (const auto& transport : transports_) {
    if (memory.registration(transport.get()) != nullptr) continue;
    auto registered = transport->register_memory(memory.data, memory.bytes, memory.space, device_);
    if (!registered) return tl::unexpected(registered.error());
    if (*registered) memory.registrations.emplace_back(transport.get(), std::move(*registered));
  }
  return {};
}

std::byte* MemoryRegistry::keep(Memory memory) {
  memory.generation = generation_.fetch_add(1, std::memory_order_relaxed) + 1;
  std::byte* const data = memory.data;
  memories_[data] = std::move(memory);
  return data;
}

void MemoryRegistry::give_back(Memory& memory) {
  memory.private_at_fork = {};  // A fork would copy what is not there any more.
  if (memory.is_pinned) device_.unpin(memory.data);
  memory.registrations.clear();
  if (memory.is_allocated) device_.release(memory.data, memory.bytes);
}

}  // namespace espalier::engine
