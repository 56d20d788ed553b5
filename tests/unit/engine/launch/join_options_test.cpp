#include "engine/launch/join_options.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <thread>

#include "engine/rendezvous/control_plane.h"
#include "engine/rendezvous/wire/listener.h"

namespace espalier::engine::launch {
namespace {

using std::chrono::milliseconds;

TEST(JoinOptions, AreWhatWasFoundOut) {
  LaunchInfo launch;
  launch.rank = 2;
  launch.world = 3;
  launch.host = "10.0.0.1";
  launch.port = 4000;
  launch.job = "17";
  const auto options = join_options(launch, "a secret", milliseconds(5));
  EXPECT_EQ(options.rank, 2U);
  EXPECT_EQ(options.world, 3U);
  EXPECT_EQ(options.host, "10.0.0.1");
  EXPECT_EQ(options.port, 4000);
  EXPECT_EQ(options.job, "17");
  EXPECT_EQ(options.secret, "a secret");
  EXPECT_EQ(options.timeout, milliseconds(5));
  EXPECT_FALSE(options.listener.fd.is_open());
}

LaunchInfo local_rank(std::uint32_t rank, const rendezvous::Listener& listener) {
  LaunchInfo launch;
  launch.launcher = Launcher::espalier;
  launch.rank = rank;
  launch.world = 2;
  launch.port = listener.port;
  launch.job = "local 1";
  if (rank == 0) launch.listener_fd = listener.fd.get();
  return launch;
}

/// Both ranks of a job in this process; what rank 0 did not join for, or nothing.
std::string join_both(const rendezvous::Listener& listener) {
  const auto join = [&](std::uint32_t rank) {
    return rendezvous::ControlPlane::join(join_options(local_rank(rank, listener), "a secret", milliseconds(10'000)));
  };
  std::thread other([&] { EXPECT_TRUE(join(1).has_value()); });
  const auto joined = join(0);
  other.join();
  return joined ? "" : joined.error().message;
}

bool is_listening(int fd) {
  int listens = 0;
  socklen_t length = sizeof listens;
  return getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &length) == 0 && listens != 0;
}

// One test: a process takes such a socket once.
TEST(JoinOptions, TheFirstJobTakesTheInheritedListenerAndNoLaterOneWhatHasItsNumber) {
  auto listener = rendezvous::listen_on("127.0.0.1", 0);
  auto others = rendezvous::listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener && others);
  // The number is another socket's before any job: a process that a rank started, and that inherited other descriptors.
  LaunchInfo mistaken = local_rank(0, *listener);
  mistaken.listener_fd = others->fd.get();
  EXPECT_FALSE(join_options(mistaken, "a secret", milliseconds(5)).listener.fd.is_open());
  EXPECT_TRUE(is_listening(others->fd.get()));

  EXPECT_EQ(join_both(*listener), "");
  const int number = listener->fd.release();  // Closed with the first job.
  EXPECT_FALSE(is_listening(number));
  ASSERT_EQ(dup2(others->fd.get(), number), number);  // As the application's own server may get it.
  listener->fd.reset(number);
  for (int later = 0; later < 2; ++later) {
    EXPECT_EQ(join_both(*listener), "");
    EXPECT_TRUE(is_listening(number));
  }
}

}  // namespace
}  // namespace espalier::engine::launch
