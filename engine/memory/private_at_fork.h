#pragma once

// Tested by: tests/unit/engine/memory/private_at_fork_test.cpp

#include <cstddef>
#include <cstdint>
#include <utility>

namespace espalier::engine {

/// Memory that this process maps as shared, and that its children shall find as if it were private: with what was in it
/// at the fork, where it was, and their own from then on. Children made past the C library's fork do not have it at all
/// where it is not inherited (MADV_DONTFORK). Thread-safe.
///
/// A fork copies all such memory first. The copy is kept for forks that follow before anything was written, so that
/// children that are started together share it as they share private memory.
class PrivateAtFork {
 public:
  PrivateAtFork() = default;
  /// From now on, wherever these pages come from at the time of a fork. Requires: whole pages, named once.
  PrivateAtFork(std::byte* data, std::int64_t bytes);
  PrivateAtFork(PrivateAtFork&& other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  PrivateAtFork& operator=(PrivateAtFork&& other) noexcept {
    std::swap(data_, other.data_);
    return *this;
  }
  /// From now on children inherit what is mapped there.
  ~PrivateAtFork();

  /// Lets go of the copies of earlier forks. Cost: a load where there are none.
  static void forget_copies();

 private:
  std::byte* data_ = nullptr;
};

}  // namespace espalier::engine
