#include "base/file_descriptor.h"

#include <unistd.h>

namespace espalier {

void FileDescriptor::reset(int fd) noexcept {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

}  // namespace espalier
