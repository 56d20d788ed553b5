// Ranks as threads of this process.
#include "engine/rendezvous/control_plane.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <poll.h>

#include <thread>

#include "engine/rendezvous/peers.h"
#include "tests/support/networks/planes.h"

namespace espalier::engine::rendezvous {
namespace {

using std::chrono::milliseconds;
using test::everyone;
using test::join_all;
using test::long_enough;
using test::on_each_rank;
using test::options_of;
using test::planes_of;

std::size_t open_descriptors() {
  DIR* folder = opendir("/proc/self/fd");
  std::size_t count = 0;
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

bool is_readable(int fd, int timeout_ms) {
  pollfd entry{fd, POLLIN, 0};
  return poll(&entry, 1, timeout_ms) == 1;
}

TEST(ControlPlane, AWorldOfOneNeedsNoNetworkAndNoSecret) {
  Options options;
  auto plane = ControlPlane::join(std::move(options));
  ASSERT_TRUE(plane.has_value()) << plane.error().message;
  const std::vector<std::uint32_t> self{0};
  EXPECT_EQ((*plane)->exchange("t", self, "me", long_enough).value(), std::vector<std::string>{"me"});
  EXPECT_TRUE((*plane)->barrier("b", self, long_enough).has_value());
  EXPECT_EQ((*plane)->estimate_clock(long_enough)->error_ns, 0);
  const auto peers = exchange_peers(**plane, long_enough);
  ASSERT_TRUE(peers.has_value());
  EXPECT_EQ(peers->at(0).process, getpid());
  (*plane)->abort("enough");
  EXPECT_TRUE((*plane)->has_failed());
}

TEST(ControlPlane, EveryoneGetsAllBlobsInOrder) {
  for (const std::uint32_t world : {2U, 5U, 16U}) {
    auto planes = planes_of(world);
    std::vector<std::string> expected;
    for (std::uint32_t rank = 0; rank < world; ++rank) expected.push_back(std::string(rank * 1000, 'a'));
    on_each_rank(world, [&](std::uint32_t rank) {
      for (int round = 0; round < 20; ++round) {
        const auto blobs = planes[rank]->exchange("same tag", everyone(world), expected[rank], long_enough);
        ASSERT_TRUE(blobs.has_value()) << blobs.error().message;
        ASSERT_EQ(*blobs, expected);
      }
    });
  }
}

TEST(ControlPlane, LargeBlobsPass) {
  auto planes = planes_of(3);
  on_each_rank(3, [&](std::uint32_t rank) {
    const std::string blob(largest_blob, static_cast<char>('a' + rank));
    const auto blobs = planes[rank]->exchange("large", everyone(3), blob, long_enough);
    ASSERT_TRUE(blobs.has_value()) << blobs.error().message;
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ((*blobs)[i].size(), largest_blob);
      EXPECT_EQ((*blobs)[i].back(), static_cast<char>('a' + i));
    }
  });
  EXPECT_EQ(planes[1]->exchange("larger", everyone(3), std::string(largest_blob + 1, 'x'), long_enough).error().code,
            ErrorCode::too_large);
}

TEST(ControlPlane, GroupsExchangeAtOnceFromManyThreads) {
  auto planes = planes_of(4);
  on_each_rank(4, [&](std::uint32_t rank) {
    const std::vector<std::uint32_t> pair =
        rank < 2 ? std::vector<std::uint32_t>{1, 0} : std::vector<std::uint32_t>{2, 3};
    on_each_rank(3, [&](std::uint32_t thread) {
      const std::string tag = "tag " + std::to_string(thread);
      for (int round = 0; round < 10; ++round) {
        const std::string blob = std::to_string(rank) + tag;
        const auto blobs = planes[rank]->exchange(tag, pair, blob, long_enough);
        ASSERT_TRUE(blobs.has_value()) << blobs.error().message;
        EXPECT_EQ(blobs->at(0), std::to_string(pair[0]) + tag);
        EXPECT_EQ(blobs->at(1), std::to_string(pair[1]) + tag);
      }
    });
  });
}

TEST(ControlPlane, ATimeoutNamesWhoDidNotCome) {
  auto planes = planes_of(4);
  on_each_rank(4, [&](std::uint32_t rank) {
    if (rank == 1 || rank == 3) return;
    const auto blobs = planes[rank]->exchange("t", everyone(4), "x", milliseconds(50));
    ASSERT_FALSE(blobs.has_value());
    EXPECT_EQ(blobs.error().code, ErrorCode::unavailable);
    EXPECT_NE(blobs.error().message.find("1, "), std::string::npos) << blobs.error().message;
    EXPECT_NE(blobs.error().message.find("3 did not come within 50 ms"), std::string::npos) << blobs.error().message;
  });
  EXPECT_FALSE(planes[0]->has_failed());
}

TEST(ControlPlane, AbortReachesAllWithRankAndReason) {
  for (const std::uint32_t culprit : {0U, 2U}) {
    auto planes = planes_of(4);
    for (const auto& plane : planes) EXPECT_FALSE(is_readable(plane->failure_fd(), 0));
    on_each_rank(4, [&](std::uint32_t rank) {
      if (rank == culprit) {
        planes[rank]->abort("out of patience");
        planes[rank]->abort("once more");
      } else {
        const auto blobs = planes[rank]->exchange("never", everyone(4), "x", long_enough);
        ASSERT_FALSE(blobs.has_value());
        EXPECT_TRUE(blobs.error().message.starts_with("rank " + std::to_string(culprit) + ": out of patience (host "))
            << blobs.error().message;
      }
      EXPECT_TRUE(is_readable(planes[rank]->failure_fd(), 10000));
      EXPECT_TRUE(planes[rank]->has_failed());
      EXPECT_EQ(planes[rank]->failure()->rank, culprit);
      EXPECT_FALSE(planes[rank]->barrier("later", everyone(4), long_enough).has_value());
    });
  }
}

TEST(ControlPlane, BlameNamesAnotherRank) {
  auto planes = planes_of(3);
  planes[1]->blame(2, "its data connection broke");
  for (const auto& plane : planes) {
    EXPECT_TRUE(is_readable(plane->failure_fd(), 10000));
    EXPECT_EQ(plane->failure()->rank, 2U);
    EXPECT_EQ(plane->failure_error().message, "rank 2: its data connection broke");
  }
}

TEST(ControlPlane, LeavingIsNoFailure) {
  auto planes = planes_of(3);
  planes[2]->leave();
  planes[2]->leave();
  const auto without = planes[0]->exchange("t", everyone(3), "x", long_enough);
  ASSERT_FALSE(without.has_value());
  EXPECT_NE(without.error().message.find("rank 2 "), std::string::npos) << without.error().message;
  const std::vector<std::uint32_t> rest{0, 1};
  on_each_rank(2, [&](std::uint32_t rank) {
    EXPECT_TRUE(planes[rank]->barrier("rest", rest, long_enough).has_value());
    EXPECT_FALSE(planes[rank]->has_failed());
  });
  EXPECT_FALSE(planes[2]->barrier("late", everyone(3), long_enough).has_value());
}

TEST(ControlPlane, DestructionIsLeaving) {
  auto planes = planes_of(3);
  planes[1].reset();
  const std::vector<std::uint32_t> rest{0, 2};
  on_each_rank(3, [&](std::uint32_t rank) {
    if (rank == 1) return;
    EXPECT_TRUE(planes[rank]->barrier("rest", rest, long_enough).has_value());
  });
  planes[0].reset();
  const auto alone = planes[2]->barrier("rest", rest, long_enough);
  ASSERT_FALSE(alone.has_value());
  EXPECT_EQ(alone.error().message, "rank 0 has left the job");
  EXPECT_FALSE(planes[2]->has_failed());
}

TEST(ControlPlane, LeavingWakesOwnWaiters) {
  auto planes = planes_of(2);
  std::thread waiter([&] {
    const auto blobs = planes[1]->exchange("never", everyone(2), "x", long_enough);
    ASSERT_FALSE(blobs.has_value());
  });
  planes[1]->leave();
  waiter.join();
}

TEST(ControlPlane, ClocksOfOneMachineAgreeWithinTheErrorStated) {
  auto planes = planes_of(3);
  on_each_rank(3, [&](std::uint32_t rank) {
    const auto clock = planes[rank]->estimate_clock(long_enough);
    ASSERT_TRUE(clock.has_value()) << clock.error().message;
    // One kernel has one CLOCK_MONOTONIC: the true offset is zero, and the error is a bound.
    EXPECT_LE(std::abs(clock->offset_ns), clock->error_ns);
  });
}

TEST(ControlPlane, PeersIntroduceThemselves) {
  auto planes = planes_of(3);
  on_each_rank(3, [&](std::uint32_t rank) {
    const auto peers = exchange_peers(*planes[rank], long_enough);
    ASSERT_TRUE(peers.has_value()) << peers.error().message;
    for (std::uint32_t other = 0; other < 3; ++other) {
      EXPECT_EQ(peers->at(other).rank, other);
      EXPECT_EQ(peers->at(other).process, getpid());
      EXPECT_EQ(peers->at(other).addresses.at(0), "127.0.0.1");
      EXPECT_TRUE(share_memory(peers->at(rank), peers->at(other)));
      EXPECT_TRUE(share_clock(peers->at(rank), peers->at(other)));
    }
    PeerInfo elsewhere = peers->at(1);
    elsewhere.boot_id = "another";
    EXPECT_FALSE(share_memory(peers->at(rank), elsewhere));
  });
}

TEST(Peers, RanksThatAreTiedToCoresOfTheirOwnHaveThemTogether) {
  PeerInfo one;
  one.boot_id = "a machine";
  one.cores = {'\x01'};
  PeerInfo other = one;
  EXPECT_EQ(count_cores(std::vector{one, other}, one), 1U) << "both on core 0";
  other.cores = std::string("\x02\x80", 2);  // 1 and 15.
  EXPECT_EQ(count_cores(std::vector{one, other}, one), 3U);
  other.boot_id = "another machine";
  EXPECT_EQ(count_cores(std::vector{one, other}, one), 1U);
  EXPECT_EQ(count_cores(std::vector{one, other}, other), 2U);
  one.cores.clear();
  EXPECT_EQ(count_cores(std::vector{one, other}, one), 1U) << "it runs somewhere";
}

/// Debian's /etc/hosts gives a machine's own name to 127.0.1.1, so a rank there reaches the rendezvous by loopback.
TEST(Peers, LoopbackIsTriedLastFromElsewhere) {
  PeerInfo one;
  one.boot_id = "a machine";
  one.network_namespace = 1;
  one.addresses = {"127.0.1.1", "10.0.0.1", "::1", "10.0.0.2"};
  PeerInfo other = one;
  EXPECT_TRUE(share_network(one, other));
  EXPECT_EQ(addresses_towards(other, one), one.addresses);
  const std::vector<std::string> outside = {"10.0.0.1", "10.0.0.2", "127.0.1.1", "::1"};
  other.network_namespace = 2;
  EXPECT_EQ(addresses_towards(other, one), outside);
  other = one;
  other.boot_id = "another machine";
  EXPECT_EQ(addresses_towards(other, one), outside);
  EXPECT_FALSE(share_network(std::vector{one, one, other}));
  EXPECT_TRUE(share_network(std::vector{one, one, one}));
}

TEST(ControlPlane, RankZeroIsAlsoWhereItWasReached) {
  auto planes = planes_of(2);
  EXPECT_EQ(planes[0]->hub_address(), "");
  EXPECT_EQ(planes[1]->hub_address(), "127.0.0.1");
}

TEST(ControlPlane, FormsAgainAndAgainOnOnePortWithoutLeak) {
  std::uint16_t port = 0;
  {
    auto probe = listen_on("127.0.0.1", 0);
    ASSERT_TRUE(probe.has_value());
    port = probe->port;
  }
  const auto round = [&](int number) {
    on_each_rank(4, [&](std::uint32_t rank) {
      auto plane = ControlPlane::join(options_of(rank, 4, port));
      ASSERT_TRUE(plane.has_value()) << "round " << number << ", rank " << rank << ": " << plane.error().message;
      // Every third round ends by failure, every third without goodbye of one's own, the others in order.
      EXPECT_TRUE((*plane)->barrier("b", everyone(4), long_enough).has_value());
      if (number % 3 == 0) {
        if (rank == 2) (*plane)->abort("for the test");
        EXPECT_TRUE(is_readable((*plane)->failure_fd(), 10000));
      }
      if (number % 3 == 1) (*plane)->leave();
    });
  };
  round(0);
  const std::size_t before = open_descriptors();
  for (int number = 1; number <= 20; ++number) round(number);
  EXPECT_EQ(open_descriptors(), before);
}

TEST(ControlPlane, WorksOverIpv6AndByName) {
  for (const char* host : {"::1", "localhost"}) {
    auto listener = listen_on(host, 0);
    if (!listener) GTEST_SKIP() << "no " << host << ": " << listener.error().message;
    const std::uint16_t port = listener->port;
    on_each_rank(2, [&](std::uint32_t rank) {
      Options options = options_of(rank, 2, port);
      options.host = host;
      if (rank == 0) options.listener = std::move(*listener);
      auto plane = ControlPlane::join(std::move(options));
      ASSERT_TRUE(plane.has_value()) << plane.error().message;
      EXPECT_TRUE((*plane)->barrier("b", everyone(2), long_enough).has_value());
    });
  }
}

TEST(ControlPlane, WhoDoesNotJoinIsNamedOnAllOthers) {
  const auto planes = join_all(4, [](Options& options) {
    // Rank 3 waits for another hub, which never comes.
    options.timeout = milliseconds(300);
    if (options.rank == 3) options.port = 1;
  });
  ASSERT_FALSE(planes[0].has_value());
  EXPECT_EQ(planes[0].error().message, "rank 3 did not join within 300 ms");
  for (const std::uint32_t rank : {1U, 2U}) {
    ASSERT_FALSE(planes[rank].has_value());
    EXPECT_EQ(planes[rank].error().message, "rank 0: rank 3 did not join within 300 ms");
  }
  ASSERT_FALSE(planes[3].has_value());
  EXPECT_NE(planes[3].error().message.find("rank 3 could not join within 300 ms: cannot connect to 127.0.0.1:1"),
            std::string::npos)
      << planes[3].error().message;
}

TEST(ControlPlane, AHubThatIsGoneIsNotWaitedForAsALateOneIs) {
  for (const bool was_listening : {false, true}) {
    Options options = options_of(1, 2, 1);
    options.timeout = milliseconds(6000);
    options.was_listening = was_listening;
    const auto begun = std::chrono::steady_clock::now();
    const auto plane = ControlPlane::join(std::move(options));
    ASSERT_FALSE(plane.has_value());
    EXPECT_EQ(std::chrono::steady_clock::now() - begun < milliseconds(5000), was_listening) << plane.error().message;
    EXPECT_EQ(plane.error().help.find("rank 0 was there and is gone") != std::string::npos, was_listening);
  }
}

TEST(ControlPlane, OptionsOutOfRangeAreRefused) {
  const auto message_of = [](const std::function<void(Options&)>& change) {
    Options options = options_of(1, 2, 1);
    change(options);
    const auto plane = ControlPlane::join(std::move(options));
    return plane ? std::string("joined") : plane.error().message;
  };
  EXPECT_EQ(message_of([](auto& options) { options.rank = 2; }), "rank 2 is not below the job's 2 ranks");
  EXPECT_EQ(message_of([](auto& options) { options.world = 0; }), "a job has 1 to 65536 ranks, not 0");
  EXPECT_EQ(message_of([](auto& options) { options.secret = "short"; }),
            "the job's secret has 5 bytes, at least 8 are needed");
  EXPECT_EQ(message_of([](auto& options) { options.port = 0; }), "the rendezvous has no host or no port");
  EXPECT_EQ(message_of([](auto& options) { options.job = std::string(129, 'x'); }),
            "the job's id has 129 bytes, at most 128 are allowed");
}

TEST(Listener, APortThatIsTakenIsNamed) {
  const auto one = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(one.has_value());
  const auto other = listen_on("127.0.0.1", one->port);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().message,
            "cannot listen on 127.0.0.1:" + std::to_string(one->port) + ": Address already in use");
  EXPECT_FALSE(adopt_listener(0, one->port).has_value());
  EXPECT_FALSE(adopt_listener(one->fd.get(), static_cast<std::uint16_t>(one->port ^ 1U)).has_value());
}

TEST(Listener, APortThatIsFreedSoonIsWaitedFor) {
  auto one = listen_on("127.0.0.1", 0);
  ASSERT_TRUE(one.has_value());
  std::thread leaver([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    one->fd.reset();
  });
  EXPECT_TRUE(listen_on("127.0.0.1", one->port, std::chrono::seconds(20)).has_value());
  leaver.join();
}

TEST(Listener, AnAddressOfAnotherMachineListensOnAllOfThisOne) {
  // 192.0.2.0/24 is for documentation (RFC 5737): no machine has it.
  const auto listener = listen_on("192.0.2.1", 0);
  ASSERT_TRUE(listener.has_value()) << listener.error().message;
  EXPECT_NE(listener->port, 0);
}

}  // namespace
}  // namespace espalier::engine::rendezvous
