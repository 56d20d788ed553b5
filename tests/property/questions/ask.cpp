#include "tests/property/questions/ask.h"

#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <exception>
#include <string>
#include <string_view>
#include <vector>

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

/// Ends this process once it has used so many seconds of its processors, or ten times as many of the clock.
void limit_time(unsigned seconds) {
  constexpr unsigned of_clock = 10;
  const itimerval of_processor{{0, 0}, {static_cast<time_t>(seconds), 0}};
  setitimer(ITIMER_PROF, &of_processor, nullptr);
  alarm(of_clock * seconds);
}

/// Writes each complaint behind its length.
[[noreturn]] void run_child(std::size_t first, std::size_t count, const std::function<std::string(std::size_t)>& check,
                            int to, unsigned seconds) {
  for (std::size_t i = first; i < count; ++i) {
    limit_time(seconds);
    std::string complaint;
    try {
      complaint = check(i);
    } catch (const std::exception& error) {
      complaint = std::string("exception: ") + error.what();
    }
    write_all(to, std::to_string(complaint.size()) + "\n" + complaint);
  }
  _exit(0);
}

/// Takes complaints apart that are there as a whole.
void take_complaints(std::string_view text, std::vector<std::string>& complaints) {
  while (true) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos) return;
    const std::size_t length = std::stoul(std::string(text.substr(0, end)));
    if (text.size() - end - 1 < length) return;
    complaints.emplace_back(text.substr(end + 1, length));
    text.remove_prefix(end + 1 + length);
  }
}

/// How a process ended; empty where it ended as it should.
std::string describe_end(int status, unsigned seconds) {
  if (!WIFSIGNALED(status)) return "";
  if (WTERMSIG(status) == SIGPROF) return "longer than " + std::to_string(seconds) + " s of processor";
  if (WTERMSIG(status) == SIGALRM) return "without an end";
  return strsignal(WTERMSIG(status));
}

}  // namespace

std::vector<std::string> complaints_of(std::size_t count, const std::function<std::string(std::size_t)>& check,
                                       unsigned seconds) {
  std::vector<std::string> complaints;
  while (complaints.size() < count) {
    std::array<int, 2> ends{};
    ESPALIER_CHECK(pipe(ends.data()) == 0, "a test has a pipe");
    const pid_t child = fork();
    ESPALIER_CHECK(child >= 0, "a test can fork");
    if (child == 0) {
      close(ends[0]);
      run_child(complaints.size(), count, check, ends[1], seconds);
    }
    close(ends[1]);
    const std::string said = read_all(ends[0]);
    close(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0) {
    }
    take_complaints(said, complaints);
    if (complaints.size() < count) {
      const std::string end = describe_end(status, seconds);
      complaints.push_back(end.empty() ? "ended before its answer" : end);
    }
  }
  return complaints;
}

}  // namespace espalier::test
