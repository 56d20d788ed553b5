#include "lab/process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>

#include "base/error_text.h"
#include "base/send_signal.h"
#include "lab/memory_file.h"
#include "lab/namespaces/name_space.h"

namespace espalier::lab {
namespace {

constexpr int signal_base = 128;

std::vector<std::string> environment_of(const Launch& launch) {
  std::vector<std::string> merged;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const std::string_view name = text.substr(0, text.find('='));
    bool replaced = !launch.dropped_variables.empty() && name.starts_with(launch.dropped_variables);
    for (const auto& [key, value] : launch.environment) replaced = replaced || key == name;
    if (!replaced) merged.emplace_back(text);
  }
  for (const auto& [key, value] : launch.environment) merged.push_back(key + "=" + value);
  return merged;
}

std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

/// All that the child needs between fork and exec, where it must not allocate.
struct Prepared {
  const char* program = nullptr;
  char** arguments = nullptr;
  char** environment = nullptr;
  int name_space_fd = -1;
  int input_fd = -1;
  int output_fd = -1;
  int errors_fd = -1;
  int report_fd = -1;  ///< Takes errno when the program could not be started; closes when it could.
  int parent = 0;
};

[[noreturn]] void fail_child(const Prepared& prepared) {
  const int cause = errno;
  [[maybe_unused]] const ssize_t told = write(prepared.report_fd, &cause, sizeof cause);
  constexpr int not_started = 127;
  _exit(not_started);
}

[[noreturn]] void become(const Prepared& prepared) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != prepared.parent) _exit(signal_base + SIGKILL);  // It ended before the line above.
  if (prepared.name_space_fd >= 0 && setns(prepared.name_space_fd, CLONE_NEWNET) != 0) fail_child(prepared);
  if (dup2(prepared.input_fd, STDIN_FILENO) < 0 || dup2(prepared.output_fd, STDOUT_FILENO) < 0) fail_child(prepared);
  if (dup2(prepared.errors_fd, STDERR_FILENO) < 0) fail_child(prepared);
  execve(prepared.program, prepared.arguments, prepared.environment);
  fail_child(prepared);
}

/// The child's process id, or errno when its program could not be started; then there is no child.
tl::expected<int, int> fork_and_exec(Prepared& prepared) {
  std::array<int, 2> report{-1, -1};
  if (pipe2(report.data(), O_CLOEXEC) != 0) return tl::unexpected(errno);
  prepared.report_fd = report[1];
  const int pid = fork();
  if (pid == 0) become(prepared);
  int cause = pid < 0 ? errno : 0;
  close(report[1]);
  ssize_t count = 0;
  do {
    count = pid < 0 ? 0 : read(report[0], &cause, sizeof cause);
  } while (count < 0 && errno == EINTR);
  close(report[0]);
  if (cause == 0) return pid;
  if (pid > 0) waitpid(pid, nullptr, 0);
  return tl::unexpected(cause);
}

}  // namespace

std::optional<std::string> find_program(std::string_view name) {
  if (name.find('/') != std::string_view::npos) return std::string(name);
  const char* const path = std::getenv("PATH");
  // Where administrators' tools are is often missing in an ordinary user's path.
  const std::string folders = std::string(path != nullptr ? path : "") + ":/usr/sbin:/sbin:/usr/bin:/bin";
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::string folder = folders.substr(begin, folders.find(':', begin) - begin);
    const std::string candidate = folder + "/" + std::string(name);
    if (!folder.empty() && access(candidate.c_str(), X_OK) == 0) return candidate;
    begin += folder.size() + 1;
  }
  return std::nullopt;
}

Process::Process(Process&& other) noexcept
    : pid_(std::exchange(other.pid_, -1)),
      process_fd_(std::exchange(other.process_fd_, -1)),
      output_(std::move(other.output_)),
      errors_(std::move(other.errors_)) {}

Process& Process::operator=(Process&& other) noexcept {
  std::swap(pid_, other.pid_);
  std::swap(process_fd_, other.process_fd_);
  std::swap(output_, other.output_);
  std::swap(errors_, other.errors_);
  return *this;
}

Process::~Process() {
  kill();
  if (pid_ > 0) static_cast<void>(wait());
}

Result<Process> Process::start(const Launch& launch) {
  const auto program = find_program(launch.arguments.front());
  if (!program) {
    return fail(ErrorCode::unavailable, "the program '" + launch.arguments.front() + "' is not in PATH",
                "install it (ip and tc are in the package iproute2)");
  }
  auto input = MemoryFile::make(launch.input);
  auto output = MemoryFile::make("");
  auto errors = MemoryFile::make("");
  for (const auto* file : {&input, &output, &errors}) {
    if (!*file) return tl::unexpected(file->error());
  }
  Prepared prepared;
  if (!launch.name_space.empty()) {
    prepared.name_space_fd = open(name_space_path(launch.name_space).c_str(), O_RDONLY | O_CLOEXEC);
    if (prepared.name_space_fd < 0) {
      return fail(ErrorCode::unavailable,
                  fmt::format("the network namespace {} is not there: {}", launch.name_space, error_text(errno)));
    }
  }
  std::vector<std::string> arguments = launch.arguments;
  std::vector<std::string> environment = environment_of(launch);
  std::vector<char*> argument_pointers = pointers_to(arguments);
  std::vector<char*> environment_pointers = pointers_to(environment);
  prepared.program = program->c_str();
  prepared.arguments = argument_pointers.data();
  prepared.environment = environment_pointers.data();
  prepared.input_fd = input->fd();
  prepared.output_fd = output->fd();
  prepared.errors_fd = errors->fd();
  prepared.parent = getpid();
  const auto pid = fork_and_exec(prepared);
  if (prepared.name_space_fd >= 0) close(prepared.name_space_fd);
  if (!pid) return fail(ErrorCode::unavailable, fmt::format("cannot start {}: {}", *program, error_text(pid.error())));
  const int process_fd = static_cast<int>(syscall(SYS_pidfd_open, *pid, 0));
  return Process(*pid, process_fd, std::move(*output), std::move(*errors));
}

Outcome Process::collect(int status) {
  Outcome outcome;
  outcome.code = WIFSIGNALED(status) ? signal_base + WTERMSIG(status) : WEXITSTATUS(status);
  outcome.output = output_.text();
  outcome.errors = errors_.text();
  if (process_fd_ >= 0) close(process_fd_);
  process_fd_ = -1;
  pid_ = -1;
  return outcome;
}

Outcome Process::wait() {
  int status = 0;
  while (waitpid(pid_, &status, 0) < 0 && errno == EINTR) continue;
  return collect(status);
}

std::optional<Outcome> Process::wait_for(std::chrono::milliseconds limit) {
  pollfd waited{process_fd_, POLLIN, 0};
  poll(&waited, 1, static_cast<int>(limit.count()));
  int status = 0;
  if (waitpid(pid_, &status, WNOHANG) != pid_) return std::nullopt;
  return collect(status);
}

void Process::kill() const { send_signal(pid_, SIGKILL); }

Result<std::string> run_program(std::vector<std::string> arguments, std::string input) {
  Launch launch;
  launch.arguments = std::move(arguments);
  launch.input = std::move(input);
  auto process = Process::start(launch);
  if (!process) return tl::unexpected(process.error());
  Outcome outcome = process->wait();
  if (outcome.code == 0) return std::move(outcome.output);
  constexpr std::size_t max_shown = 2000;
  if (outcome.errors.size() > max_shown) outcome.errors.resize(max_shown);
  while (outcome.errors.ends_with('\n')) outcome.errors.pop_back();
  return fail(ErrorCode::unavailable,
              fmt::format("'{}' ended with code {}: {}", fmt::join(launch.arguments, " "), outcome.code,
                          outcome.errors.empty() ? "it says nothing" : outcome.errors));
}

Result<Process> run_in_namespace(const std::string& name_space, std::vector<std::string> arguments,
                                 std::vector<std::pair<std::string, std::string>> environment) {
  Launch launch;
  launch.arguments = std::move(arguments);
  launch.environment = std::move(environment);
  launch.name_space = name_space;
  return Process::start(launch);
}

}  // namespace espalier::lab
