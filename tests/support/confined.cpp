#include "tests/support/confined.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace espalier::test {
namespace {

constexpr int no_rights = 77;

bool has_own_mounts() {
  return mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("proc", "/proc", "proc", 0, nullptr) == 0 && mount("tmpfs", "/run", "tmpfs", 0, nullptr) == 0 &&
         mkdir("/run/netns", 0755) == 0;
}

void write_all(int fd, const std::string& text) {
  for (std::size_t sent = 0; sent < text.size();) {
    const ssize_t count = write(fd, text.data() + sent, text.size() - sent);
    if (count <= 0 && errno != EINTR) return;
    if (count > 0) sent += static_cast<std::size_t>(count);
  }
}

/// Process 1 of the new namespace: everything there ends with it.
[[noreturn]] void be_first_process(const std::function<std::string()>& body, int findings) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (!has_own_mounts()) _exit(no_rights);
  const pid_t worker = fork();
  if (worker == 0) {
    write_all(findings, body());
    _exit(0);
  }
  int status = 0;
  for (pid_t ended = 0; ended != worker;) {
    ended = wait(&status);
    if (ended < 0 && errno != EINTR) _exit(1);
  }
  if (!WIFEXITED(status)) write_all(findings, "ended by signal " + std::to_string(WTERMSIG(status)) + "\n");
  _exit(0);
}

[[noreturn]] void confine(const std::function<std::string()>& body, int findings, std::chrono::seconds limit) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (unshare(CLONE_NEWPID | CLONE_NEWNS | CLONE_NEWNET) != 0) _exit(no_rights);
  alarm(static_cast<unsigned>(limit.count()));
  const pid_t first = fork();
  if (first == 0) be_first_process(body, findings);
  int status = 0;
  while (waitpid(first, &status, 0) < 0 && errno == EINTR) continue;
  _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

}  // namespace

std::optional<std::string> run_confined(const std::function<std::string()>& body, std::chrono::seconds limit) {
  std::array<int, 2> ends{-1, -1};
  if (pipe(ends.data()) != 0) return "no pipe";
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    confine(body, ends[1], limit);
  }
  close(ends[1]);
  std::string findings;
  std::array<char, 4096> block{};
  for (ssize_t count = 1; count > 0 || (count < 0 && errno == EINTR);) {
    count = read(ends[0], block.data(), block.size());
    if (count > 0) findings.append(block.data(), static_cast<std::size_t>(count));
  }
  close(ends[0]);
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child) return "no process";
  if (WIFEXITED(status) && WEXITSTATUS(status) == no_rights) return std::nullopt;
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) findings += "took too long\n";
  return findings;
}

}  // namespace espalier::test
