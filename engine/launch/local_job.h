#pragma once

// Tested by: tests/unit/engine/launch/local_job_test.cpp

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace espalier::engine::launch {

/// A job of several processes of this machine.
struct LocalJobOptions {
  std::uint32_t world = 1;
  std::string program = "/proc/self/exe";
  std::vector<std::string> arguments;  ///< Without the program's name.
  /// Added to this process's own, of which nothing that begins with ESPALIER_ is passed on.
  std::vector<std::pair<std::string, std::string>> environment;
  std::optional<std::uint32_t> max_ranks;  ///< More are refused; default: what the machine allows (rank_limit.h).
  std::chrono::milliseconds grace{5000};   ///< From the first death by error until the others are killed.
  std::size_t kept_lines = 20;             ///< Lines of standard error kept of each rank.
  /// Takes each whole line of a rank's standard error as it comes, without its newline; default: nobody.
  std::function<void(std::uint32_t rank, const std::string& line)> on_error_line;
};

/// How one rank ended.
struct RankExit {
  std::int64_t process = 0;
  int code = 0;                         ///< Exit code; 128 + signal when a signal ended it.
  std::optional<int> signal;            ///< The signal that ended it.
  bool was_killed = false;              ///< By the launcher, after another rank's death or an interrupt.
  std::vector<std::string> last_lines;  ///< Of its standard error, oldest first.
};

/// How the job ended.
struct LocalJobResult {
  std::vector<RankExit> ranks;
  std::optional<std::uint32_t> first_failed;  ///< The rank to blame: the first killed by a signal that the
                                              ///< launcher did not send, else the first to end by an error.
  bool was_interrupted = false;               ///< SIGINT or SIGTERM came, and was passed on.

  [[nodiscard]] bool succeeded() const { return !first_failed && !was_interrupted; }
  /// What the launcher itself should exit with: the first failed rank's code, 130 when interrupted, else 0.
  [[nodiscard]] int exit_code() const;
  /// One paragraph: which rank died first, how, its last lines, each line with "rank 3: " before it, and what may have
  /// sent the signal.
  [[nodiscard]] std::string summary() const;
};

/// Starts `world` copies of the program as the ranks of one job, and waits until all have ended.
/// They find rank, world, a free port of 127.0.0.1 (its socket is inherited by rank 0) and a random secret in their
/// environment: detect_launch and find_secret read it; the command lines carry none of it. Rank 0 keeps standard
/// output; the others' joins their standard error; standard input is /dev/null. Each rank dies with the launcher
/// (PR_SET_PDEATHSIG), however that ends. While it runs, SIGINT and SIGTERM of this process are passed on to the ranks,
/// once to let them end and, after the grace or a second signal, to kill them; the former signal mask is put back.
/// Requires: no other thread of this process takes SIGINT or SIGTERM meanwhile; one job at a time. Errors: too_large,
/// before anything is started, for more ranks than the machine can run; unavailable when a process, a pipe or a port
/// cannot be had; no process is left then.
Result<LocalJobResult> run_local_job(const LocalJobOptions& options);

}  // namespace espalier::engine::launch
