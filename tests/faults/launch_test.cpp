// The command with its ranks, in PID, mount and network namespaces of the test's own: what is left of a job that was
// killed and stopped at any moment can be counted there, and nothing else is hit.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include "base/random.h"
#include "base/send_signal.h"
#include "lab/process.h"
#include "tests/support/confined.h"
#include "tests/support/random/rounds.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using test::Findings;

/// The loopback of a new network namespace is down.
bool raise_loopback() {
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ifreq request{};
  request.ifr_name[0] = 'l';
  request.ifr_name[1] = 'o';
  request.ifr_flags = IFF_UP;
  const bool is_up = ioctl(fd, SIOCSIFFLAGS, &request) == 0;
  close(fd);
  return is_up;
}

/// Runs a body confined, with a loopback and empty folders for files, or skips where that is not possible.
void expect_confined(const std::function<void(Findings&)>& body, std::chrono::seconds limit) {
  const auto findings = test::run_confined(
      [&] {
        Findings found;
        const bool is_ready = raise_loopback() && mount("tmpfs", "/tmp", "tmpfs", 0, nullptr) == 0 &&
                              mount("tmpfs", "/dev/shm", "tmpfs", 0, nullptr) == 0;
        if (found.expect(is_ready, "the namespaces are not ready")) body(found);
        return found.text();
      },
      limit);
  if (!findings) GTEST_SKIP() << "namespaces need root or CAP_SYS_ADMIN";
  EXPECT_EQ(*findings, "");
}

constexpr std::uint32_t world = 3;

/// A run that goes on until somebody ends it.
lab::Process start_run(const std::string& transport, const std::string& size, const std::string& timeout) {
  lab::Launch launch;
  launch.arguments = {ESPALIER_COMMAND,
                      "run",
                      "one-host",
                      "all_reduce",
                      "-p",
                      "ranks=" + std::to_string(world),
                      "-s",
                      size,
                      "-n",
                      "100000000",
                      "-w",
                      "0",
                      "--transport",
                      transport,
                      "-a",
                      "ring",
                      "--timeout",
                      timeout};
  return std::move(lab::Process::start(launch).value());
}

/// The ranks in their order, once all are there; empty when they do not come.
std::vector<pid_t> ranks_of(const lab::Process& run) {
  const std::string path = fmt::format("/proc/{0}/task/{0}/children", run.pid());
  for (int wait = 0; wait < 20'000; ++wait) {
    std::ifstream file(path);
    std::vector<pid_t> ranks;
    for (pid_t rank = 0; file >> rank;) ranks.push_back(rank);
    if (ranks.size() == world) return ranks;
    std::this_thread::sleep_for(milliseconds(1));
  }
  return {};
}

/// Waits until a rank's threads have started, so that it is inside of the job: the control plane has one.
void await_threads(pid_t rank) {
  for (int wait = 0; wait < 20'000; ++wait) {
    std::error_code status;
    std::ptrdiff_t threads = 0;
    for (std::filesystem::directory_iterator entry(fmt::format("/proc/{}/task", rank), status), end;
         !status && entry != end; entry.increment(status)) {
      ++threads;
    }
    if (threads > 1) return;
    std::this_thread::sleep_for(milliseconds(1));
  }
}

/// Processes but for this one and process 1, and files. Files in memory have no holder where there is no process.
std::string remains() {
  std::string text;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const std::string name = entry.path().filename();
    int process = 0;
    if (std::from_chars(name.data(), name.data() + name.size(), process).ec != std::errc()) continue;
    if (process != 1 && process != getpid()) text += "process " + name + " ";
  }
  for (const char* folder : {"/tmp", "/dev/shm", "/run/netns"}) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) text += entry.path().string() + " ";
  }
  return text;
}

/// Dead ranks' orphans are reaped by process 1, a moment later.
std::string remains_in_time() {
  std::string text = remains();
  for (int wait = 0; wait < 5000 && !text.empty(); ++wait) {
    std::this_thread::sleep_for(milliseconds(1));
    text = remains();
  }
  return text;
}

std::optional<lab::Outcome> end_of(lab::Process& run) { return run.wait_for(milliseconds(60'000)); }

// Each rank, by a kill from outside (as the kernel does where memory runs out) and by a crash.
TEST(Launch, ARankThatASignalEndsIsNamedWithTheSignal) {
  expect_confined(
      [](Findings& found) {
        for (const auto& [signal, name, code] :
             {std::tuple{SIGKILL, "signal 9 (Killed)", 1}, std::tuple{SIGSEGV, "signal 11 (Segmentation fault)", 4}}) {
          for (std::uint32_t rank = 0; rank < world; ++rank) {
            lab::Process run = start_run("auto", "64K", "20");
            const std::vector<pid_t> ranks = ranks_of(run);
            if (!found.expect(ranks.size() == world, "the ranks do not start")) return;
            await_threads(ranks[rank]);
            send_signal(ranks[rank], signal);
            const auto outcome = end_of(run);
            if (!found.expect(outcome.has_value(), "it does not end")) return;
            const std::string expected = fmt::format("rank {} (process {}) was ended by {}\n", rank, ranks[rank], name);
            found.expect(outcome->errors.find(expected) != std::string::npos,
                         "not told: " + expected + outcome->errors);
            found.expect(outcome->code == code, fmt::format("rank {}: exit code {}", rank, outcome->code));
          }
        }
        found.expect(remains_in_time().empty(), "left: " + remains());
      },
      std::chrono::seconds(200));
}

/// Kills, stops and continues random processes of a run at random moments; a launcher that was killed, too.
void disturb(const lab::Process& run, const std::vector<pid_t>& ranks, Random& random) {
  const auto pause = [&] { std::this_thread::sleep_for(std::chrono::microseconds(random.below(20'000))); };
  const auto any = [&] { return ranks[random.below(ranks.size())]; };
  pause();
  for (std::uint64_t stops = random.below(4); stops > 0; --stops) {
    const pid_t stopped = any();
    send_signal(stopped, SIGSTOP);
    pause();
    if (random.below(3) > 0) send_signal(stopped, SIGCONT);  // Some stay stopped, and must be ended all the same.
    pause();
  }
  constexpr std::array last = {std::pair{true, SIGKILL},  std::pair{true, SIGTERM},  std::pair{true, SIGINT},
                               std::pair{false, SIGKILL}, std::pair{false, SIGSEGV}, std::pair{false, SIGKILL}};
  const auto [hits_launcher, number] = last[random.below(last.size())];
  const pid_t hit = hits_launcher ? run.pid() : any();
  send_signal(hit, number);
  send_signal(hit, SIGCONT);  // All signals but SIGKILL wait for that in a stopped process.
}

/// Few rounds in a build's tests; ESPALIER_KILL_ROUNDS=200 for more.
TEST(Launch, NothingIsLeftOfRunsThatAreKilledAndStopped) {
  const std::int64_t rounds = test::rounds("ESPALIER_KILL_ROUNDS", 12);
  expect_confined(
      [rounds](Findings& found) {
        for (std::int64_t round = 0; round < rounds; ++round) {
          Random random(static_cast<std::uint64_t>(round));  // So that one round can be repeated.
          const std::string transport = random.below(2) == 0 ? "shm" : "tcp";
          const std::string size = random.below(2) == 0 ? "1K" : "4M";
          lab::Process run = start_run(transport, size, "2");
          const std::string name = fmt::format("round {} ({}, {}): ", round, transport, size);
          std::vector<pid_t> ranks;
          if (random.below(4) > 0) {
            ranks = ranks_of(run);
            if (!found.expect(!ranks.empty(), name + "the ranks do not start")) return;
            if (random.below(4) > 0) await_threads(ranks.back());
          } else {
            ranks = {run.pid()};  // While it starts them.
          }
          disturb(run, ranks, random);
          const auto outcome = end_of(run);
          if (!found.expect(outcome.has_value(), name + "it does not end")) return;
          found.expect(outcome->code != 0, name + "it succeeds");
          const bool was_killed = outcome->code == 128 + SIGKILL || outcome->code == 128 + SIGSEGV ||
                                  outcome->code == 128 + SIGTERM || outcome->code == 128 + SIGINT;
          found.expect(was_killed || !outcome->errors.empty(), fmt::format("{}{}, silent", name, outcome->code));
          const std::string left = remains_in_time();
          if (!found.expect(left.empty(), name + "left: " + left)) return;
        }
      },
      std::chrono::seconds(30 + 20 * rounds));
}

/// Time in which all ranks were stopped counts against none: more than the timeout, which busy cores do not use up.
TEST(Launch, ARunThatIsStoppedAsAWholeGoesOn) {
  expect_confined(
      [](Findings& found) {
        for (const char* transport : {"shm", "tcp"}) {
          lab::Process run = start_run(transport, "64K", "3");
          const std::vector<pid_t> ranks = ranks_of(run);
          if (!found.expect(ranks.size() == world, "the ranks do not start")) return;
          for (const pid_t rank : ranks) await_threads(rank);
          std::this_thread::sleep_for(milliseconds(300));
          for (const pid_t rank : ranks) send_signal(rank, SIGSTOP);
          std::this_thread::sleep_for(milliseconds(4500));
          for (const pid_t rank : ranks) send_signal(rank, SIGCONT);
          const auto ended = run.wait_for(milliseconds(4500));  // As long as a rank that blames another would take.
          found.expect(!ended, std::string(transport) + ": it ended: " + (ended ? ended->errors : ""));
        }
      },
      std::chrono::seconds(100));
}

}  // namespace
}  // namespace espalier
