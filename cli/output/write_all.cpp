#include "cli/output/write_all.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>

namespace espalier::cli {

int write_all(int descriptor, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(descriptor, text.data(), text.size());
    if (count > 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (count < 0 && errno == EAGAIN) {
      pollfd writable{descriptor, POLLOUT, 0};  // Somebody made the terminal or pipe non-blocking.
      if (poll(&writable, 1, -1) < 0 && errno != EINTR) return errno;
    } else if (count < 0 && errno != EINTR) {
      return errno;
    } else if (count == 0) {
      return EIO;
    }
  }
  return 0;
}

}  // namespace espalier::cli
