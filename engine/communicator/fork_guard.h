#pragma once

// Tested by: tests/unit/engine/communicator/communicator_test.cpp

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <utility>

#include "base/result.h"

namespace espalier::engine {

/// Tells a process from its forks, by a page that a fork finds wiped. Children share a rank's descriptors and shared
/// memory, so they must neither call on it nor tidy it up.
class ForkGuard {
 public:
  ForkGuard() = default;
  ForkGuard(ForkGuard&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  ForkGuard& operator=(ForkGuard&& other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~ForkGuard() {
    if (page_ != nullptr) munmap(page_, size);
  }

  /// Errors: unavailable when memory is short.
  static Result<ForkGuard> create() {
    ForkGuard guard;
    void* page = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED || madvise(page, size, MADV_WIPEONFORK) != 0) {
      if (page != MAP_FAILED) munmap(page, size);
      return fail(ErrorCode::unavailable, "cannot get a page of memory that forks find empty",
                  "free memory or raise ulimit -v; Linux 4.14 or later is needed");
    }
    guard.page_ = static_cast<std::byte*>(page);
    *guard.page_ = std::byte{1};
    return guard;
  }

  [[nodiscard]] bool is_child() const { return page_ != nullptr && *page_ == std::byte{0}; }

 private:
  static constexpr std::size_t size = 4096;
  std::byte* page_ = nullptr;
};

}  // namespace espalier::engine
