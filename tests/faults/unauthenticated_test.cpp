// Who is not of the job: on the data port, on the rendezvous while the job runs, and another job on the same port.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include "base/random.h"
#include "engine/tcp/greeting.h"
#include "engine/tcp/tcp_mesh.h"
#include "tests/faults/rank_processes.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using test::call_until_failure;
using test::Memory;
using test::RankProcesses;

constexpr const char* secret = "a secret of this test";

FileDescriptor connect_to(std::uint16_t port) {
  FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fd.reset();
  return fd;
}

void send_bytes(const FileDescriptor& fd, std::string_view bytes) {
  ::send(fd.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
}

/// Exactly these bytes; fewer when the other end hangs up or is silent for ten seconds.
std::string receive(const FileDescriptor& fd, std::size_t bytes) {
  std::string received;
  while (received.size() < bytes) {
    pollfd entry{fd.get(), POLLIN, 0};
    char letter = 0;
    if (poll(&entry, 1, 10000) != 1 || recv(fd.get(), &letter, 1, 0) != 1) break;
    received += letter;
  }
  return received;
}

std::string random_bytes(Random& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.next());
  return bytes;
}

/// A mesh of its own, and the plane of a job of one that it asks whether it still lives.
class DataPort : public ::testing::Test {
 protected:
  void SetUp() override {
    engine::rendezvous::Options options;
    auto plane = engine::rendezvous::ControlPlane::join(std::move(options));
    ASSERT_TRUE(plane);
    plane_ = std::move(*plane);
    auto mesh = engine::TcpMesh::create("127.0.0.1", secret);
    ASSERT_TRUE(mesh);
    mesh_ = std::move(*mesh);
  }

  /// A stream of the job can still be made, and carries bytes.
  void expect_open(std::uint32_t src) {
    const engine::ConnectionKey key{7, src, 0};
    const auto deadline = steady_clock::now() + milliseconds(20000);
    auto out = mesh_->connect(key, {{"127.0.0.1"}, mesh_->port(), ""}, deadline, *plane_);
    ASSERT_TRUE(out) << out.error().message;
    auto in = mesh_->accept(key, deadline, *plane_);
    ASSERT_TRUE(in) << in.error().message;
    send_bytes(*out, "x");
    EXPECT_EQ(receive(*in, 1), "x");
  }

  std::unique_ptr<engine::rendezvous::ControlPlane> plane_;
  std::unique_ptr<engine::TcpMesh> mesh_;
};

TEST_F(DataPort, Fault10UnauthenticatedConnectionsDoNoHarm) {
  Random random(7);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 20; ++i) silent.push_back(connect_to(mesh_->port()));
  expect_open(1);
  for (int i = 0; i < 20; ++i) {
    const FileDescriptor client = connect_to(mesh_->port());
    send_bytes(client, random_bytes(random, 1 + random.below(4000)));
  }
  expect_open(2);
  // Far more than are kept: the oldest go, who belongs to the job tries again.
  for (int i = 0; i < 400; ++i) silent.push_back(connect_to(mesh_->port()));
  expect_open(3);
}

TEST_F(DataPort, Fault10AnotherSecretIsTurnedAway) {
  const FileDescriptor client = connect_to(mesh_->port());
  const auto nonce = engine::decode_hello(receive(client, engine::hello_size));
  ASSERT_TRUE(nonce);
  send_bytes(client, engine::encode_claim({{7, 1, 0}, {}, 0}, *nonce, "another secret of this test"));
  EXPECT_EQ(receive(client, 1), "");  // It hangs up and says nothing.
  expect_open(1);
}

TEST_F(DataPort, Fault10ARepeatedClaimIsTurnedAway) {
  const FileDescriptor first = connect_to(mesh_->port());
  const auto nonce = engine::decode_hello(receive(first, engine::hello_size));
  ASSERT_TRUE(nonce);
  const engine::StreamClaim claim{{7, 1, 0}, {}, 0};
  const std::string words = engine::encode_claim(claim, *nonce, secret);
  send_bytes(first, words);
  const std::string welcome = receive(first, engine::welcome_size);
  EXPECT_TRUE(engine::decode_welcome(welcome, claim, *nonce, secret));
  EXPECT_FALSE(engine::decode_claim(welcome + words.substr(welcome.size()), *nonce, secret));
  const FileDescriptor second = connect_to(mesh_->port());
  ASSERT_EQ(receive(second, engine::hello_size).size(), engine::hello_size);
  send_bytes(second, words);  // As it was received on the first connection.
  EXPECT_EQ(receive(second, 1), "");
}

TEST_F(DataPort, AClaimHasNoOtherForm) {
  const engine::rendezvous::Digest nonce{};
  const std::string claim = engine::encode_claim({{1, 2, 3}, {}, 0}, nonce, secret);
  ASSERT_EQ(claim.size(), engine::claim_size);
  ASSERT_TRUE(engine::decode_claim(claim, nonce, secret));
  EXPECT_EQ(engine::decode_claim(claim, nonce, secret)->key.stream, 3U);
  for (std::size_t bit = 0; bit < 8 * claim.size(); ++bit) {
    std::string changed = claim;
    changed[bit / 8] = static_cast<char>(static_cast<unsigned char>(changed[bit / 8]) ^ (1U << bit % 8));
    EXPECT_FALSE(engine::decode_claim(changed, nonce, secret)) << bit;
  }
  EXPECT_FALSE(engine::decode_claim(claim.substr(1), nonce, secret));
  EXPECT_FALSE(engine::decode_hello(claim));
}

TEST_F(DataPort, Fault19AnAddressThatNobodyHasIsNamed) {
  for (const char* address : {"192.0.2.1", "127.0.0.1", "no-such-host.invalid"}) {
    const auto connected =
        mesh_->connect({7, 1, 0}, {{address}, 1, ""}, steady_clock::now() + milliseconds(300), *plane_);
    ASSERT_FALSE(connected);
    EXPECT_NE(connected.error().message.find(address), std::string::npos) << connected.error().message;
    EXPECT_FALSE(connected.error().help.empty());
  }
}

TEST_F(DataPort, Fault19ANearAddressThatIsNotHereIsNamed) {
  const auto connected = mesh_->connect({7, 1, 0}, {{"127.0.0.1"}, mesh_->port(), "192.0.2.1"},
                                        steady_clock::now() + milliseconds(300), *plane_);
  ASSERT_FALSE(connected);
  EXPECT_NE(connected.error().message.find("cannot use the near address"), std::string::npos)
      << connected.error().message;
}

TEST_F(DataPort, WhoWaitsForAConnectionHearsOfAFailure) {
  std::thread failing([this] {
    std::this_thread::sleep_for(milliseconds(30));
    plane_->abort("no more");
  });
  const auto accepted = mesh_->accept({7, 1, 0}, steady_clock::now() + milliseconds(20000), *plane_);
  failing.join();
  ASSERT_FALSE(accepted);
  EXPECT_NE(accepted.error().message.find("no more"), std::string::npos);
}

class Rendezvous : public ::testing::TestWithParam<TransportChoice> {};

TEST_P(Rendezvous, Fault10UnauthenticatedConnectionsComeWhileTheJobRuns) {
  JobOptions options;
  options.transport = GetParam();
  RankProcesses ranks(3, options, [](RankProcesses::Rank&& own) {
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::plain);
  });
  ASSERT_TRUE(ranks.await_calls(3));
  Random random(9);
  std::vector<FileDescriptor> silent;
  for (int i = 0; i < 50; ++i) {
    silent.push_back(connect_to(ranks.port()));
    send_bytes(connect_to(ranks.port()), random_bytes(random, 1 + random.below(3000)));
  }
  EXPECT_TRUE(ranks.await_calls(ranks.report(0).calls.load() + 20));
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0);
}

/// A rank of another job that was sent to this port does not get in, and says why; this job goes on.
TEST_P(Rendezvous, Fault11AnotherJobOnThePort) {
  JobOptions options;
  options.transport = GetParam();
  RankProcesses ranks(2, options, [](RankProcesses::Rank&& own) {
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::plain);
  });
  ASSERT_TRUE(ranks.await_calls(3));
  for (const std::uint32_t rank : {0U, 1U}) {
    JobOptions other;
    other.rendezvous.host = "127.0.0.1";
    other.rendezvous.port = ranks.port();
    other.rendezvous.rank = rank;
    other.rendezvous.world = 2;
    other.rendezvous.secret = "another secret of this test";
    other.rendezvous.timeout = milliseconds(3000);
    test::PlannedSource source("flat");
    const auto joined = Communicator::join(std::move(other), source.source());
    ASSERT_FALSE(joined);
    EXPECT_FALSE(joined.error().message.empty());
  }
  EXPECT_TRUE(ranks.await_calls(ranks.report(0).calls.load() + 20));
  for (std::uint32_t rank = 0; rank < 2; ++rank) EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, Rendezvous, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

}  // namespace
}  // namespace espalier
