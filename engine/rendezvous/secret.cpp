#include "engine/rendezvous/secret.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/file_descriptor.h"
#include "engine/rendezvous/names.h"
#include "engine/rendezvous/wire/digest.h"

namespace espalier::engine::rendezvous {
namespace {

Result<void> check_length(std::size_t length, const std::string& what) {
  if (length >= shortest_secret && length <= longest_secret) return {};
  return fail(ErrorCode::invalid_input,
              fmt::format("{} has {} bytes; a secret has {} to {}", what, length, shortest_secret, longest_secret),
              "openssl rand -hex 32 makes a good one");
}

/// Reads the open file itself, not its name again: what was checked is what is read.
Result<std::string> read_all(int fd, const std::string& path) {
  std::string text(longest_secret + 2, '\0');
  std::size_t size = 0;
  while (size < text.size()) {
    const ssize_t count = ::read(fd, text.data() + size, text.size() - size);
    if (count == 0) break;
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      return fail(ErrorCode::unavailable, fmt::format("cannot read the secret in {}: {}", path, errno_text(errno)));
    }
    size += static_cast<std::size_t>(count);
  }
  text.resize(size);
  if (text.ends_with('\n')) text.pop_back();
  if (text.ends_with('\r')) text.pop_back();
  return text;
}

}  // namespace

Result<std::string> random_secret() {
  const auto digest = random_digest();
  if (!digest) return tl::unexpected(digest.error());
  std::string text;
  for (const std::uint8_t byte : *digest) text += fmt::format("{:02x}", byte);
  return text;
}

Result<std::string> read_secret_file(const std::string& path) {
  // Non-blocking: opening a FIFO must not wait for a writer.
  const FileDescriptor fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!fd.is_open()) {
    return fail(ErrorCode::unavailable, fmt::format("cannot open the secret in {}: {}", path, errno_text(errno)));
  }
  struct stat status {};
  if (fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return fail(ErrorCode::invalid_input, path + " is no regular file: a secret is read from one");
  }
  if (status.st_uid != geteuid() && status.st_uid != 0) {
    return fail(ErrorCode::invalid_input, fmt::format("{} belongs to user {}, who can change it", path, status.st_uid),
                "copy it to a file of your own");
  }
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0) {
    return fail(ErrorCode::invalid_input,
                fmt::format("others can read or write the secret in {} (mode {:04o})", path, status.st_mode & 07777U),
                fmt::format("chmod 600 {}", path));
  }
  auto text = read_all(fd.get(), path);
  if (!text) return text;
  if (auto checked = check_length(text->size(), path); !checked) return tl::unexpected(checked.error());
  return text;
}

Result<std::string> find_secret(const Environment& environment) {
  const auto direct = environment.find("ESPALIER_SECRET");
  const auto file = environment.find("ESPALIER_SECRET_FILE");
  if (direct != environment.end() && file != environment.end()) {
    return fail(ErrorCode::invalid_input, "ESPALIER_SECRET and ESPALIER_SECRET_FILE are both set", "unset one of them");
  }
  if (file != environment.end()) return read_secret_file(file->second);
  if (direct == environment.end()) {
    return fail(
        ErrorCode::unavailable, "the job has no secret: neither ESPALIER_SECRET nor ESPALIER_SECRET_FILE is set",
        "openssl rand -hex 32 > secret; chmod 600 secret; export ESPALIER_SECRET_FILE=$PWD/secret on all ranks");
  }
  if (auto checked = check_length(direct->second.size(), "ESPALIER_SECRET"); !checked) {
    return tl::unexpected(checked.error());
  }
  return direct->second;
}

}  // namespace espalier::engine::rendezvous
