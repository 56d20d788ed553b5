#include "sweep/guarded/worker.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>

#include "base/error_text.h"
#include "base/send_signal.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define ESPALIER_ONE_PROCESS 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define ESPALIER_ONE_PROCESS 1
#endif
#endif
#ifndef ESPALIER_ONE_PROCESS
#define ESPALIER_ONE_PROCESS 0
#endif

namespace espalier::sweep {
namespace {

/// Passes on what a worker said, and gives its last words.
std::string hear(int said) {
  const std::string ended = "its process ended";
  if (said < 0) return ended;
  std::string text;
  std::array<char, 4096> part{};
  lseek(said, 0, SEEK_SET);
  for (ssize_t size = 0; (size = read(said, part.data(), part.size())) > 0;) {
    text.append(part.data(), static_cast<std::size_t>(size));
  }
  close(said);
  static_cast<void>(write_whole(STDERR_FILENO, text));  // With nobody to hear it, it goes on.
  constexpr std::string_view mark = "internal error at ";
  const std::size_t at = text.rfind(mark);
  if (at == std::string::npos) return ended;
  std::string words = text.substr(at + mark.size());
  words.resize(std::min(words.find('\n'), words.size()));
  return words;
}

}  // namespace

bool may_use_workers() { return ESPALIER_ONE_PROCESS == 0; }

Result<Worker> start_worker(const std::function<bool(int lines)>& work) {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return fail(ErrorCode::unavailable, "no pipe: " + error_text(errno));
  const pid_t parent = getpid();
  const pid_t process = fork();
  if (process < 0) {
    const std::string why = error_text(errno);
    for (const int end : ends) close(end);
    return fail(ErrorCode::unavailable, "no process for the work: " + why);
  }
  if (process > 0) {
    close(ends[1]);
    return Worker{process, ends[0]};
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);  // It ended before it could have been heard of.
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE}) std::signal(signal, SIG_DFL);
  close(ends[0]);
  const bool is_done = work(ends[1]);
  _exit(is_done ? 0 : 1);
}

bool wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

Result<void> write_whole(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return fail(ErrorCode::unavailable, "a row could not be handed over: " + error_text(errno));
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return {};
}

Result<void> read_lines_of(int file, const std::function<Result<void>(std::string_view)>& on_lines) {
  std::string text;
  std::array<char, 65536> part{};
  for (;;) {
    const ssize_t size = read(file, part.data(), part.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return {};  // What is left of a line was cut short by its writer's end.
    text.append(part.data(), static_cast<std::size_t>(size));
    const std::size_t whole = text.rfind('\n');
    if (whole == std::string::npos) continue;
    if (auto taken = on_lines(std::string_view(text).substr(0, whole + 1)); !taken) return taken;
    text.erase(0, whole + 1);
  }
}

WorkerEnd run_worker(const std::function<bool(int lines)>& work,
                     const std::function<Result<void>(std::string_view)>& on_lines) {
  const int said = memfd_create("espalier-worker", MFD_CLOEXEC);
  const auto worker = start_worker([&](int lines) {
    if (said >= 0) dup2(said, STDERR_FILENO);
    return work(lines);
  });
  if (!worker) {
    if (said >= 0) close(said);
    return {.is_stopped = true, .said = worker.error().message};
  }
  const auto read = read_lines_of(worker->lines, on_lines);
  close(worker->lines);
  if (!read) send_signal(worker->process, SIGKILL);
  const bool is_done = wait_for(worker->process);
  return {is_done, !read, hear(said)};
}

}  // namespace espalier::sweep
