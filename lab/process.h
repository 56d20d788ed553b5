#pragma once

// Tested by: tests/unit/lab/process_test.cpp

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "lab/memory_file.h"

namespace espalier::lab {

/// A program to be started.
struct Launch {
  std::vector<std::string> arguments;  ///< The program (looked up in PATH when it has no '/') and its arguments.
  std::vector<std::pair<std::string, std::string>> environment = {};  ///< Added to this process's own.
  std::string dropped_variables = {};  ///< Variables of this process that begin so are left out; empty: none.
  std::string name_space = {};         ///< Network namespace to run in (name_space.h); empty: this process's.
  std::string input = {};              ///< What it reads from standard input.
};

/// How a program ended, and what it wrote.
struct Outcome {
  int code = 0;  ///< Exit code; 128 + signal when a signal ended it.
  std::string output;
  std::string errors;
};

/// A child process. Its outputs are kept in memory, so it never waits for somebody to read them.
class Process {
 public:
  /// Starts it. It is killed when the thread that started it ends, however that happens.
  /// Errors: unavailable when the program or the namespace is not there, naming it.
  [[nodiscard]] static Result<Process> start(const Launch& launch);

  Process(Process&& other) noexcept;
  Process& operator=(Process&& other) noexcept;
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  /// Kills it, unless it has ended, and waits for its end.
  ~Process();

  [[nodiscard]] int pid() const { return pid_; }
  /// Waits until it ends.
  [[nodiscard]] Outcome wait();
  /// How it ended, if it has by then.
  [[nodiscard]] std::optional<Outcome> wait_for(std::chrono::milliseconds limit);
  /// Sends SIGKILL; the end is still to be waited for.
  void kill() const;

 private:
  Process(int pid, int process_fd, MemoryFile output, MemoryFile errors)
      : pid_(pid), process_fd_(process_fd), output_(std::move(output)), errors_(std::move(errors)) {}
  [[nodiscard]] Outcome collect(int status);

  int pid_;  ///< -1: has ended and been waited for.
  int process_fd_;
  MemoryFile output_;
  MemoryFile errors_;
};

/// The path of a program in PATH, or nothing.
std::optional<std::string> find_program(std::string_view name);

/// Runs a program to its end.
/// Errors: as Process::start; unavailable when it exits with another code than 0, with what it wrote as the reason.
Result<std::string> run_program(std::vector<std::string> arguments, std::string input = {});

/// Starts a program inside a network namespace.
Result<Process> run_in_namespace(const std::string& name_space, std::vector<std::string> arguments,
                                 std::vector<std::pair<std::string, std::string>> environment = {});

}  // namespace espalier::lab
