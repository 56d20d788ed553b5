#include "engine/shm/shared_domain.h"

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/error_text.h"

namespace espalier::engine {

/// What a process shows to its peers: its doorbell, where it runs, and where its buffers are. Zeroed memory is a valid
/// one.
struct SharedDomain::Directory {
  struct Entry {
    std::atomic<std::uint32_t> generation;  ///< Odd while the slot holds a buffer.
    std::atomic<std::int32_t> fd;
    std::atomic<std::int64_t> bytes;
  };
  std::array<std::uint8_t, 16> token;  ///< Random: proves that the right memory was mapped.
  alignas(128) Doorbell doorbell;
  alignas(128) RankCores::Shown core;
  alignas(128) std::array<Entry, max_buffers> entries;
};

namespace {

/// The form in which a process exports its directory.
struct ExportedDirectory {
  std::int64_t process = 0;
  std::int64_t bytes = 0;
  std::int32_t fd = 0;
  std::array<std::uint8_t, 16> token = {};
  std::int32_t padding = 0;
  std::uint64_t address = 0;  ///< Of the token in the process, for who may read its memory.
};

/// How much of another process' memory is read; -1 and errno where it is not.
ssize_t read_process(std::int64_t process, std::uint64_t address, void* to, std::size_t bytes) {
  const iovec into{to, bytes};
  const iovec from{reinterpret_cast<void*>(address), bytes};
  return process_vm_readv(static_cast<pid_t>(process), &into, 1, &from, 1, 0);
}

/// What a buffer holds that names memory of a device.
struct DeviceMemoryName {
  std::uint32_t size = 0;
  std::array<char, Device::max_shared_bytes> text{};
};

}  // namespace

SharedDomain::Directory& SharedDomain::directory_in(const SharedMemory& memory) {
  return *reinterpret_cast<Directory*>(memory.data());
}

Result<std::unique_ptr<SharedDomain>> SharedDomain::create(Device& device) {
  std::unique_ptr<SharedDomain> domain(new SharedDomain(device));
  auto memory = SharedMemory::create("espalier-directory", sizeof(Directory));
  if (!memory) return tl::unexpected(memory.error());
  domain->own_directory_ = std::move(*memory);
  std::array<std::uint8_t, 16>& token = directory_in(domain->own_directory_).token;
  if (getrandom(token.data(), token.size(), 0) != static_cast<ssize_t>(token.size())) {
    return fail(ErrorCode::unavailable, "the system gives no random bytes");
  }
  return domain;
}

SharedDomain::~SharedDomain() {
  if (own_directory_.data() != nullptr) own_core().store(0, std::memory_order_relaxed);  // Who has left is on no core.
}

std::string SharedDomain::exported_directory() const {
  const ExportedDirectory text{getpid(),
                               own_directory_.bytes(),
                               own_directory_.fd(),
                               directory_in(own_directory_).token,
                               0,
                               reinterpret_cast<std::uint64_t>(directory_in(own_directory_).token.data())};
  return {reinterpret_cast<const char*>(&text), sizeof(text)};
}

std::size_t SharedDomain::exported_bytes() { return sizeof(ExportedDirectory); }

Result<void> SharedDomain::attach(std::uint32_t rank, std::string_view exported) {
  ExportedDirectory told;
  if (exported.size() != sizeof(told)) {
    return fail(ErrorCode::unavailable, fmt::format("rank {} exports its memory in another form", rank),
                "run the same version of espalier on every rank");
  }
  std::memcpy(&told, exported.data(), sizeof(told));
  if (told.bytes != static_cast<std::int64_t>(sizeof(Directory))) {
    return fail(ErrorCode::unavailable, fmt::format("rank {} shares memory of another form", rank),
                "run the same version of espalier on every rank");
  }
  auto memory = SharedMemory::open(told.process, told.fd, told.bytes);
  if (!memory) return tl::unexpected(memory.error());
  if (directory_in(*memory).token != told.token) {
    return fail(ErrorCode::unavailable, fmt::format("process {} is not rank {} of this job here", told.process, rank));
  }
  const std::lock_guard lock(mutex_);
  Peer& peer = peers_[rank];
  peer.process = told.process;
  std::array<std::uint8_t, 16> token{};
  const ssize_t got = read_process(told.process, told.address, token.data(), token.size());
  peer.is_read = got == static_cast<ssize_t>(token.size()) && token == told.token;
  peer.directory = std::move(*memory);
  return {};
}

bool SharedDomain::knows(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return peers_.contains(rank);
}

bool SharedDomain::reads(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return peers_.at(rank).is_read;
}

Result<void> SharedDomain::read(std::uint32_t rank, std::uint64_t address, std::byte* to, std::int64_t bytes) const {
  std::int64_t process = 0;
  {
    const std::lock_guard lock(mutex_);
    process = peers_.at(rank).process;
  }
  while (bytes > 0) {
    const ssize_t got = read_process(process, address, to, static_cast<std::size_t>(bytes));
    if (got <= 0) {
      return fail(
          ErrorCode::unavailable,
          fmt::format("the memory of rank {} cannot be read: {}", rank, got == 0 ? "nothing came" : error_text(errno)),
          "see what that rank reports");
    }
    address += static_cast<std::uint64_t>(got);
    to += got;
    bytes -= got;
  }
  return {};
}

Result<SharedDomain::Allocation> SharedDomain::allocate(std::int64_t bytes) {
  constexpr std::int64_t page = 4096;
  const std::int64_t rounded = std::max<std::int64_t>(page, (bytes + page - 1) / page * page);
  auto memory = SharedMemory::create("espalier-buffer", rounded);
  if (!memory) return tl::unexpected(memory.error());
  if (auto pinned = memory->pin(device_); !pinned) return tl::unexpected(pinned.error());
  const std::lock_guard lock(mutex_);
  return add(std::move(*memory));
}

Result<SharedBufferId> SharedDomain::name_device_memory(std::string_view shared) {
  ESPALIER_CHECK(shared.size() <= Device::max_shared_bytes, "a device's name for its memory is short");
  auto page = SharedMemory::create("espalier-name", static_cast<std::int64_t>(sizeof(DeviceMemoryName)));
  if (!page) return tl::unexpected(page.error());
  auto& name = *reinterpret_cast<DeviceMemoryName*>(page->data());
  name.size = static_cast<std::uint32_t>(shared.size());
  std::ranges::copy(shared, name.text.begin());
  const std::lock_guard lock(mutex_);
  const auto added = add(std::move(*page));
  if (!added) return tl::unexpected(added.error());
  return added->id;
}

Result<SharedBufferId> SharedDomain::adopt(void* data, std::int64_t bytes) {
  auto memory = SharedMemory::adopt(data, bytes);
  if (!memory) return tl::unexpected(memory.error());
  const std::lock_guard lock(mutex_);
  auto added = add(std::move(*memory));
  if (!added) return tl::unexpected(added.error());
  return added->id;
}

Result<SharedDomain::Allocation> SharedDomain::add(SharedMemory memory) {
  const auto unused = std::ranges::find_if(buffers_, [](const SharedMemory& other) { return other.data() == nullptr; });
  const auto slot = static_cast<std::uint32_t>(unused - buffers_.begin());
  if (slot == max_buffers) {
    return fail(ErrorCode::too_large, fmt::format("a process has at most {} registered buffers", max_buffers),
                "register fewer, larger buffers");
  }
  if (unused == buffers_.end()) buffers_.emplace_back();
  Directory::Entry& entry = directory_in(own_directory_).entries[slot];
  entry.fd.store(memory.fd(), std::memory_order_relaxed);
  entry.bytes.store(memory.bytes(), std::memory_order_relaxed);
  const std::uint32_t generation = entry.generation.load(std::memory_order_relaxed) + 1;
  entry.generation.store(generation, std::memory_order_release);
  buffers_[slot] = std::move(memory);
  return Allocation{buffers_[slot].data(), {slot, generation}};
}

void SharedDomain::free(SharedBufferId id) {
  const std::lock_guard lock(mutex_);
  Directory::Entry& entry = directory_in(own_directory_).entries[id.slot];
  entry.generation.fetch_add(1, std::memory_order_release);
  buffers_[id.slot] = SharedMemory();
}

Result<std::byte*> SharedDomain::map(std::uint32_t rank, SharedBufferId id) {
  const auto memory = hold(rank, id);
  if (!memory) return tl::unexpected(memory.error());
  return (*memory)->data();
}

Result<std::shared_ptr<const SharedMemory>> SharedDomain::hold(std::uint32_t rank, SharedBufferId id) {
  const std::lock_guard lock(mutex_);
  const auto mapped = find_mapped(rank, id);
  if (!mapped) return tl::unexpected(mapped.error());
  return (*mapped)->memory;
}

Result<std::byte*> SharedDomain::open_device_memory(std::uint32_t rank, SharedBufferId id) {
  const std::lock_guard lock(mutex_);
  const auto mapped = find_mapped(rank, id);
  if (!mapped) return tl::unexpected(mapped.error());
  std::shared_ptr<std::byte>& opened = (*mapped)->device_memory;
  if (opened) return opened.get();
  close_freed(peers_.at(rank));
  const auto& name = *reinterpret_cast<const DeviceMemoryName*>((*mapped)->memory->data());
  const auto size = std::min<std::size_t>(name.size, name.text.size());
  const auto memory = device_.open_memory(std::string_view(name.text.data(), size));
  if (!memory) return tl::unexpected(memory.error());
  opened = std::shared_ptr<std::byte>(*memory, [&device = device_](std::byte* data) { device.close_memory(data); });
  return opened.get();
}

/// Requires: the lock.
Result<SharedDomain::Mapped*> SharedDomain::find_mapped(std::uint32_t rank, SharedBufferId id) {
  const auto known = peers_.find(rank);
  if (known == peers_.end() || id.slot >= max_buffers) {
    return fail(ErrorCode::unavailable, fmt::format("rank {} shares no such memory with this rank", rank));
  }
  Peer& peer = known->second;
  Mapped& mapped = peer.buffers[id.slot];
  if (mapped.memory && mapped.generation == id.generation) return &mapped;
  const Directory::Entry& entry = directory_in(peer.directory).entries[id.slot];
  const auto is_current = [&] { return entry.generation.load(std::memory_order_acquire) == id.generation; };
  const int fd = entry.fd.load(std::memory_order_relaxed);
  const std::int64_t bytes = entry.bytes.load(std::memory_order_relaxed);
  if (!is_current()) {
    return fail(ErrorCode::unavailable, fmt::format("rank {} has deregistered the buffer that it calls with", rank),
                "keep buffers registered until the call has ended on every rank");
  }
  auto memory = SharedMemory::open(peer.process, fd, bytes);
  if (!memory) return tl::unexpected(memory.error());
  if (!is_current()) return fail(ErrorCode::unavailable, fmt::format("rank {} freed its buffer in a call", rank));
  if (auto pinned = memory->pin(device_); !pinned) return tl::unexpected(pinned.error());
  mapped = {id.generation, std::make_shared<const SharedMemory>(std::move(*memory)), nullptr};
  has_mapped_.store(true, std::memory_order_relaxed);
  return &mapped;
}

/// A device may refuse to open memory in whose place it still has some open that its owner has freed.
/// Requires: the lock.
void SharedDomain::close_freed(Peer& peer) {
  const Directory& directory = directory_in(peer.directory);
  for (auto& [slot, mapped] : peer.buffers) {
    if (directory.entries[slot].generation.load(std::memory_order_acquire) == mapped.generation) continue;
    mapped.device_memory.reset();
  }
}

void SharedDomain::unmap_freed() {
  const std::lock_guard lock(mutex_);
  for (auto& [rank, peer] : peers_) {
    const Directory& directory = directory_in(peer.directory);
    std::erase_if(peer.buffers, [&](const auto& buffer) {
      return directory.entries[buffer.first].generation.load(std::memory_order_relaxed) != buffer.second.generation;
    });
  }
  has_mapped_.store(false, std::memory_order_relaxed);
  unmap_epoch_.fetch_add(1, std::memory_order_relaxed);
}

Doorbell& SharedDomain::own_doorbell() { return directory_in(own_directory_).doorbell; }

Doorbell& SharedDomain::doorbell_of(std::uint32_t rank) {
  const std::lock_guard lock(mutex_);
  return directory_in(peers_.at(rank).directory).doorbell;
}

RankCores::Shown& SharedDomain::own_core() { return directory_in(own_directory_).core; }

const RankCores::Shown& SharedDomain::core_of(std::uint32_t rank) const {
  const std::lock_guard lock(mutex_);
  return directory_in(peers_.at(rank).directory).core;
}

}  // namespace espalier::engine
