#pragma once

// Tested by: tests/unit/engine/communicator/exchange_test.cpp

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "engine/executor/rank_cores.h"
#include "engine/shm/doorbell.h"
#include "engine/shm/shared_memory.h"

namespace espalier::engine {

/// Names a piece of a process' shared memory to its peers. The generation tells a buffer from a later one in its place,
/// so an address is never taken for what it used to be.
struct SharedBufferId {
  static constexpr std::uint32_t none = UINT32_MAX;
  std::uint32_t slot = none;
  std::uint32_t generation = 0;

  [[nodiscard]] bool is_none() const { return slot == none; }
  friend bool operator==(const SharedBufferId&, const SharedBufferId&) = default;
};

/// A place in shared memory.
struct SharedPlace {
  SharedBufferId buffer;
  std::int64_t offset = 0;
  friend bool operator==(const SharedPlace&, const SharedPlace&) = default;
};

/// The memory that a process shares with the other ranks of its machine, and theirs as far as it is mapped here.
/// Thread-safe.
class SharedDomain {
 public:
  /// The most buffers that a process has at once.
  static constexpr std::uint32_t max_buffers = 4096;

  /// `device`, whose queues work on what is mapped here, outlives this. Errors: unavailable, as SharedMemory::create.
  static Result<std::unique_ptr<SharedDomain>> create(Device& device);
  ~SharedDomain();
  SharedDomain(const SharedDomain&) = delete;
  SharedDomain& operator=(const SharedDomain&) = delete;

  /// What a peer needs to `attach` to this process.
  [[nodiscard]] std::string exported_directory() const;
  [[nodiscard]] static std::size_t exported_bytes();
  /// Maps the directory of a peer. Errors: unavailable when its memory cannot be reached from here.
  Result<void> attach(std::uint32_t rank, std::string_view exported);
  [[nodiscard]] bool knows(std::uint32_t rank) const;
  /// Whether the system lets this process read private memory of the peer's (process_vm_readv): where it may trace it.
  /// Requires: knows(rank).
  [[nodiscard]] bool reads(std::uint32_t rank) const;
  /// Copies private memory of the peer's, by its address there. Errors: unavailable. Requires: reads(rank).
  Result<void> read(std::uint32_t rank, std::uint64_t address, std::byte* to, std::int64_t bytes) const;

  struct Allocation {
    std::byte* data = nullptr;
    SharedBufferId id;
  };
  /// Zeroed shared memory. Errors: unavailable; too_large past `max_buffers`.
  Result<Allocation> allocate(std::int64_t bytes);
  /// Shares memory of the caller where it lies. Errors: those of SharedMemory::adopt; too_large past `max_buffers`.
  Result<SharedBufferId> adopt(void* data, std::int64_t bytes);
  /// A name for memory of this rank's device, by what Device::share_memory gave. Errors: those of `allocate`.
  Result<SharedBufferId> name_device_memory(std::string_view shared);
  /// Requires: what `allocate`, `adopt` or `name_device_memory` gave, and no call that uses it.
  void free(SharedBufferId id);

  /// Where a peer's buffer is in this process, until it is freed and `release_freed` is called.
  /// Errors: unavailable when the peer has freed it or it cannot be mapped.
  Result<std::byte*> map(std::uint32_t rank, SharedBufferId id);
  /// As `map`, for memory of the peer's device, as this rank's device reaches it. Errors: those of Device::open_memory.
  Result<std::byte*> open_device_memory(std::uint32_t rank, SharedBufferId id);
  /// As `map`, for as long as the result is kept.
  Result<std::shared_ptr<const SharedMemory>> hold(std::uint32_t rank, SharedBufferId id);
  /// Lets go of what peers have freed: its pages stay theirs as long as they are mapped here. Cost: a load when nothing
  /// was mapped since. Requires: no call under way.
  void release_freed() {
    if (has_mapped_.load(std::memory_order_relaxed)) unmap_freed();
  }
  /// How often `release_freed` has let go of anything: while it stays the same, so does what `map` said.
  [[nodiscard]] std::uint64_t unmap_epoch() const { return unmap_epoch_.load(std::memory_order_relaxed); }

  [[nodiscard]] Doorbell& own_doorbell();
  /// Requires: knows(rank).
  [[nodiscard]] Doorbell& doorbell_of(std::uint32_t rank);
  [[nodiscard]] RankCores::Shown& own_core();
  /// Requires: knows(rank).
  [[nodiscard]] const RankCores::Shown& core_of(std::uint32_t rank) const;

 private:
  struct Directory;
  struct Mapped {
    std::uint32_t generation = 0;
    std::shared_ptr<const SharedMemory> memory;
    std::shared_ptr<std::byte> device_memory;  ///< Opened, where the buffer is the name of some.
  };
  struct Peer {
    std::int64_t process = 0;
    bool is_read = false;  ///< Its private memory, by this process.
    SharedMemory directory;
    std::map<std::uint32_t, Mapped> buffers;  ///< By slot.
  };

  explicit SharedDomain(Device& device) : device_(device) {}
  Result<Allocation> add(SharedMemory memory);
  Result<Mapped*> find_mapped(std::uint32_t rank, SharedBufferId id);
  static void close_freed(Peer& peer);
  void unmap_freed();
  [[nodiscard]] static Directory& directory_in(const SharedMemory& memory);

  Device& device_;
  mutable std::mutex mutex_;
  SharedMemory own_directory_;
  std::vector<SharedMemory> buffers_;  ///< By slot.
  std::map<std::uint32_t, Peer> peers_;
  std::atomic<bool> has_mapped_ = false;
  std::atomic<std::uint64_t> unmap_epoch_ = 0;
};

}  // namespace espalier::engine
