// Ranks that are killed and stopped: the others learn of it in time, are told who, and can go on without.
#include <gtest/gtest.h>

#include "base/random.h"
#include "base/send_signal.h"
#include "tests/faults/rank_processes.h"
#include "tests/support/transports_here.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using test::call_until_failure;
using test::Memory;
using test::quiet_port;
using test::RankProcesses;

JobOptions options_of(TransportChoice transport, milliseconds timeout) {
  JobOptions options;
  options.transport = transport;
  options.timeout = timeout;
  options.rendezvous.timeout = timeout;
  return options;
}

/// All ranks but the culprit raised within the bound and name it.
void expect_raised(RankProcesses& ranks, std::uint32_t world, std::uint32_t culprit, std::int64_t since_ns,
                   milliseconds bound, bool names_culprit = true) {
  for (std::uint32_t rank = 0; rank < world; ++rank) {
    if (rank == culprit) continue;
    SCOPED_TRACE("rank " + std::to_string(rank));
    EXPECT_EQ(ranks.exit_code(rank), 7) << ranks.message(rank);
    const std::int64_t took_ns = ranks.report(rank).failed_at_ns.load() - since_ns;
    EXPECT_LT(took_ns / 1'000'000, bound.count()) << ranks.message(rank);
    const std::string message = ranks.message(rank);
    EXPECT_NE(message.find("call "), std::string::npos) << message;
    EXPECT_NE(message.find("(group world, rank " + std::to_string(rank) + ")"), std::string::npos) << message;
    if (names_culprit) {
      EXPECT_NE(message.find("rank " + std::to_string(culprit) + ":"), std::string::npos) << message;
    }
  }
}

class Processes : public ::testing::TestWithParam<TransportChoice> {};

// Far from the timeout: who dies is noticed, not waited for.
TEST_P(Processes, Fault1AKilledRankIsNamedAtOnce) {
  constexpr std::uint32_t world = 3;
  Random random(static_cast<std::uint64_t>(GetParam()) + 40);
  for (std::uint32_t culprit = 0; culprit < world; ++culprit) {
    for (const std::size_t count : {16U, 300'000U}) {
      SCOPED_TRACE(std::to_string(culprit) + " of count " + std::to_string(count));
      const Memory memory = random.below(2) == 0 ? Memory::plain : Memory::registered;
      RankProcesses ranks(world, options_of(GetParam(), milliseconds(30000)), [&](RankProcesses::Rank&& own) {
        return call_until_failure(std::move(own), CollectiveKind::all_reduce, count, memory);
      });
      ASSERT_TRUE(ranks.await_calls(2 + random.below(20)));
      std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
      const std::int64_t killed_ns = engine::now_ns();
      ranks.signal(culprit, SIGKILL);
      expect_raised(ranks, world, culprit, killed_ns, milliseconds(5000));
      EXPECT_EQ(ranks.exit_code(culprit), 128 + SIGKILL);
    }
  }
}

TEST_P(Processes, Fault2AStoppedRankIsNamedAtTheTimeout) {
  constexpr std::uint32_t world = 3;
  for (std::uint32_t culprit = 0; culprit < world; ++culprit) {
    SCOPED_TRACE(culprit);
    constexpr milliseconds timeout(1500);
    RankProcesses ranks(world, options_of(GetParam(), timeout), [&](RankProcesses::Rank&& own) {
      return call_until_failure(std::move(own), CollectiveKind::all_reduce, 5000, Memory::plain);
    });
    ASSERT_TRUE(ranks.await_calls(3));
    const std::int64_t stopped_ns = engine::now_ns();
    ranks.signal(culprit, SIGSTOP);
    expect_raised(ranks, world, culprit, stopped_ns, timeout + milliseconds(4000), false);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank == culprit) continue;
      const std::string message = ranks.message(rank);
      EXPECT_TRUE(message.find("rank " + std::to_string(culprit) + " has") != std::string::npos ||
                  message.find("rank " + std::to_string(culprit) + ": it has been silent") != std::string::npos)
          << message;
    }
    ranks.signal(culprit, SIGCONT);  // It finds the others gone.
    EXPECT_EQ(ranks.exit_code(culprit), 7) << ranks.message(culprit);
  }
}

/// A stop that is shorter than the timeout is no fault.
TEST_P(Processes, ASlowRankIsWaitedFor) {
  RankProcesses ranks(3, options_of(GetParam(), milliseconds(20000)), [&](RankProcesses::Rank&& own) {
    return call_until_failure(std::move(own), CollectiveKind::all_gather, 3000, Memory::plain);
  });
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    const std::uint64_t calls = ranks.report(0).calls.load();
    ASSERT_TRUE(ranks.await_calls(calls + 3));
    ranks.signal(rank, SIGSTOP);
    std::this_thread::sleep_for(milliseconds(300));
    ranks.signal(rank, SIGCONT);
  }
  EXPECT_TRUE(ranks.await_calls(ranks.report(0).calls.load() + 10));
  for (std::uint32_t rank = 0; rank < 3; ++rank) EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0);
}

/// Time in which a process did not run itself does not count against its peers: twice the timeout.
TEST_P(Processes, Fault27AllRanksAreStoppedAndGoOn) {
  constexpr milliseconds timeout(1500);
  RankProcesses ranks(3, options_of(GetParam(), timeout), [&](RankProcesses::Rank&& own) {
    return call_until_failure(std::move(own), CollectiveKind::all_reduce, 5000, Memory::plain);
  });
  ASSERT_TRUE(ranks.await_calls(3));
  for (std::uint32_t rank = 0; rank < 3; ++rank) ranks.signal(rank, SIGSTOP);
  std::this_thread::sleep_for(2 * timeout);
  std::array<std::uint64_t, 3> before{};
  for (std::uint32_t rank = 0; rank < 3; ++rank) before[rank] = ranks.report(rank).calls.load();
  for (std::uint32_t rank = 0; rank < 3; ++rank) ranks.signal(rank, SIGCONT);
  EXPECT_TRUE(ranks.await_calls(*std::ranges::max_element(before) + 10)) << ranks.message(0);
  for (std::uint32_t rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0) << ranks.message(rank);
  }
}

TEST_P(Processes, Fault12NothingIsLeftOfAJobThatWasKilled) {
  EXPECT_EQ(test::shared_memory_names(), 0U);
  JobOptions options = options_of(GetParam(), milliseconds(20000));
  options.rendezvous.port = quiet_port();
  for (int round = 0; round < 5; ++round) {
    RankProcesses ranks(3, options, [&](RankProcesses::Rank&& own) {
      return call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::registered);
    });
    ASSERT_TRUE(ranks.await_calls(3)) << ranks.message(0);
    for (std::uint32_t rank = 0; rank < 3; ++rank) ASSERT_EQ(ranks.report(rank).failed_at_ns.load(), 0);
    for (std::uint32_t rank = 0; rank < 3; ++rank) ranks.signal(rank, SIGKILL);
    for (std::uint32_t rank = 0; rank < 3; ++rank) {
      const int code = ranks.exit_code(rank);  // 7: it heard of the first one's end before its own
      EXPECT_TRUE(code == 128 + SIGKILL || code == 7) << code;
    }
    EXPECT_EQ(test::shared_memory_names(), 0U);
  }
}

/// Survivors meet anew at the same place, as a smaller job.
TEST_P(Processes, Fault18SurvivorsGoOn) {
  constexpr std::uint32_t world = 4;
  for (const std::uint32_t culprit : {0U, 2U}) {
    JobOptions first = options_of(GetParam(), milliseconds(20000));
    first.rendezvous.port = quiet_port();
    RankProcesses ranks(world, first, [&](RankProcesses::Rank&& own) {
      const std::uint32_t rank = own.rank;
      test::RankReport* report = own.report;
      const std::uint16_t port = own.options.rendezvous.port;
      const int code = call_until_failure(std::move(own), CollectiveKind::all_reduce, 1000, Memory::registered);
      if (code != 7) return code;
      JobOptions options = options_of(GetParam(), milliseconds(20000));
      options.rendezvous.host = "127.0.0.1";
      options.rendezvous.port = port;
      options.rendezvous.rank = rank > culprit ? rank - 1 : rank;
      options.rendezvous.world = world - 1;
      options.rendezvous.secret = "a secret of this test";
      options.rendezvous.job = "the second";
      test::PlannedSource source("flat");
      auto joined = Communicator::join(std::move(options), source.source());
      if (!joined) {
        report->fail_with(joined.error());
        return 4;
      }
      std::int32_t one = 1;
      for (int i = 0; i < 10; ++i, one = 1) {
        if (!(*joined)->all_reduce(&one, &one, 1, ElementType::int32, ReduceOperation::sum) || one != 3) return 5;
      }
      return 33;
    });
    ASSERT_TRUE(ranks.await_calls(3));
    ranks.signal(culprit, SIGKILL);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank != culprit) {
        EXPECT_EQ(ranks.exit_code(rank), 33) << ranks.message(rank);
      }
    }
  }
}

/// Many ranks on few cores, which others want too.
TEST_P(Processes, Fault25ManyRanksAndBusyNeighboursFinish) {
  std::vector<pid_t> neighbours;
  for (int i = 0; i < 2; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      volatile std::uint64_t work = 0;
      while (true) work = work + 1;
    }
    neighbours.push_back(child);
  }
  {
    RankProcesses ranks(16, options_of(GetParam(), milliseconds(60000)), [&](RankProcesses::Rank&& own) {
      return call_until_failure(std::move(own), CollectiveKind::all_reduce, 20'000, Memory::registered);
    });
    EXPECT_TRUE(ranks.await_calls(20, milliseconds(120000)));
    for (std::uint32_t rank = 0; rank < 16; ++rank) {
      EXPECT_EQ(ranks.report(rank).failed_at_ns.load(), 0) << ranks.message(rank);
    }
  }
  for (const pid_t neighbour : neighbours) {
    send_signal(neighbour, SIGKILL);
    waitpid(neighbour, nullptr, 0);
  }
}

INSTANTIATE_TEST_SUITE_P(Transports, Processes, ::testing::ValuesIn(test::transports_here()),
                         [](const auto& transport) { return std::string(to_string(transport.param)); });

}  // namespace
}  // namespace espalier
