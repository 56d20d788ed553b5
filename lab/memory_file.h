#pragma once

// Tested by: tests/unit/lab/process_test.cpp

#include <string>
#include <string_view>

#include "base/result.h"

namespace espalier::lab {

/// A file that is nowhere on disk: child processes read it by its path as long as this object lives, and nothing of it
/// is left afterwards, however this process ends.
class MemoryFile {
 public:
  /// Errors: unavailable when there is no memory or descriptor for it.
  [[nodiscard]] static Result<MemoryFile> make(std::string_view text);

  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile();

  /// A path under /proc that every process of this user can open. Whoever opens it reads from the beginning.
  [[nodiscard]] std::string path() const;
  [[nodiscard]] int fd() const { return fd_; }
  /// What the file holds now, others' writing included.
  [[nodiscard]] std::string text() const;

 private:
  MemoryFile() = default;
  int fd_ = -1;
};

}  // namespace espalier::lab
