#include "engine/launch/local_job.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <map>
#include <thread>

#include "base/send_signal.h"
#include "engine/launch/line_tail.h"
#include "engine/launch/rank_process.h"

namespace espalier::engine::launch {
namespace {

using std::chrono::milliseconds;

LocalJobOptions job_of(std::uint32_t world, const std::string& behaviour) {
  LocalJobOptions options;
  options.world = world;
  options.program = ESPALIER_RANK_PROGRAM;
  options.arguments = {behaviour};
  return options;
}

TEST(LocalJob, RanksMeet) {
  std::map<std::uint32_t, std::vector<std::string>> lines;
  LocalJobOptions options = job_of(4, "meet");
  options.on_error_line = [&](std::uint32_t rank, const std::string& line) { lines[rank].push_back(line); };
  ::testing::internal::CaptureStdout();
  const auto result = run_local_job(options);
  const std::string output = ::testing::internal::GetCapturedStdout();
  ASSERT_TRUE(result.has_value()) << result.error().message;
  EXPECT_TRUE(result->succeeded()) << result->summary();
  EXPECT_EQ(result->exit_code(), 0);
  EXPECT_EQ(output, "output of 0\n");
  EXPECT_EQ(lines[0], std::vector<std::string>{"rank 0 of 4 met all"});
  // The output of the others is not lost, and comes among their errors in either order.
  EXPECT_EQ(lines[3].size(), 2U);
  EXPECT_EQ(result->ranks[3].last_lines, lines[3]);
}

TEST(LocalJob, SurvivorsMayReportBeforeTheGraceEnds) {
  const auto result = run_local_job(job_of(4, "report"));
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->first_failed, 1U);
  EXPECT_EQ(result->exit_code(), 128 + SIGKILL);
  EXPECT_EQ(result->ranks[1].signal, SIGKILL);
  EXPECT_EQ(result->ranks[1].last_lines, std::vector<std::string>{"about to die"});
  for (const std::uint32_t rank : {0U, 2U, 3U}) {
    EXPECT_EQ(result->ranks[rank].code, 7);
    EXPECT_FALSE(result->ranks[rank].was_killed);
    ASSERT_EQ(result->ranks[rank].last_lines.size(), 1U);
    EXPECT_TRUE(result->ranks[rank].last_lines[0].starts_with("rank 1: ")) << result->ranks[rank].last_lines[0];
  }
  EXPECT_NE(
      result->summary().find(
          "was ended by signal 9 (Killed)\nrank 1: about to die\nhelp: the kernel sends it where memory runs out"),
      std::string::npos)
      << result->summary();
}

TEST(LocalJob, WhoDoesNotEndAfterTheGraceIsKilled) {
  LocalJobOptions options = job_of(4, "one-fails");
  options.grace = milliseconds(100);
  options.kept_lines = 2;
  const auto result = run_local_job(options);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->first_failed, 2U);
  EXPECT_EQ(result->exit_code(), 42);
  EXPECT_TRUE(result->ranks[0].was_killed);
  EXPECT_FALSE(result->ranks[2].was_killed);
  const std::string process = std::to_string(result->ranks[2].process);
  EXPECT_EQ(result->summary(), "rank 2 (process " + process +
                                   ") exited with code 42\nrank 2: line 28\nrank 2: line 29\n"
                                   "3 others did not end by themselves and were killed\n");
}

/// What the caller's environment says of another job reaches no rank.
TEST(LocalJob, RanksGetNothingOfTheCallersJob) {
  for (const char* name : {"ESPALIER_SECRET_FILE", "ESPALIER_LISTENER_FD", "ESPALIER_OF_TOMORROW"})
    setenv(name, "1", 1);
  LocalJobOptions options = job_of(1, "meet");
  options.program = "/bin/sh";
  options.arguments = {"-c", "env | grep ^ESPALIER_ | cut -d= -f1 | sort >&2"};
  const auto result = run_local_job(options);
  for (const char* name : {"ESPALIER_SECRET_FILE", "ESPALIER_LISTENER_FD", "ESPALIER_OF_TOMORROW"}) unsetenv(name);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->ranks[0].last_lines,
            (std::vector<std::string>{"ESPALIER_JOB", "ESPALIER_LISTENER_FD", "ESPALIER_RANK", "ESPALIER_RENDEZVOUS",
                                      "ESPALIER_SECRET", "ESPALIER_WORLD"}));
}

TEST(LocalJob, AProgramThatCannotBeRunIsNamed) {
  LocalJobOptions options = job_of(2, "meet");
  options.program = "/no/such/program";
  const auto result = run_local_job(options);
  ASSERT_FALSE(result.has_value());
  EXPECT_EQ(result.error().message, "rank 0: cannot start /no/such/program: No such file or directory");
}

TEST(LocalJob, TheSecretIsNotOnACommandLine) {
  LocalJobOptions options = job_of(1, "meet");
  options.program = "/bin/sh";
  options.arguments = {"-c", "tr '\\0' '\\n' < /proc/self/cmdline | grep -c \"$ESPALIER_SECRET\" >&2; true"};
  const auto result = run_local_job(options);
  ASSERT_TRUE(result.has_value());
  EXPECT_EQ(result->ranks[0].last_lines, std::vector<std::string>{"0"});
}

/// A launcher in a process of its own, whose output the test reads.
class LauncherProcess {
 public:
  explicit LauncherProcess(const std::string& behaviour) {
    auto spawned = spawn({ESPALIER_RANK_PROGRAM, {"launch", behaviour}, rendezvous::process_environment(), false, -1});
    EXPECT_TRUE(spawned.has_value());
    process_ = spawned->process;
    output_ = std::move(spawned->error_pipe);
    fcntl(output_.get(), F_SETFL, 0);
  }
  LauncherProcess(const LauncherProcess&) = delete;
  LauncherProcess& operator=(const LauncherProcess&) = delete;
  ~LauncherProcess() { end(SIGKILL); }

  /// The next line; empty at the end.
  std::string line() {
    std::string text;
    char letter = 0;
    while (::read(output_.get(), &letter, 1) == 1 && letter != '\n') text += letter;
    return text;
  }
  /// The processes of three ranks, which each say "process N".
  std::vector<pid_t> ranks() {
    std::vector<pid_t> processes;
    for (int i = 0; i < 3; ++i) {
      const std::string text = line();
      processes.push_back(std::stoi(text.substr(text.rfind(' ') + 1)));
    }
    return processes;
  }
  void send(int signal) const { send_signal(process_, signal); }
  int end(int signal) {
    if (process_ <= 0) return 0;
    if (signal != 0) send(signal);
    int status = 0;
    waitpid(process_, &status, 0);
    process_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

 private:
  pid_t process_ = -1;
  FileDescriptor output_;
};

/// Whether it is gone, or soon is: its parent's death takes a moment to reach it.
bool vanishes(pid_t process) {
  for (int i = 0; i < 2000; ++i) {
    // An orphan's zombie may wait for whoever adopts it; it runs no more.
    std::string state(64, '\0');
    const std::string path = "/proc/" + std::to_string(process) + "/stat";
    const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file.is_open()) return true;
    const ssize_t size = ::read(file.get(), state.data(), state.size());
    const std::size_t name_end = state.rfind(')');
    if (size <= 0 || name_end == std::string::npos || state[name_end + 2] == 'Z') return true;
    std::this_thread::sleep_for(milliseconds(5));
  }
  return false;
}

TEST(LocalJob, NoOrphanSurvivesAKilledLauncher) {
  LauncherProcess launcher("stubborn");
  const std::vector<pid_t> ranks = launcher.ranks();
  launcher.end(SIGKILL);
  for (const pid_t rank : ranks) EXPECT_TRUE(vanishes(rank)) << rank;
}

TEST(LocalJob, AnInterruptIsPassedOn) {
  for (const int signal : {SIGINT, SIGTERM}) {
    LauncherProcess launcher("sleep");
    const std::vector<pid_t> ranks = launcher.ranks();
    EXPECT_EQ(launcher.end(signal), 130);
    for (const pid_t rank : ranks) EXPECT_TRUE(vanishes(rank)) << rank;
  }
}

TEST(LocalJob, WhoDoesNotHeedAnInterruptIsKilledAfterTheGrace) {
  LauncherProcess launcher("stubborn");
  const std::vector<pid_t> ranks = launcher.ranks();
  EXPECT_EQ(launcher.end(SIGINT), 130);
  for (const pid_t rank : ranks) EXPECT_TRUE(vanishes(rank)) << rank;
}

TEST(LineTail, KeepsTheLastLinesAndPassesAllOn) {
  std::vector<std::string> all;
  LineTail tail(
      2, [&](const std::string& line) { all.push_back(line); }, 5);
  tail.append("a\nbc");
  tail.append("d\n\nlonger than five\nopen");
  tail.finish();
  EXPECT_EQ(all, (std::vector<std::string>{"a", "bcd", "", "longe", "r tha", "n fiv", "e", "open"}));
  EXPECT_EQ(tail.lines(), (std::vector<std::string>{"e", "open"}));
}

}  // namespace
}  // namespace espalier::engine::launch
