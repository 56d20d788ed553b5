#include "engine/memory/private_at_fork.h"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

namespace espalier::engine {
namespace {

struct Region {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  void* copy = nullptr;  ///< What was in it at the last fork.
};

void forget_copy(Region& region) {
  if (region.copy != nullptr) munmap(std::exchange(region.copy, nullptr), region.bytes);
}

/// Where there is no memory for it, the child does without the region.
void make_copy(Region& region) {
  if (region.copy != nullptr && std::memcmp(region.copy, region.data, region.bytes) == 0) return;
  if (region.copy == nullptr) {
    void* memory = mmap(nullptr, region.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return;
    region.copy = memory;
  }
  std::memcpy(region.copy, region.data, region.bytes);
}

/// What is private at forks in this process, which is what forks act on.
struct Regions {
  std::mutex mutex;  ///< Held across a fork.
  std::vector<Region> all;
  std::atomic<bool> has_copies{false};

  /// Never destroyed: processes fork while they end, too.
  static Regions& of_process() {
    static auto* const regions = [] {
      pthread_atfork(&before_fork, &after_fork, &in_child);
      return new Regions;
    }();
    return *regions;
  }

 private:
  static void before_fork() {
    Regions& regions = of_process();
    regions.mutex.lock();
    std::ranges::for_each(regions.all, make_copy);
    if (!regions.all.empty()) regions.has_copies.store(true, std::memory_order_relaxed);
  }
  static void after_fork() { of_process().mutex.unlock(); }
  /// Allocates and frees nothing.
  static void in_child() {
    Regions& regions = of_process();
    for (const Region& region : regions.all) {
      if (region.copy == nullptr) continue;
      mremap(region.copy, region.bytes, region.bytes, MREMAP_MAYMOVE | MREMAP_FIXED, region.data);
    }
    regions.all.clear();
    regions.has_copies.store(false, std::memory_order_relaxed);
    regions.mutex.unlock();
  }
};

}  // namespace

PrivateAtFork::PrivateAtFork(std::byte* data, std::int64_t bytes) : data_(data) {
  Regions& regions = Regions::of_process();
  const std::lock_guard lock(regions.mutex);
  regions.all.push_back({data, static_cast<std::size_t>(bytes), nullptr});
}

PrivateAtFork::~PrivateAtFork() {
  if (data_ == nullptr) return;
  Regions& regions = Regions::of_process();
  const std::lock_guard lock(regions.mutex);
  const auto found = std::ranges::find(regions.all, data_, &Region::data);
  if (found == regions.all.end()) return;  // In a child.
  forget_copy(*found);
  *found = regions.all.back();
  regions.all.pop_back();
}

void PrivateAtFork::forget_copies() {
  static Regions& regions = Regions::of_process();
  if (!regions.has_copies.load(std::memory_order_relaxed)) return;
  const std::unique_lock lock(regions.mutex, std::try_to_lock);
  if (!lock.owns_lock()) return;  // A fork is under way: the next one then.
  std::ranges::for_each(regions.all, forget_copy);
  regions.has_copies.store(false, std::memory_order_relaxed);
}

}  // namespace espalier::engine
