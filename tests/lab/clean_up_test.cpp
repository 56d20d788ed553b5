// Tearing labs down, in PID, mount and network namespaces of the test's own: a bystander that must live is among what
// could be killed, and nobody else is.
#include "lab/namespaces/clean_up.h"

#include <gtest/gtest.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "base/random.h"
#include "base/send_signal.h"
#include "lab/namespaces/keeper.h"
#include "lab/namespaces/name_space.h"
#include "lab/process.h"
#include "tests/support/confined.h"
#include "tests/support/random/rounds.h"

namespace espalier::lab {
namespace {

using std::chrono_literals::operator""ms;
using test::Findings;

/// A lab whose process is gone: process ids end at 2^22.
JobName dead_job(int number) { return {(1 << 22) + number, 1, 0}; }

/// How often a race is tried: few times in a build's tests, often where somebody asks for it.
int rounds() { return static_cast<int>(test::rounds("ESPALIER_LAB_ROUNDS", 25)); }

Process sleeper(const std::string& name_space = {}) {
  Launch launch;
  launch.arguments = {"sleep", "1000"};
  launch.name_space = name_space;
  return std::move(Process::start(launch).value());
}

bool is_running(Process& process) { return !process.wait_for(0ms); }

void make_name_spaces(const std::string& prefix, int count) {
  std::string lines;
  for (int i = 0; i < count; ++i) lines += "netns add " + prefix + "-n" + std::to_string(i) + "\n";
  const auto done = run_program({"ip", "-batch", "-"}, lines);
  if (!done) std::abort();
}

/// What labs have left: their namespaces' names, and how many locks.
std::string remains() {
  std::string text;
  for (const std::string& name : list_name_spaces("espalier-")) text += name + " ";
  const std::size_t locks = list_locked_jobs().size();
  return locks == 0 ? text : text + std::to_string(locks) + " locks";
}

bool nothing_is_left() { return remains().empty(); }

/// Runs a body confined, or skips where that is not possible.
void expect_no_findings(const std::function<void(Findings&)>& body) {
  const auto findings = test::run_confined([&] {
    Findings found;
    body(found);
    return found.text();
  });
  if (!findings) GTEST_SKIP() << "namespaces need root or CAP_SYS_ADMIN";
  EXPECT_EQ(*findings, "");
}

Result<void> tear_down_of(const JobName& job) {
  auto lock = JobLock::try_take(job);
  if (!lock) return tl::unexpected(lock.error());
  if (!*lock) return fail(ErrorCode::unavailable, "somebody holds the lock");
  return tear_down(**lock);
}

TEST(TearDown, EndsWhatRunsInTheLabAndNothingElse) {
  expect_no_findings([](Findings& found) {
    make_name_spaces(dead_job(0).prefix(), 2);
    make_name_spaces(dead_job(0).prefix() + "0", 1);  // Begins alike, and is another's.
    make_name_spaces("other", 1);
    Process one = sleeper(dead_job(0).prefix() + "-n0");
    Process other = sleeper(dead_job(0).prefix() + "-n1");
    Process alike = sleeper(dead_job(0).prefix() + "0-n0");
    Process foreign = sleeper("other-n0");
    Process bystander = sleeper();
    const auto done = tear_down_of(dead_job(0));
    found.expect(done.has_value(), "it fails");
    found.expect(!is_running(one) && !is_running(other), "somebody lives in the lab");
    found.expect(is_running(alike) && is_running(foreign) && is_running(bystander), "a bystander died");
    found.expect(list_name_spaces("").size() == 2 && list_locked_jobs().empty(), "something is left, or too much gone");
  });
}

/// Entries of the lab's name that are no namespaces: nobody is ended for them.
TEST(TearDown, EndsNobodyForABrokenEntry) {
  expect_no_findings([](Findings& found) {
    make_name_spaces("other", 1);
    Process foreign = sleeper("other-n0");
    Process bystander = sleeper();
    const std::string path = name_space_path(dead_job(0).prefix() + "-n0");
    const std::vector<std::pair<const char*, std::function<bool()>>> entries = {
        {"a broken link", [&] { return symlink("/nowhere", path.c_str()) == 0; }},
        {"a link to another namespace", [&] { return symlink("/run/netns/other-n0", path.c_str()) == 0; }},
        {"a link to this process's", [&] { return symlink("/proc/1/ns/net", path.c_str()) == 0; }},
        {"an empty file", [&] { return std::ofstream(path).good(); }},
        {"a file nobody may read", [&] { return std::ofstream(path).good() && chmod(path.c_str(), 0) == 0; }},
        {"a FIFO", [&] { return mkfifo(path.c_str(), 0600) == 0; }},
        {"a namespace of another kind",
         [&] {
           return std::ofstream(path).good() && mount("/proc/1/ns/uts", path.c_str(), nullptr, MS_BIND, nullptr) == 0;
         }},
    };
    for (const bool is_alone : {true, false}) {
      for (const auto& [what, make] : entries) {
        found.expect(make(), std::string("cannot make ") + what);
        if (!is_alone) make_name_spaces(dead_job(0).prefix() + "-and", 1);
        const auto done = tear_down_of(dead_job(0));
        found.expect(done.has_value(), std::string(what) + " is not removed: " + (done ? "" : done.error().message));
        if (!found.expect(is_running(bystander), std::string("the bystander died of ") + what)) return;
        if (!found.expect(is_running(foreign), std::string("another namespace's process died of ") + what)) return;
        found.expect(nothing_is_left(), std::string(what) + " stays");
        found.expect(list_name_spaces("other-").size() == 1, std::string(what) + " took another namespace along");
      }
    }
    mkdir(path.c_str(), 0700);
    found.expect(!tear_down_of(dead_job(0)).has_value(), "a folder is no entry, and nobody is told");
    found.expect(is_running(bystander), "the bystander died of a folder");
  });
}

/// The namespace of everybody, under a lab's name.
TEST(TearDown, RefusesTheNamespaceThatItRunsIn) {
  expect_no_findings([](Findings& found) {
    make_name_spaces(dead_job(0).prefix(), 1);
    const std::string path = name_space_path(dead_job(0).prefix() + "-n1");
    found.expect(std::ofstream(path).good() && mount("/proc/1/ns/net", path.c_str(), nullptr, MS_BIND, nullptr) == 0,
                 "cannot make it");
    Process occupant = sleeper(dead_job(0).prefix() + "-n0");
    Process bystander = sleeper();
    const auto done = tear_down_of(dead_job(0));
    found.expect(
        !done && done.error().message.find("-n1 is the network namespace of this process") != std::string::npos,
        "it is not refused");
    found.expect(is_running(occupant) && is_running(bystander), "somebody was ended before it was refused");
    umount(path.c_str());
    found.expect(tear_down_of(dead_job(0)).has_value(), "it cannot be repeated");
    found.expect(!is_running(occupant) && is_running(bystander), "the repeated one is wrong");
  });
}

TEST(TearDown, LeavesALabAloneWhoseLockIsHeld) {
  expect_no_findings([](Findings& found) {
    make_name_spaces(dead_job(0).prefix(), 1);
    Process occupant = sleeper(dead_job(0).prefix() + "-n0");
    {
      const auto held = JobLock::try_take(dead_job(0));  // As by its keeper, or a process that is not seen from here.
      const auto cleaned = clean_leftovers();
      found.expect(cleaned && cleaned->empty() && is_running(occupant), "a lab was torn down under another's lock");
    }
    const auto cleaned = clean_leftovers();
    found.expect(cleaned && *cleaned == std::vector{dead_job(0).prefix()}, "it is not cleaned once the lock is free");
    found.expect(!is_running(occupant) && nothing_is_left(), "something is left");
  });
}

/// Two processes that clean the same leftovers at once.
TEST(TearDown, TwoAtOnceEndNobodyElse) {
  expect_no_findings([](Findings& found) {
    Process bystander = sleeper();
    for (int round = 0; round < rounds(); ++round) {
      make_name_spaces(dead_job(round).prefix(), 4);
      Process occupant = sleeper(dead_job(round).prefix() + "-n3");
      const pid_t other = fork();
      if (other == 0) _exit(clean_leftovers() ? 0 : 1);
      const bool cleaned = clean_leftovers().has_value();
      int status = 0;
      waitpid(other, &status, 0);
      found.expect(cleaned && status == 0, "round " + std::to_string(round) + ": one of two fails");
      if (!found.expect(is_running(bystander), "round " + std::to_string(round) + ": the bystander died")) return;
      if (!found.expect(!is_running(occupant) && nothing_is_left(), "round " + std::to_string(round) + ": left"))
        return;
    }
  });
}

/// A lab that is killed, so that its keeper tears it down while somebody cleans.
TEST(TearDown, AKeeperAndACleanerAtOnceEndNobodyElse) {
  expect_no_findings([](Findings& found) {
    Process bystander = sleeper();
    Random random(13);
    for (int round = 0; round < rounds(); ++round) {
      const pid_t lab = fork();
      if (lab == 0) {
        auto keeper = Keeper::start(std::move(lock_new_job().value()));
        make_name_spaces(keeper->job().prefix(), 3);
        const Process occupant = sleeper(keeper->job().prefix() + "-n1");
        for (;;) pause();
      }
      while (list_name_spaces("espalier-").size() < 3) std::this_thread::sleep_for(1ms);
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(10'000)));
      send_signal(lab, SIGKILL);
      int status = 0;
      waitpid(lab, &status, 0);
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(3'000)));
      for (int wait = 0; wait < 10'000 && !nothing_is_left(); ++wait) {
        const auto cleaned = clean_leftovers();
        if (!found.expect(cleaned.has_value(), cleaned ? "" : cleaned.error().message)) return;
        std::this_thread::sleep_for(1ms);
      }
      found.expect(nothing_is_left(), "round " + std::to_string(round) + ": something is left");
      if (!found.expect(is_running(bystander), "round " + std::to_string(round) + ": the bystander died")) return;
    }
  });
}

TEST(TearDown, IsDoneByTheLabWhereItsKeeperWasKilled) {
  expect_no_findings([](Findings& found) {
    auto keeper = Keeper::start(std::move(lock_new_job().value()));
    make_name_spaces(keeper->job().prefix(), 2);
    Process occupant = sleeper(keeper->job().prefix() + "-n1");
    std::ifstream children("/proc/self/task/" + std::to_string(getpid()) + "/children");
    pid_t first_child = 0;  // The keeper: it was started first.
    children >> first_child;
    if (!found.expect(first_child > 1, "the keeper is not found")) return;
    send_signal(first_child, SIGKILL);
    found.expect(keeper->finish().has_value(), "it fails");
    found.expect(!is_running(occupant), "the occupant lives");
    found.expect(nothing_is_left(), remains());
  });
}

}  // namespace
}  // namespace espalier::lab
