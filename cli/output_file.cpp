#include "cli/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>

namespace espalier::cli {
namespace {

// The path of the unfinished file, for the signal handler, which may only touch plain memory.
std::array<char, 4096> unfinished_path{};      // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)
std::atomic<bool> has_unfinished_file{false};  // NOLINT(cppcoreguidelines-avoid-non-const-global-variables)

void on_interrupt(int) {
  if (has_unfinished_file) unlink(unfinished_path.data());
  constexpr int interrupted = 130;
  _exit(interrupted);
}

void mark_unfinished(const std::string& path) {
  if (path.size() + 1 > unfinished_path.size()) return;
  std::memcpy(unfinished_path.data(), path.c_str(), path.size() + 1);
  has_unfinished_file = true;
}

tl::unexpected<Error> cannot_write(const std::string& path, int cause) {
  return fail(ErrorCode::unavailable, "cannot write " + path + ": " + std::generic_category().message(cause),
              "choose a file in a folder that exists and may be written");
}

}  // namespace

Result<void> write_file(const std::string& path, const std::function<Result<void>(std::ostream&)>& write) {
  if (path == "-") {
    Result<void> written = write(std::cout);
    std::cout.flush();
    if (written && !std::cout) return fail(ErrorCode::unavailable, "cannot write to standard output");
    return written;
  }
  std::error_code status;
  if (std::filesystem::exists(path, status) && !std::filesystem::is_regular_file(path, status)) {
    // A device or pipe, such as /dev/null, is written to, never replaced.
    std::ofstream file(path);
    if (!file) return cannot_write(path, errno);
    return write(file);
  }
  const std::string temporary = path + ".tmp" + std::to_string(getpid());
  errno = 0;
  std::ofstream file(temporary, std::ios::binary | std::ios::trunc);
  if (!file) return cannot_write(path, errno != 0 ? errno : EIO);
  mark_unfinished(temporary);
  Result<void> written = write(file);
  file.close();
  if (written && !file) written = cannot_write(path, errno != 0 ? errno : EIO);
  if (written && std::rename(temporary.c_str(), path.c_str()) != 0) written = cannot_write(path, errno);
  if (!written) unlink(temporary.c_str());
  has_unfinished_file = false;
  return written;
}

void install_interrupt_handler() {
  std::signal(SIGINT, on_interrupt);
  std::signal(SIGTERM, on_interrupt);
}

}  // namespace espalier::cli
