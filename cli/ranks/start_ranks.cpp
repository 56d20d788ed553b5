#include "cli/ranks/start_ranks.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include "engine/launch/local_job.h"

namespace espalier::cli {
namespace {

/// This process's arguments, without the program's name: the ranks get the same.
std::vector<std::string> own_arguments() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  std::vector<std::string> arguments;
  for (std::string argument; std::getline(file, argument, '\0');) arguments.push_back(argument);
  if (!arguments.empty()) arguments.erase(arguments.begin());
  return arguments;
}

/// A rank that exits says why, and rank 0's words are shown as they come. Everything else is told here: nobody else
/// can.
ExitCode tell_failure(const engine::launch::LocalJobResult& job) {
  const engine::launch::RankExit& first = job.ranks[*job.first_failed];
  const bool has_spoken = *job.first_failed == 0 && !first.signal && !first.last_lines.empty();
  if (!has_spoken) Console::write_error(job.summary());
  constexpr std::array crashes = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT};
  if (first.signal && std::ranges::find(crashes, *first.signal) != crashes.end()) return ExitCode::internal_error;
  return !first.signal && first.code <= static_cast<int>(ExitCode::internal_error) ? static_cast<ExitCode>(first.code)
                                                                                   : ExitCode::check_failed;
}

}  // namespace

ExitCode start_ranks(const Console& console, std::uint32_t world, const std::optional<std::uint32_t>& max_ranks,
                     double timeout) {
  engine::launch::LocalJobOptions options;
  options.world = world;
  options.max_ranks = max_ranks;
  options.arguments = own_arguments();
  options.grace = std::chrono::milliseconds(static_cast<std::int64_t>(timeout * 1000) + 2000);
  // All ranks say the same of their input; what matters of the others is in the summary.
  options.on_error_line = [](std::uint32_t rank, const std::string& line) {
    if (rank == 0) Console::write_error(line + "\n");
  };
  const auto job = engine::launch::run_local_job(options);
  if (!job) return console.refuse(job.error());
  if (job->first_failed) return tell_failure(*job);
  return job->was_interrupted ? ExitCode::interrupted : ExitCode::ok;
}

}  // namespace espalier::cli
