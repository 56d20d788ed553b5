#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/error_text.h"
#include "engine/device/device.h"
#include "engine/memory/available_memory.h"
#include "engine/reduction/copy.h"
#include "engine/reduction/reduce.h"

namespace espalier::engine {
namespace {

class HostQueue final : public DeviceQueue {
 public:
  using DeviceQueue::DeviceQueue;

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    await_release();
    reduction::copy_bytes(to, from, bytes);
  }
  void copy_past_caches(std::byte* to, const std::byte* from, std::size_t bytes) override {
    await_release();
    reduction::copy_bytes_uncached(to, from, bytes);
  }
  void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
              std::span<const void* const> sources, std::size_t element_count) override {
    await_release();
    reduction::find_reduce_to_many(type, operation)(targets.data(), targets.size(), first, sources.data(),
                                                    sources.size(), element_count);
  }
  void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) override {
    await_release();
    reduction::divide_by(type, data, element_count, ranks);
  }

  // Work is done by who gives it: that thread waits.
  std::uint64_t hold() override {
    holds_.fetch_add(1, std::memory_order_relaxed);
    return 0;
  }
  void release(std::uint64_t) override {
    holds_.fetch_sub(1, std::memory_order_release);
    holds_.notify_all();
  }
  void drain(std::chrono::milliseconds) override {}

 private:
  std::uint64_t look() override { return 0; }
  void await_release() const {
    if (holds_.load(std::memory_order_acquire) != 0) [[unlikely]]
      wait();
  }
  /// Apart, so that work that nothing holds needs no room for this on the stack.
  [[gnu::noinline, gnu::cold]] void wait() const {
    while (const std::uint32_t holds = holds_.load(std::memory_order_acquire)) holds_.wait(holds);
  }

  std::atomic<std::uint32_t> holds_ = 0;
};

}  // namespace

Result<std::byte*> HostDevice::allocate(std::int64_t bytes, MemorySpace space) {
  if (space == MemorySpace::device) return fail(ErrorCode::unsupported, "the host has no device memory");
  if (auto checked = check_available(bytes, "memory"); !checked) return tl::unexpected(checked.error());
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (data == MAP_FAILED) {
    return fail(ErrorCode::unavailable, fmt::format("cannot get {} bytes of memory: {}", bytes, error_text(errno)),
                "free memory, or raise ulimit -v");
  }
  return static_cast<std::byte*>(data);
}

void HostDevice::release(std::byte* data, std::int64_t bytes) { munmap(data, static_cast<std::size_t>(bytes)); }

Result<DmaBuf> Device::export_memory(const std::byte*, std::int64_t) {
  return fail(ErrorCode::unsupported, fmt::format("device {} gives no dma-buf", name()));
}

Result<std::unique_ptr<DeviceQueue>> Device::adopt_stream(void*) {
  return fail(ErrorCode::unsupported, fmt::format("device {} has no streams", name()));
}

Result<std::string> Device::share_memory(const std::byte*, std::int64_t) {
  return fail(ErrorCode::unsupported, fmt::format("device {} shares no memory", name()));
}

Result<std::byte*> Device::open_memory(std::string_view) {
  return fail(ErrorCode::unsupported, fmt::format("device {} opens no memory of others", name()));
}

Result<std::unique_ptr<RankKernel>> Device::make_rank_kernel(const RankKernel::Shape&) {
  return fail(ErrorCode::unsupported, fmt::format("device {} has no kernels for whole calls", name()));
}

Result<std::unique_ptr<DeviceQueue>> HostDevice::make_queue() { return std::make_unique<HostQueue>(*this); }

}  // namespace espalier::engine
