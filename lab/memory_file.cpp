#include "lab/memory_file.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/error_text.h"

namespace espalier::lab {

Result<MemoryFile> MemoryFile::make(std::string_view text) {
  MemoryFile file;
  file.fd_ = memfd_create("espalier", MFD_CLOEXEC);
  bool written = file.fd_ >= 0;
  while (written && !text.empty()) {
    const ssize_t count = write(file.fd_, text.data(), text.size());
    written = count > 0;
    if (written) text.remove_prefix(static_cast<std::size_t>(count));
  }
  if (!written) {
    return fail(ErrorCode::unavailable, "no file in memory can be had: " + error_text(errno));
  }
  lseek(file.fd_, 0, SEEK_SET);
  return file;
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  return *this;
}

MemoryFile::~MemoryFile() {
  if (fd_ >= 0) close(fd_);
}

std::string MemoryFile::path() const { return fmt::format("/proc/{}/fd/{}", getpid(), fd_); }

std::string MemoryFile::text() const {
  std::string text;
  std::array<char, 65536> block{};
  for (;;) {
    const ssize_t count = pread(fd_, block.data(), block.size(), static_cast<off_t>(text.size()));
    if (count <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

}  // namespace espalier::lab
