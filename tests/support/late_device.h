#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/file_descriptor.h"
#include "engine/device/device.h"

namespace espalier::test {

/// How network cards reach the memory of a LateDevice: not at all, as a dma-buf, or by its address as some kernel
/// modules have it (tests/unit/engine/verbs/gpu_memory_test.cpp has the drivers' part).
enum class CardAccess { none, dma_buf, address };

/// Memories that cards reach by their address. Used by any thread.
class CardMemories {
 public:
  static CardMemories& all() {
    static CardMemories memories;
    return memories;
  }
  /// `within`: where the processor finds the memory; null: it ends.
  void set(const void* data, std::byte* within) {
    const std::lock_guard lock(mutex_);
    memories_[data] = within;
  }
  /// Null: none begins there.
  [[nodiscard]] std::byte* find(const void* data) {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(data);
    return found == memories_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::map<const void*, std::byte*> memories_;
};

/// Files of memories that devices share, by number. Used by any thread.
class SharedFiles {
 public:
  static SharedFiles& all() {
    static SharedFiles files;
    return files;
  }
  std::size_t add(const std::shared_ptr<const FileDescriptor>& file) {
    const std::lock_guard lock(mutex_);
    files_.push_back(file);
    return files_.size() - 1;
  }
  /// Null: it was released.
  [[nodiscard]] std::shared_ptr<const FileDescriptor> find(std::size_t number) {
    const std::lock_guard lock(mutex_);
    return number < files_.size() ? files_[number].lock() : nullptr;
  }

 private:
  std::mutex mutex_;
  std::vector<std::weak_ptr<const FileDescriptor>> files_;
};

/// What becomes of a LateDevice's work.
struct LateDeviceOptions {
  std::uint64_t works = UINT64_MAX;  ///< Copies and sums that each queue does.
  bool sticks = false;               ///< The next one never ends; else it fails.
  /// Keeps the most reductions that a queue had at a time.
  std::atomic<std::size_t>* max_reductions = nullptr;
  std::atomic<std::size_t>* allocations = nullptr;  ///< Counts those of the device's own memory.
  std::atomic<std::size_t>* copied = nullptr;       ///< Counts the bytes of all copies.
  std::atomic<std::size_t>* max_copies = nullptr;   ///< Keeps the most copies that a queue had at a time.
  CardAccess cards = CardAccess::none;
  bool shares = false;  ///< Its memory with devices of other ranks.
};

/// Does its work as a GPU would: in order, but not before it was asked about it a few times. Its own memory is out of
/// the processor's reach: a touch ends the process.
class LateDevice final : public engine::Device {
 public:
  explicit LateDevice(LateDeviceOptions options = {}) : options_(options) {}

  [[nodiscard]] std::string_view name() const override { return "late"; }
  Result<std::unique_ptr<engine::DeviceQueue>> make_queue() override;
  Result<std::byte*> allocate(std::int64_t bytes, engine::MemorySpace space) override {
    if (space != engine::MemorySpace::device) return host_.allocate(bytes, space);
    if (options_.allocations != nullptr) ++*options_.allocations;
    FileDescriptor file(memfd_create("late device", MFD_CLOEXEC));
    if (!file.is_open() || ftruncate(file.get(), bytes) != 0) {
      return fail(ErrorCode::unavailable, "no memory for a test");
    }
    return map_file(std::make_shared<FileDescriptor>(std::move(file)), bytes);
  }
  void release(std::byte* data, std::int64_t bytes) override {
    const std::lock_guard lock(mutex_);
    const auto found = memories_.find(data);
    if (found == memories_.end()) return host_.release(data, bytes);
    if (options_.cards == CardAccess::address) CardMemories::all().set(data, nullptr);
    munmap(found->second.within, static_cast<std::size_t>(bytes));
    munmap(data, static_cast<std::size_t>(bytes));
    memories_.erase(found);
  }

  Result<engine::DmaBuf> export_memory(const std::byte* data, std::int64_t bytes) override {
    if (options_.cards != CardAccess::dma_buf) return Device::export_memory(data, bytes);
    const std::lock_guard lock(mutex_);
    const auto after = memories_.upper_bound(const_cast<std::byte*>(data));
    const auto& [begin, memory] = *std::prev(after);
    return engine::DmaBuf{FileDescriptor(dup(memory.file->get())), data - begin};
  }

  [[nodiscard]] bool shares_memory() const override { return options_.shares; }
  /// The memory's file, which others map: the ranks of a test are threads, and find it by its number.
  Result<std::string> share_memory(const std::byte* data, std::int64_t bytes) override {
    if (!options_.shares) return Device::share_memory(data, bytes);
    const std::lock_guard lock(mutex_);
    const auto& [begin, memory] = *std::prev(memories_.upper_bound(const_cast<std::byte*>(data)));
    const Shared told{SharedFiles::all().add(memory.file), memory.bytes, data - begin};
    return std::string(reinterpret_cast<const char*>(&told), sizeof(told));
  }
  Result<std::byte*> open_memory(std::string_view shared) override {
    Shared told;
    if (!options_.shares || shared.size() != sizeof(told)) return Device::open_memory(shared);
    std::memcpy(&told, shared.data(), sizeof(told));
    const auto file = SharedFiles::all().find(told.file);
    if (!file) return fail(ErrorCode::unavailable, "that memory has been released");
    auto data = map_file(file, told.bytes);
    if (!data) return data;
    return *data + told.offset;
  }
  void close_memory(std::byte* data) override {
    std::unique_lock lock(mutex_);
    const auto& [begin, memory] = *std::prev(memories_.upper_bound(data));
    std::byte* const first = begin;
    const std::int64_t bytes = memory.bytes;
    lock.unlock();
    release(first, bytes);
  }

  /// Where the device itself finds what lies at an address.
  [[nodiscard]] std::byte* find(const void* address) {
    auto* data = const_cast<std::byte*>(static_cast<const std::byte*>(address));
    const std::lock_guard lock(mutex_);
    const auto after = memories_.upper_bound(data);
    if (after == memories_.begin()) return data;
    const auto& [begin, memory] = *std::prev(after);
    return data - begin < memory.bytes ? memory.within + (data - begin) : data;
  }
  [[nodiscard]] const LateDeviceOptions& options() const { return options_; }

 private:
  struct Memory {
    std::byte* within = nullptr;
    std::int64_t bytes = 0;
    std::shared_ptr<const FileDescriptor> file;
  };
  struct Shared {
    std::size_t file = 0;
    std::int64_t bytes = 0;
    std::int64_t offset = 0;
  };

  Result<std::byte*> map_file(std::shared_ptr<const FileDescriptor> file, std::int64_t bytes) {
    const auto size = static_cast<std::size_t>(bytes);
    void* within = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, file->get(), 0);
    void* data = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (within == MAP_FAILED || data == MAP_FAILED) return fail(ErrorCode::unavailable, "no memory for a test");
    const std::lock_guard lock(mutex_);
    memories_[static_cast<std::byte*>(data)] = {static_cast<std::byte*>(within), bytes, std::move(file)};
    if (options_.cards == CardAccess::address) CardMemories::all().set(data, static_cast<std::byte*>(within));
    return static_cast<std::byte*>(data);
  }

  LateDeviceOptions options_;
  engine::HostDevice host_;
  std::mutex mutex_;
  std::map<std::byte*, Memory> memories_;
};

class LateQueue final : public engine::DeviceQueue {
 public:
  LateQueue(LateDevice& device, std::unique_ptr<engine::DeviceQueue> host)
      : DeviceQueue(device), late_(device), host_(std::move(host)) {}

  void copy(std::byte* to, const std::byte* from, std::size_t bytes) override {
    if (late_.options().copied != nullptr) *late_.options().copied += bytes;
    give({[this, to, from, bytes] { host_->copy(late_.find(to), late_.find(from), bytes); }});
  }
  void reduce(ElementType type, ReduceOperation operation, std::span<void* const> targets, const void* first,
              std::span<const void* const> sources, std::size_t element_count) override {
    std::vector<void*> to;
    std::vector<const void*> from;
    for (void* target : targets) to.push_back(late_.find(target));
    for (const void* source : sources) from.push_back(late_.find(source));
    const void* own = late_.find(first);
    give({[=, this] { host_->reduce(type, operation, to, own, from, element_count); }, true});
  }
  void divide(ElementType type, void* data, std::size_t element_count, std::uint32_t ranks) override {
    give({[=, this] { host_->divide(type, late_.find(data), element_count, ranks); }});
  }
  std::uint64_t hold() override {
    const std::lock_guard lock(mutex_);
    work_.push_back({{}, false, ++tickets_});
    return tickets_;
  }
  void release(std::uint64_t ticket) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(work_, [&](const Work& work) { return work.ticket == ticket; });
  }
  void drain(std::chrono::milliseconds) override {
    const std::lock_guard lock(mutex_);
    std::erase_if(work_, [](const Work& work) { return work.ticket == 0; });
    done_ = mark();
    note_done(done_);
  }

 private:
  static constexpr std::uint64_t patience = 3;
  struct Work {
    std::function<void()> act;
    bool is_reduction = false;
    std::uint64_t ticket = 0;  ///< Of a hold; 0 for work.
  };

  void give(Work work) {
    const std::lock_guard lock(mutex_);
    work_.push_back(std::move(work));
    note_given();
    keep_most(late_.options().max_reductions, true);
    keep_most(late_.options().max_copies, false);
  }
  void keep_most(std::atomic<std::size_t>* kept, bool is_reduction) {
    if (kept == nullptr) return;
    const auto now = static_cast<std::size_t>(std::ranges::count(work_, is_reduction, &Work::is_reduction));
    std::size_t most = kept->load();
    while (most < now && !kept->compare_exchange_weak(most, now)) {
    }
  }
  std::uint64_t look() override {
    const std::lock_guard lock(mutex_);
    if (work_.empty() || work_.front().ticket != 0 || has_failed() || ++asked_ % patience != 0) return done_;
    if (works_ == late_.options().works) {
      if (!late_.options().sticks) fail_with({ErrorCode::unavailable, "it is worn out", "take another one"});
      return done_;
    }
    work_.front().act();
    work_.pop_front();
    ++works_;
    note_done(++done_);
    return done_;
  }

  LateDevice& late_;
  std::unique_ptr<engine::DeviceQueue> host_;
  std::mutex mutex_;
  std::deque<Work> work_;
  std::uint64_t tickets_ = 0;
  std::uint64_t done_ = 0;   ///< Or dropped.
  std::uint64_t works_ = 0;  ///< That were done.
  std::uint64_t asked_ = 0;
};

inline Result<std::unique_ptr<engine::DeviceQueue>> LateDevice::make_queue() {
  auto host = host_.make_queue();
  if (!host) return tl::unexpected(host.error());
  return std::make_unique<LateQueue>(*this, std::move(*host));
}

}  // namespace espalier::test
