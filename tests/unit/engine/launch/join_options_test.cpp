#include "engine/launch/join_options.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

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
  ASSERT_TRUE(options);
  EXPECT_EQ(options->rank, 2U);
  EXPECT_EQ(options->world, 3U);
  EXPECT_EQ(options->host, "10.0.0.1");
  EXPECT_EQ(options->port, 4000);
  EXPECT_EQ(options->job, "17");
  EXPECT_EQ(options->secret, "a secret");
  EXPECT_EQ(options->timeout, milliseconds(5));
  EXPECT_FALSE(options->listener.fd.is_open());
}

TEST(JoinOptions, TakeTheInheritedListener) {
  const int listening = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(listening, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  LaunchInfo launch;
  launch.listener_fd = listening;
  const auto refused = join_options(launch, "a secret", milliseconds(5));
  ASSERT_FALSE(refused);  // It does not listen yet.
  EXPECT_EQ(refused.error().code, ErrorCode::invalid_input);
  ASSERT_EQ(listen(listening, 1), 0);
  const auto options = join_options(launch, "a secret", milliseconds(5));
  ASSERT_TRUE(options);
  EXPECT_EQ(options->listener.fd.get(), listening);
}

}  // namespace
}  // namespace espalier::engine::launch
