// Ranks as processes that die, stop and hang.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>

#include "base/send_signal.h"
#include "tests/support/networks/planes.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::everyone;
using test::long_enough;
using test::options_of;

/// A job whose ranks are forked processes but for one, which is this process.
class Faults : public ::testing::Test {
 protected:
  static constexpr std::uint32_t world = 4;

  /// Starts all ranks but `own`; each joins, passes a barrier, and then waits for the job's failure. It exits with 10
  /// plus the rank that it saw blamed, with 1 when it could not join, with 2 when nothing failed in time.
  void start(std::uint32_t own, milliseconds timeout = long_enough) {
    own_ = own;
    auto listener = listen_on("127.0.0.1", 0);
    ASSERT_TRUE(listener.has_value());
    const std::uint16_t port = listener->port;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank == own) continue;
      children_[rank] = fork();
      ASSERT_GE(children_[rank], 0);
      if (children_[rank] != 0) continue;
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      Options options = options_of(rank, world, port, timeout);
      if (rank == 0) {
        options.listener = std::move(*listener);
      } else {
        listener->fd.reset();
      }
      ::_exit(run(std::move(options)));
    }
    Options options = options_of(own, world, port, timeout);
    if (own == 0) {
      options.listener = std::move(*listener);
    } else {
      listener->fd.reset();
    }
    auto plane = ControlPlane::join(std::move(options));
    ASSERT_TRUE(plane.has_value()) << plane.error().message;
    plane_ = std::move(*plane);
    ASSERT_TRUE(plane_->barrier("all", everyone(world), long_enough).has_value());
  }

  static int run(Options options) {
    auto plane = ControlPlane::join(std::move(options));
    if (!plane) return 1;
    // The barrier may fail already: the culprit may be gone before its answer has reached this rank.
    (void)(*plane)->barrier("all", everyone(world), long_enough);
    pollfd entry{(*plane)->failure_fd(), POLLIN, 0};
    if (poll(&entry, 1, 20000) != 1) return 2;
    return 10 + static_cast<int>((*plane)->failure()->rank);
  }

  void TearDown() override {
    plane_.reset();
    for (const pid_t child : children_) {
      send_signal(child, SIGKILL);
    }
    for (const pid_t child : children_) {
      if (child > 0) waitpid(child, nullptr, 0);
    }
  }

  [[nodiscard]] int exit_code(std::uint32_t rank) {
    int status = 0;
    if (waitpid(children_[rank], &status, 0) != children_[rank]) return -1;
    children_[rank] = 0;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// This rank and all children but the culprit blame it.
  void expect_blamed(std::uint32_t culprit, const std::string& what) {
    pollfd entry{plane_->failure_fd(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 20000), 1);
    EXPECT_EQ(plane_->failure()->rank, culprit);
    const std::string expected_end = "process " + std::to_string(children_[culprit]) + ")";
    EXPECT_NE(plane_->failure()->reason.find(what), std::string::npos) << plane_->failure()->reason;
    EXPECT_TRUE(plane_->failure()->reason.ends_with(expected_end)) << plane_->failure()->reason;
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank == culprit || rank == own_) continue;
      EXPECT_EQ(exit_code(rank), 10 + static_cast<int>(culprit)) << rank;
    }
  }

  std::uint32_t own_ = 0;
  std::array<pid_t, world> children_{};
  std::unique_ptr<ControlPlane> plane_;
};

TEST_F(Faults, AKilledRankIsNamedByAll) {
  start(1);
  send_signal(children_[2], SIGKILL);
  expect_blamed(2, "without goodbye: it died or was killed");
}

TEST_F(Faults, AKilledRankIsNamedByTheHub) {
  start(0);
  send_signal(children_[3], SIGKILL);
  expect_blamed(3, "without goodbye: it died or was killed");
}

TEST_F(Faults, AKilledHubIsNamedByAll) {
  start(3);
  send_signal(children_[0], SIGKILL);
  expect_blamed(0, "without goodbye: it died or was killed");
}

TEST_F(Faults, AStoppedHubIsNamedByAll) {
  start(2, milliseconds(3000));
  send_signal(children_[0], SIGSTOP);
  expect_blamed(0, "it has been silent for 3 s");
}

TEST_F(Faults, AStoppedRankIsNamedByAll) {
  start(0, milliseconds(3000));
  send_signal(children_[1], SIGSTOP);
  expect_blamed(1, "it has been silent for 3 s");
}

TEST_F(Faults, AFailureReachesWhoWaitsInAnExchange) {
  start(1);
  std::thread killer([this] { send_signal(children_[3], SIGKILL); });
  const auto blobs = plane_->exchange("never", everyone(world), "x", long_enough);
  killer.join();
  ASSERT_FALSE(blobs.has_value());
  EXPECT_TRUE(blobs.error().message.starts_with("rank 3: ")) << blobs.error().message;
}

/// Rank 0 waits in an exchange when both ranks are stopped, for longer than it would wait; rank 1 comes when they go
/// on.
TEST(Stopped, TheTimeThatAllAreStoppedDoesNotCount) {
  constexpr milliseconds timeout{2000};
  auto listener = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener.has_value());
  const std::uint16_t port = listener->port;
  int go[2], ready[2];
  ASSERT_EQ(pipe(go), 0);
  ASSERT_EQ(pipe(ready), 0);
  char byte = 0;
  const auto run = [&](std::uint32_t rank) {
    Options options = options_of(rank, 2, port, timeout);
    if (rank == 0) options.listener = std::move(*listener);
    auto plane = ControlPlane::join(std::move(options));
    if (!plane || !(*plane)->barrier("all", everyone(2), long_enough)) return 1;
    if (write(ready[1], "r", 1) != 1 || (rank == 1 && read(go[0], &byte, 1) != 1)) return 2;
    return (*plane)->exchange("late", everyone(2), "x", timeout) ? 0 : 3;
  };
  std::array<pid_t, 2> ranks{};
  for (std::uint32_t rank = 0; rank < 2; ++rank) {
    ranks[rank] = fork();
    ASSERT_GE(ranks[rank], 0);
    if (ranks[rank] != 0) continue;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    ::_exit(run(rank));
  }
  listener->fd.reset();
  for (std::size_t i = 0; i < ranks.size(); ++i) ASSERT_EQ(read(ready[0], &byte, 1), 1);
  std::this_thread::sleep_for(milliseconds(200));
  for (const pid_t rank : ranks) send_signal(rank, SIGSTOP);
  std::this_thread::sleep_for(2 * timeout);
  ASSERT_EQ(write(go[1], "g", 1), 1);
  for (const pid_t rank : ranks) {
    send_signal(rank, SIGCONT);
    std::this_thread::sleep_for(milliseconds(50));  // The hub's deadline has passed before the other comes.
  }
  for (const pid_t rank : ranks) {
    int status = 0;
    ASSERT_EQ(waitpid(rank, &status, 0), rank);
    EXPECT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 0);
  }
  for (const int fd : {go[0], go[1], ready[0], ready[1]}) close(fd);
}

}  // namespace
}  // namespace espalier::engine::rendezvous
