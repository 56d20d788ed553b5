#include "python/torch/page_allocator.h"

#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <vector>

namespace espalier::python {
namespace {

constexpr std::size_t min_bytes = 64 << 10;
constexpr std::size_t max_watched = 1024;  ///< More than that were not worked on twice soon.

enum class State : std::uint8_t { worked_on, refused, shared, freed };  // `freed`: but still shared

bool is_registered(State state) { return state == State::shared || state == State::freed; }

/// A memory that a call has worked on.
struct Watched {
  const SharedTensors* group = nullptr;
  State state = State::worked_on;
};

struct WatchedMemories {
  std::mutex mutex;
  std::map<void*, Watched> memories;
  std::atomic<std::size_t> count = 0;  ///< Lets most that is freed go without the lock.
  std::atomic<std::size_t> freed = 0;  ///< Of those, what waits for its group.
};

/// Never destroyed: tensors are freed at the process's end as well.
WatchedMemories& watched() {
  static auto* const all = new WatchedMemories;
  return *all;
}

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + page_size() - 1) / page_size() * page_size(); }

/// Whether the memory may go now; else its group frees it.
bool may_free(void* data) {
  WatchedMemories& all = watched();
  if (reinterpret_cast<std::uintptr_t>(data) % page_size() != 0 || all.count.load(std::memory_order_acquire) == 0)
    return true;
  const std::lock_guard lock(all.mutex);
  const auto found = all.memories.find(data);
  if (found == all.memories.end()) return true;
  if (found->second.state == State::shared) {
    found->second.state = State::freed;
    ++all.freed;
    return false;
  }
  all.memories.erase(found);
  --all.count;
  return true;
}

void free_memory(void* data) {
  c10::profiledCPUMemoryReporter().Delete(data);
  if (may_free(data)) c10::free_cpu(data);
}

/// As PyTorch's own, which also says when there is no memory, but for where it begins and ends.
c10::DataPtr allocate_memory(std::size_t bytes) {
  void* data = nullptr;
  if (bytes < min_bytes || posix_memalign(&data, page_size(), whole_pages(bytes)) != 0) data = c10::alloc_cpu(bytes);
  c10::profiledCPUMemoryReporter().New(data, bytes);
  return {data, data, &free_memory, c10::Device(c10::DeviceType::CPU)};
}

/// PyTorch 1.13 and the first of 2.x allocate by a const function, later ones by another, and have copy_data besides:
/// what there is in the base is overridden, the rest is never called.
#if defined(__GNUC__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Woverloaded-virtual"
#endif
struct PageAllocator final : c10::Allocator {
  c10::DataPtr allocate(std::size_t bytes) const { return allocate_memory(bytes); }
  c10::DataPtr allocate(std::size_t bytes) { return allocate_memory(bytes); }
  c10::DeleterFnPtr raw_deleter() const override { return &free_memory; }
  void copy_data(void* to, const void* from, std::size_t bytes) const { std::memcpy(to, from, bytes); }
};
#if defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/// The memory that belongs to a tensor alone, where it is whole pages.
void* own_pages(const at::Tensor& tensor) {
  const auto& memory = tensor.storage().data_ptr();
  const bool is_whole =
      tensor.is_contiguous() && tensor.storage_offset() == 0 && tensor.nbytes() == tensor.storage().nbytes();
  return is_whole && tensor.nbytes() >= min_bytes && memory.get_deleter() == &free_memory ? memory.get() : nullptr;
}

}  // namespace

void allocate_tensors_in_pages() {
  static auto* const allocator = new PageAllocator;
  c10::SetCPUAllocator(allocator, 1);
}

void SharedTensors::note(const at::Tensor& tensor) {
  release_freed();
  void* const data = own_pages(tensor);
  if (data == nullptr) return;
  WatchedMemories& all = watched();
  {
    const std::lock_guard lock(all.mutex);
    const auto [at, is_new] = all.memories.try_emplace(data, Watched{this});
    if (is_new) {
      ++all.count;
      if (all.count > max_watched) {
        std::erase_if(all.memories, [](const auto& memory) { return memory.second.state == State::worked_on; });
        all.count = all.memories.size();
      }
      return;
    }
    if (at->second.group != this || at->second.state != State::worked_on) return;
  }
  // The call keeps the tensor, so nobody frees it meanwhile.
  const bool is_shared = ranks_.register_buffer(data, whole_pages(tensor.nbytes())) == nullptr;
  const std::lock_guard lock(all.mutex);
  all.memories[data].state = is_shared ? State::shared : State::refused;  // Then it goes as it went before.
}

void SharedTensors::release_freed() {
  WatchedMemories& all = watched();
  if (all.freed.load(std::memory_order_acquire) == 0) return;
  std::vector<void*> gone;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& [data, memory] : all.memories) {
      if (memory.group == this && memory.state == State::freed) gone.push_back(data);
    }
    for (void* const data : gone) all.memories.erase(data);
    all.count = all.memories.size();
    all.freed -= gone.size();
  }
  for (void* const data : gone) {
    static_cast<void>(ranks_.deregister_buffer(data));
    c10::free_cpu(data);
  }
}

void SharedTensors::release_all() {
  WatchedMemories& all = watched();
  std::vector<void*> shared;
  {
    const std::lock_guard lock(all.mutex);
    for (const auto& [data, memory] : all.memories) {
      if (memory.group == this && is_registered(memory.state)) shared.push_back(data);
    }
  }
  for (void* const data : shared) static_cast<void>(ranks_.deregister_buffer(data));
  std::vector<void*> gone;
  {
    const std::lock_guard lock(all.mutex);
    for (void* const data : shared) {
      if (all.memories.at(data).state == State::freed) gone.push_back(data);
    }
    std::erase_if(all.memories, [this](const auto& memory) { return memory.second.group == this; });
    all.count = all.memories.size();
    all.freed -= gone.size();
  }
  for (void* const data : gone) c10::free_cpu(data);
}

}  // namespace espalier::python
