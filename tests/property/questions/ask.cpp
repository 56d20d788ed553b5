#include "tests/property/questions/ask.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <string_view>

#include "base/check.h"

namespace espalier::test {
namespace {

void write_all(int to, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(to, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
}

std::string read_all(int from) {
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = read(from, buffer.data(), buffer.size());
    if (got <= 0) return text;
    text.append(buffer.data(), static_cast<std::size_t>(got));
  }
}

[[noreturn]] void run_child(const std::function<std::string()>& check, int to, unsigned seconds) {
  alarm(seconds);
  std::string complaint;
  try {
    complaint = check();
  } catch (const std::exception& error) {
    complaint = std::string("exception: ") + error.what();
  }
  write_all(to, complaint);
  _exit(0);
}

}  // namespace

std::string complaint_of(const std::function<std::string()>& check, unsigned seconds) {
  std::array<int, 2> ends{};
  ESPALIER_CHECK(pipe(ends.data()) == 0, "a test has a pipe");
  const pid_t child = fork();
  ESPALIER_CHECK(child >= 0, "a test can fork");
  if (child == 0) {
    close(ends[0]);
    run_child(check, ends[1], seconds);
  }
  close(ends[1]);
  std::string complaint = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) complaint += "longer than " + std::to_string(seconds) + " s";
  if (WIFSIGNALED(status) && WTERMSIG(status) != SIGALRM) complaint += strsignal(WTERMSIG(status));
  return complaint;
}

}  // namespace espalier::test
