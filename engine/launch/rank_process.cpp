#include "engine/launch/rank_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "engine/rendezvous/names.h"

namespace espalier::engine::launch {
namespace {

struct Pipe {
  FileDescriptor reading;
  FileDescriptor writing;
};

std::optional<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (pipe2(ends.data(), O_CLOEXEC) != 0) return std::nullopt;
  return Pipe{FileDescriptor(ends[0]), FileDescriptor(ends[1])};
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// What the child needs between fork and exec, where only async-signal-safe calls are allowed: made before.
struct ChildPlan {
  const char* program;
  char* const* arguments;
  char* const* environment;
  pid_t parent;
  int error_pipe;
  int report_pipe;
  int inherited_fd;
  bool keeps_output;
};

/// Ends the child with the number of what went wrong.
[[noreturn]] void report_and_leave(int report_pipe) {
  const int number = errno;
  [[maybe_unused]] const ssize_t written = ::write(report_pipe, &number, sizeof number);
  constexpr int cannot_execute = 127;
  ::_exit(cannot_execute);
}

[[noreturn]] void become(const ChildPlan& plan) {
  // Before the check of the parent: a parent that dies in between is noticed by one or the other.
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != plan.parent) ::_exit(1);
  setpgid(0, 0);
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  const int nothing = ::open("/dev/null", O_RDONLY);
  if (nothing < 0 || dup2(nothing, STDIN_FILENO) < 0) report_and_leave(plan.report_pipe);
  if (nothing > STDERR_FILENO) ::close(nothing);
  if (dup2(plan.error_pipe, STDERR_FILENO) < 0) report_and_leave(plan.report_pipe);
  if (!plan.keeps_output && dup2(plan.error_pipe, STDOUT_FILENO) < 0) report_and_leave(plan.report_pipe);
  if (plan.inherited_fd >= 0) fcntl(plan.inherited_fd, F_SETFD, 0);
  ::execve(plan.program, plan.arguments, plan.environment);
  report_and_leave(plan.report_pipe);
}

tl::unexpected<Error> cannot_start(const std::string& program, int number) {
  return fail(ErrorCode::unavailable, fmt::format("cannot start {}: {}", program, rendezvous::errno_text(number)),
              number == EMFILE   ? "raise the limit of open files (ulimit -n)"
              : number == EAGAIN ? "raise the limit of processes (ulimit -u)"
                                 : "");
}

}  // namespace

Result<Spawned> spawn(const SpawnOptions& options) {
  std::vector<std::string> arguments{options.program};
  arguments.insert(arguments.end(), options.arguments.begin(), options.arguments.end());
  std::vector<std::string> variables;
  for (const auto& [name, value] : options.environment) variables.push_back(name + "=" + value);
  const std::vector<char*> argument_pointers = pointers_to(arguments);
  const std::vector<char*> variable_pointers = pointers_to(variables);

  auto errors = make_pipe();
  auto report = errors ? make_pipe() : std::nullopt;
  if (!report) return cannot_start(options.program, errno);
  fcntl(errors->reading.get(), F_SETFL, O_NONBLOCK);
  const ChildPlan plan{
      options.program.c_str(), argument_pointers.data(), variable_pointers.data(), getpid(),
      errors->writing.get(),   report->writing.get(),    options.inherited_fd,     options.keeps_output};
  const pid_t process = fork();
  if (process < 0) return cannot_start(options.program, errno);
  if (process == 0) become(plan);
  setpgid(process, process);  // In both, so that neither has to wait for the other; fails after exec, when it is done.
  report->writing.reset();
  int number = 0;
  ssize_t got = 0;
  do {
    got = ::read(report->reading.get(), &number, sizeof number);
  } while (got < 0 && errno == EINTR);
  if (got == static_cast<ssize_t>(sizeof number)) {
    waitpid(process, nullptr, 0);
    return cannot_start(options.program, number);
  }
  return Spawned{process, std::move(errors->reading)};
}

}  // namespace espalier::engine::launch
