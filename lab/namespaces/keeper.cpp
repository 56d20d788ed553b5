#include "lab/namespaces/keeper.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/error_text.h"
#include "lab/namespaces/clean_up.h"

namespace espalier::lab {
namespace {

constexpr const char* hint = "espalier lab --clean removes what is left";

/// Closes all descriptors but these and the standard ones, which get /dev/null: the keeper must not hold the other
/// labs' channels open, nor a pipe whose end somebody waits for.
void leave_descriptors(int channel, int lock) {
  unsigned first = STDERR_FILENO + 1;
  for (const int kept : {std::min(channel, lock), std::max(channel, lock)}) {
    const auto next = static_cast<unsigned>(kept);
    if (first < next) close_range(first, next - 1, 0);
    first = std::max(first, next + 1);
  }
  close_range(first, ~0U, 0);
  const int nothing = open("/dev/null", O_RDWR);
  for (int standard = STDIN_FILENO; nothing >= 0 && standard <= STDERR_FILENO; ++standard) {
    if (standard != channel && standard != lock) dup2(nothing, standard);
  }
}

/// The keeper's whole life.
[[noreturn]] void keep(int channel, JobLock& lock) {
  setsid();
  prctl(PR_SET_NAME, "espalier-keeper");
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(number, SIG_IGN);
  if (chdir("/") != 0) _exit(1);
  leave_descriptors(channel, lock.fd());
  char word = 0;
  ssize_t count = 0;
  do {
    count = read(channel, &word, sizeof word);
  } while (count < 0 && errno == EINTR);
  if (count > 0) _exit(0);  // A word means that the namespaces are to stay.
  const auto done = tear_down(lock);
  if (done) _exit(0);
  [[maybe_unused]] const ssize_t told = write(channel, done.error().message.data(), done.error().message.size());
  _exit(1);
}

/// What the keeper says until it ends.
std::string read_all(int channel) {
  std::string text;
  std::array<char, 4096> block{};
  for (;;) {
    const ssize_t count = read(channel, block.data(), block.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

/// Whether it ended by itself, and with which code.
std::optional<int> wait_for_end(int process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) continue;
  return WIFEXITED(status) ? std::optional(WEXITSTATUS(status)) : std::nullopt;
}

}  // namespace

Result<Keeper> Keeper::start(JobLock lock) {
  std::array<int, 2> ends{-1, -1};
  const bool has_channel = socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0;
  const int process = has_channel ? fork() : -1;
  if (process == 0) keep(ends[1], lock);
  const int cause = errno;
  FileDescriptor own(ends[0]);
  const FileDescriptor others(ends[1]);
  if (process < 0) {
    return fail(ErrorCode::unavailable, "cannot start the lab's keeper: " + error_text(cause),
                "raise the limits of processes and open files (ulimit -u, ulimit -n)");
  }
  return Keeper(std::move(lock), std::move(own), process);
}

Keeper::Keeper(Keeper&& other) noexcept
    : lock_(std::move(other.lock_)), channel_(std::move(other.channel_)), process_(std::exchange(other.process_, -1)) {}

Keeper& Keeper::operator=(Keeper&& other) noexcept {
  std::swap(lock_, other.lock_);
  std::swap(channel_, other.channel_);
  std::swap(process_, other.process_);
  return *this;
}

Keeper::~Keeper() { static_cast<void>(finish()); }

Result<void> Keeper::finish() {
  if (process_ < 0) return {};
  shutdown(channel_.get(), SHUT_WR);
  const std::string errors = read_all(channel_.get());
  const auto code = wait_for_end(std::exchange(process_, -1));
  channel_.reset();
  const auto done = code == 0 ? Result<void>() : code ? fail(ErrorCode::unavailable, errors) : tear_down(*lock_);
  if (done) return {};
  return fail(ErrorCode::unavailable, "the lab was not torn down wholly: " + done.error().message, hint);
}

void Keeper::let_go() {
  if (process_ < 0) return;
  [[maybe_unused]] const ssize_t told = send(channel_.get(), "\n", 1, MSG_NOSIGNAL);
  static_cast<void>(wait_for_end(std::exchange(process_, -1)));
  channel_.reset();
  lock_->hold_for_ever();
}

}  // namespace espalier::lab
