// Who is not of the job must neither get in nor do harm.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <optional>

#include "engine/rendezvous/wire/link.h"
#include "engine/rendezvous/wire/messages.h"
#include "tests/support/networks/planes.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::everyone;
using test::long_enough;
using test::on_each_rank;
using test::options_of;
using test::PlaneResult;

/// A plain connection to the hub, that speaks as it likes.
class RawClient {
 public:
  explicit RawClient(std::uint16_t port) {
    FileDescriptor fd(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(::connect(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    link_ = FrameLink(std::move(fd), largest_greeting);
  }

  void send_bytes(std::string_view bytes) const { ::send(link_.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  void claim(const Claim& claim) { link_.send(FrameType::claim, encode(claim)); }
  /// The next frame; nothing when the hub hung up or says nothing for ten seconds.
  std::optional<Frame> receive() {
    while (true) {
      auto frame = link_.next();
      if (!frame) return std::nullopt;
      if (*frame) return **frame;
      pollfd entry{link_.fd(), POLLIN, 0};
      if (poll(&entry, 1, 10000) != 1 || !link_.fill()) return std::nullopt;
    }
  }
  Digest receive_nonce() {
    const auto frame = receive();
    EXPECT_TRUE(frame && frame->type == FrameType::hello);
    return frame ? decode_hello(frame->payload)->nonce : Digest{};
  }

 private:
  FrameLink link_;
};

/// A job of two whose rank 1 joins only when the test says so; in between, unauthenticated connections come.
class Unauthenticated : public ::testing::Test {
 protected:
  void start(milliseconds timeout = long_enough) {
    timeout_ = timeout;
    auto listener = listen_on("127.0.0.1", 0);
    ASSERT_TRUE(listener.has_value());
    port_ = listener->port;
    hub_ = std::thread([this, timeout, listener = std::move(*listener)]() mutable {
      Options options = options_of(0, 2, 0, timeout);
      options.listener = std::move(listener);
      planes_[0] = ControlPlane::join(std::move(options));
    });
  }
  PlaneResult try_join(const std::function<void(Options&)>& change) const {
    Options options = options_of(1, 2, port_, timeout_);
    change(options);
    return ControlPlane::join(std::move(options));
  }
  /// The job forms after all, and works.
  void finish() {
    planes_[1] = ControlPlane::join(options_of(1, 2, port_, timeout_));
    hub_.join();
    on_each_rank(2, [this](std::uint32_t rank) {
      ASSERT_TRUE(planes_[rank].has_value()) << planes_[rank].error().message;
      EXPECT_TRUE((*planes_[rank])->barrier("b", everyone(2), long_enough).has_value());
    });
  }
  [[nodiscard]] bool job_works() {
    bool works = true;
    on_each_rank(2, [&](std::uint32_t rank) {
      if (!(*planes_[rank])->barrier("b", everyone(2), long_enough)) works = false;
    });
    return works && !(*planes_[0])->has_failed();
  }
  Claim valid_claim(const Digest& nonce) const {
    Claim claim{protocol_version, 1, 2, "test", "host x, process 1", hmac_sha256("my", "nonce"), {}};
    claim.code = claim_code(test::test_secret, nonce, claim);
    return claim;
  }

  milliseconds timeout_{0};
  std::uint16_t port_ = 0;
  std::thread hub_;
  std::vector<PlaneResult> planes_{2};
};

TEST_F(Unauthenticated, SilentOnesAndScannersDoNotKeepTheJobFromForming) {
  start();
  std::vector<RawClient> silent;
  for (int i = 0; i < 40; ++i) silent.emplace_back(port_);
  for (int i = 0; i < 40; ++i) RawClient scanner(port_);
  finish();
  // And not later either.
  for (int i = 0; i < 100; ++i) silent.emplace_back(port_);
  EXPECT_TRUE(job_works());
}

TEST_F(Unauthenticated, SilentOnesAreDroppedWhenTheirTimeIsUp) {
  start(milliseconds(4000));
  RawClient silent(port_);
  RawClient half(port_);
  half.send_bytes(frame_header(FrameType::claim, 100));
  silent.receive_nonce();
  half.receive_nonce();
  // A hub that waits 4 s for its ranks waits half of it for a greeting.
  EXPECT_FALSE(silent.receive().has_value());
  EXPECT_FALSE(half.receive().has_value());
  finish();
}

TEST_F(Unauthenticated, GarbageIsDroppedAtOnce) {
  start();
  for (const std::string& garbage :
       {std::string("GET / HTTP/1.1\r\nHost: x\r\n\r\n"), std::string(5000, '\xff'), std::string(64, '\0'),
        frame_header(FrameType::claim, 0xFFFFFFFF), frame_header(FrameType::claim, largest_greeting + 1),
        frame_header(FrameType::put, 0), frame_header(FrameType::goodbye, 0),
        frame_header(FrameType::claim, 5) + "hello"}) {
    RawClient client(port_);
    client.receive_nonce();
    client.send_bytes(garbage);
    EXPECT_FALSE(client.receive().has_value());
  }
  finish();
}

TEST_F(Unauthenticated, AReplayedClaimIsRefused) {
  start();
  Claim recorded;
  {
    RawClient client(port_);
    recorded = valid_claim(client.receive_nonce());
    RawClient replaying(port_);
    replaying.receive_nonce();
    replaying.claim(recorded);
    const auto refusal = replaying.receive();
    ASSERT_TRUE(refusal && refusal->type == FrameType::refusal);
    EXPECT_EQ(decode_refusal(refusal->payload)->kind, RefusalKind::wrong_secret);
  }
  finish();
}

TEST_F(Unauthenticated, AHubThatDoesNotKnowTheSecretIsFoundOut) {
  // The client listens itself and sends the newcomer's own proof back.
  auto listener = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener.has_value());
  std::thread impostor([&] {
    pollfd entry{listener->fd.get(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 10000), 1);
    FrameLink link(FileDescriptor(accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC)), largest_greeting);
    link.send(FrameType::hello, encode(Hello{}));
    while (true) {
      auto frame = link.next();
      if (frame && *frame) {
        const auto claim = decode_claim((*frame)->payload);
        ASSERT_TRUE(claim.has_value());
        link.send(FrameType::welcome, encode(Welcome{claim->name, claim->code}));
        break;
      }
      pollfd waiting{link.fd(), POLLIN, 0};
      ASSERT_EQ(poll(&waiting, 1, 10000), 1);
      link.fill();
    }
    pollfd waiting{link.fd(), POLLIN, 0};
    poll(&waiting, 1, 10000);
  });
  const auto plane = ControlPlane::join(options_of(1, 2, listener->port));
  impostor.join();
  ASSERT_FALSE(plane.has_value());
  EXPECT_NE(plane.error().message.find("does not know the secret"), std::string::npos) << plane.error().message;
}

TEST_F(Unauthenticated, AnotherServiceOnThePortIsNamed) {
  auto listener = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(listener.has_value());
  std::thread service([&] {
    pollfd entry{listener->fd.get(), POLLIN, 0};
    ASSERT_EQ(poll(&entry, 1, 10000), 1);
    const FileDescriptor fd(accept4(listener->fd.get(), nullptr, nullptr, SOCK_CLOEXEC));
    ::send(fd.get(), "220 mail ESMTP\r\n", 16, MSG_NOSIGNAL);
    pollfd waiting{fd.get(), POLLIN, 0};
    poll(&waiting, 1, 10000);
  });
  const auto plane = ControlPlane::join(options_of(1, 2, listener->port));
  service.join();
  ASSERT_FALSE(plane.has_value());
  EXPECT_EQ(plane.error().code, ErrorCode::invalid_input);
  EXPECT_NE(plane.error().message.find("is no rendezvous"), std::string::npos) << plane.error().message;
}

TEST_F(Unauthenticated, NewcomersThatDoNotFitAreToldWhy) {
  start();
  const auto message_of = [this](const std::function<void(Options&)>& change) {
    const auto plane = try_join(change);
    return plane ? std::string("joined") : plane.error().message;
  };
  const std::string refuses = "the rendezvous at 127.0.0.1:" + std::to_string(port_) + " refuses: ";
  EXPECT_EQ(message_of([](auto& options) { options.secret = "another secret"; }),
            refuses + "its secret is another one than the job's");
  EXPECT_EQ(message_of([](auto& options) { options.world = 3; }),
            refuses + "the job has 2 ranks, but rank 1 was told that it has 3");
  EXPECT_EQ(message_of([](auto& options) {
              options.job = "other";
              options.timeout = milliseconds(200);
            }),
            "rank 1 could not join within 200 ms: " + refuses + "this is the rendezvous of job 'test', not of 'other'");
  finish();
  EXPECT_TRUE(message_of([](auto&) {}).starts_with(refuses + "rank 1 is host "));
  EXPECT_TRUE(job_works());
}

TEST_F(Unauthenticated, TheHubSaysWhomItTurnedAway) {
  start(milliseconds(600));
  const auto plane = try_join([](auto& options) { options.secret = "another secret"; });
  EXPECT_FALSE(plane.has_value());
  hub_.join();
  ASSERT_FALSE(planes_[0].has_value());
  EXPECT_EQ(planes_[0].error().message, "rank 1 did not join within 600 ms");
  EXPECT_EQ(planes_[0].error().help,
            "the last newcomer that was turned away was 127.0.0.1: its secret is another one than the job's");
}

}  // namespace
}  // namespace espalier::engine::rendezvous
