#include "engine/shm/shared_memory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error_text.h"
#include "engine/memory/available_memory.h"
#include "engine/memory/page_map.h"

namespace espalier::engine {
namespace {

/// The size stays what it is.
constexpr int size_seals = F_SEAL_SHRINK | F_SEAL_GROW;

const char* help_for(int error) {
  switch (error) {
    case EMFILE:
    case ENFILE: return "raise the number of open files (ulimit -n)";
    case EFBIG: return "raise the file size limit (ulimit -f)";
    default: return "free memory, or raise the memory limit of this container";
  }
}

/// Growing a file past the limit would end the process with a signal.
bool is_past_size_limit(std::int64_t bytes) {
  rlimit limit{};
  return getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
         static_cast<rlim_t>(bytes) > limit.rlim_cur;
}

/// Children do not inherit it: what they wrote there would be written for this process and its peers.
Result<std::byte*> map(int fd, std::int64_t bytes) {
  const auto size = static_cast<std::size_t>(bytes);
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED || madvise(memory, size, MADV_DONTFORK) != 0) {
    const int error = errno;
    if (memory != MAP_FAILED) munmap(memory, size);
    return fail(ErrorCode::unavailable,
                fmt::format("cannot map {} bytes of shared memory: {}", bytes, error_text(error)),
                "free memory or raise ulimit -v");
  }
  return static_cast<std::byte*>(memory);
}

/// Puts pages where others are, which are gone then. False, with errno: all is as before.
bool replace_pages(void* old, void* pages, std::size_t bytes) {
  return mremap(pages, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, old) != MAP_FAILED;
}

/// Puts private pages where those of a file are shared, with what is in them. They are moved there before they are
/// touched, which is how the system takes them for one with the private pages beside them: those that were moved later
/// would stay mappings of their own, of which a process may have only so many. False: all is as before.
bool make_private(std::byte* data, std::size_t size, int fd) {
  void* contents = mmap(nullptr, size, PROT_READ, MAP_SHARED, fd, 0);
  if (contents == MAP_FAILED) return false;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool is_replaced = pages != MAP_FAILED && replace_pages(data, pages, size);
  if (is_replaced) std::memcpy(data, contents, size);
  if (pages != MAP_FAILED && !is_replaced) munmap(pages, size);
  munmap(contents, size);
  return is_replaced;
}

}  // namespace

SharedMemory::~SharedMemory() {
  if (data_ == nullptr) return;
  if (pinned_by_ != nullptr) pinned_by_->unpin(data_);
  const auto size = static_cast<std::size_t>(bytes_);
  if (!is_adopted_) {
    munmap(data_, size);
    return;
  }
  const bool was_locked = is_locked(data_, bytes_);
  // Where memory is short they stay as they are; peers and children do not reach them any more.
  if (make_private(data_, size, fd()) && was_locked) mlock(data_, size);
}

Result<void> SharedMemory::pin(Device& device) {
  auto pinned = device.pin(data_, bytes_);
  if (pinned) pinned_by_ = &device;
  return pinned;
}

Result<SharedMemory> SharedMemory::adopt(void* data, std::int64_t bytes) {
  auto memory = create("espalier-buffer", bytes);
  if (!memory) return memory;
  const auto size = static_cast<std::size_t>(bytes);
  std::memcpy(memory->data_, data, size);
  // As the pages that they replace: else a lock would be lost without a word.
  const bool is_ready = !is_locked(data, bytes) || mlock(memory->data_, size) == 0;
  if (!is_ready || !replace_pages(data, memory->data_, size)) {
    return fail(ErrorCode::unavailable,
                fmt::format("cannot share a buffer of {} bytes at {}: {}", bytes, fmt::ptr(data), error_text(errno)),
                "let the communicator allocate it");
  }
  memory->data_ = static_cast<std::byte*>(data);
  memory->is_adopted_ = true;
  return memory;
}

Result<SharedMemory> SharedMemory::create(const char* name, std::int64_t bytes) {
  if (auto checked = check_available(bytes, "shared memory"); !checked) return tl::unexpected(checked.error());
  SharedMemory memory;
  memory.fd_.reset(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory.fd_.is_open()) {
    return fail(ErrorCode::unavailable, fmt::format("cannot create shared memory: {}", error_text(errno)),
                help_for(errno));
  }
  // Reserving the pages now turns a lack of memory into this error instead of a signal at the first access.
  const int error = is_past_size_limit(bytes) ? EFBIG : posix_fallocate(memory.fd(), 0, bytes);
  if (error != 0) {
    return fail(ErrorCode::unavailable,
                fmt::format("cannot get {} bytes of shared memory: {}", bytes, error_text(error)), help_for(error));
  }
  // From now on nobody can make it shorter: a rank that touched what is gone would die of a signal.
  if (fcntl(memory.fd(), F_ADD_SEALS, size_seals | F_SEAL_SEAL) != 0) {
    return fail(ErrorCode::unavailable, fmt::format("cannot seal shared memory: {}", error_text(errno)));
  }
  auto mapped = map(memory.fd(), bytes);
  if (!mapped) return tl::unexpected(mapped.error());
  memory.data_ = *mapped;
  memory.bytes_ = bytes;
  madvise(memory.data_, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // Where the system allows; else no matter.
  return memory;
}

Result<SharedMemory> SharedMemory::open(std::int64_t process, int fd, std::int64_t bytes) {
  const std::string path = fmt::format("/proc/{}/fd/{}", process, fd);
  const FileDescriptor file(::open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (!file.is_open() || fstat(file.get(), &status) != 0) {
    const int error = errno;
    return fail(ErrorCode::unavailable, fmt::format("cannot open {}: {}", path, error_text(error)),
                error == EMFILE || error == ENFILE ? help_for(error) : "see whether that process still runs");
  }
  const int seals = fcntl(file.get(), F_GET_SEALS);
  const bool is_sealed = seals >= 0 && (seals & size_seals) == size_seals;
  if (!S_ISREG(status.st_mode) || status.st_size < bytes || !is_sealed) {
    return fail(ErrorCode::unavailable,
                fmt::format("{} is not the shared memory of {} bytes that it should be", path, bytes));
  }
  auto mapped = map(file.get(), bytes);
  if (!mapped) return tl::unexpected(mapped.error());
  SharedMemory memory;
  memory.data_ = *mapped;
  memory.bytes_ = bytes;
  return memory;
}

}  // namespace espalier::engine
