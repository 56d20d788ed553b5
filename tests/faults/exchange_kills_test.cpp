// Ranks that are killed at random moments of all_reduces that shared memory carries out as a whole: inputs shown with
// the call (64 B), and block by block (1 MiB of private memory); and of all_to_alls with counts per peer.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/faults/rank_processes.h"
#include "tests/support/exchange/counted_exchange.h"

namespace espalier {
namespace {

using test::RankProcesses;

/// What the ranks are at, in their report.
constexpr std::uint32_t between_calls = 1;
constexpr std::uint32_t in_a_call = 2;

/// A schedule that the engine may replace by an exchange.
ScheduleSource replaceable_ring(test::PlannedSource& planned) {
  return [source = planned.source()](const Collective& collective, Bytes size) {
    auto sourced = source(collective, size);
    if (sourced) sourced->may_be_replaced = true;
    return sourced;
  };
}

/// Calls until one fails, or `max_calls` have not; the exit code.
int call_exchanges(Communicator& communicator, test::RankReport& report, std::size_t count, std::uint64_t max_calls) {
  const bool is_first = communicator.rank() == 0;
  std::vector<float> send(count);
  std::vector<float> receive(count);
  for (std::uint64_t call = 0; call < max_calls; ++call) {
    // Half a unit in the last place of the first rank's value is lost when it is added to that. A ring adds all such
    // halves first for some elements, which makes a whole one: only a sum in the order of the ranks is `value`.
    const float value = 1.0F + static_cast<float>(call % 1024) * 0x1p-10F;
    std::ranges::fill(send, is_first ? value : 0x1p-24F);
    report.phase.store(in_a_call);
    const auto done =
        communicator.all_reduce(send.data(), receive.data(), count, ElementType::float32, ReduceOperation::sum);
    report.phase.store(between_calls);
    if (!done) {
      report.fail_with(done.error());
      return 7;
    }
    if (std::ranges::any_of(receive, [&](float sum) { return sum != value; })) return 8;
    report.calls.fetch_add(1);
  }
  return 33;
}

int join_and_call(JobOptions options, test::RankReport& report, std::size_t count, std::uint64_t max_calls) {
  test::PlannedSource planned("ring", Bytes{4096});
  auto joined = Communicator::join(std::move(options), replaceable_ring(planned));
  if (joined) return call_exchanges(**joined, report, count, max_calls);
  report.fail_with(joined.error());
  return 6;
}

/// The options of a survivor in the job of those that are left, at the same place.
JobOptions without(const JobOptions& first, std::uint32_t culprit) {
  JobOptions options;
  options.transport = first.transport;
  options.timeout = first.timeout;
  options.rendezvous.timeout = first.rendezvous.timeout;
  options.rendezvous.host = first.rendezvous.host;
  options.rendezvous.port = first.rendezvous.port;
  options.rendezvous.rank = first.rendezvous.rank - (first.rendezvous.rank > culprit ? 1 : 0);
  options.rendezvous.world = first.rendezvous.world - 1;
  options.rendezvous.secret = first.rendezvous.secret;
  options.rendezvous.job = "of the survivors";
  return options;
}

class ExchangeKills : public ::testing::TestWithParam<std::size_t> {
 protected:
  /// Kills a rank once all have made some calls. True: it was in a call.
  bool kill_one(Random& random, std::uint32_t world, std::uint32_t culprit) {
    JobOptions options;
    options.transport = TransportChoice::shm;
    options.timeout = options.rendezvous.timeout = std::chrono::milliseconds(30000);
    options.rendezvous.port = test::quiet_port();
    const std::size_t count = GetParam() / sizeof(float);
    RankProcesses ranks(world, options, [&](RankProcesses::Rank&& own) {
      JobOptions next = without(own.options, culprit);
      const int code = join_and_call(std::move(own.options), *own.report, count, UINT64_MAX);
      return code == 7 ? join_and_call(std::move(next), *own.report, count, 10) : code;
    });
    EXPECT_TRUE(ranks.await_calls(1 + random.below(20)));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
    const std::int64_t killed_ns = engine::now_ns();
    ranks.signal(culprit, SIGKILL);
    EXPECT_EQ(ranks.exit_code(culprit), 128 + SIGKILL) << ranks.message(culprit);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank == culprit) continue;
      SCOPED_TRACE("rank " + std::to_string(rank));
      EXPECT_EQ(ranks.exit_code(rank), 33) << ranks.message(rank);
      const std::string message = ranks.message(rank);
      EXPECT_NE(message.find("all_reduce of " + std::to_string(count) + " float"), std::string::npos) << message;
      EXPECT_NE(message.find("rank " + std::to_string(culprit) + ":"), std::string::npos) << message;
      // Who dies is noticed, not waited for until the deadline.
      EXPECT_LT((ranks.report(rank).failed_at_ns.load() - killed_ns) / 1'000'000, 5000) << message;
    }
    return ranks.report(culprit).phase.load() == in_a_call;
  }
};

TEST_P(ExchangeKills, Fault1SurvivorsNameTheRankAndGoOn) {
  constexpr int rounds = 20;
  Random random(GetParam());
  int killed_in_a_call = 0;
  for (int round = 0; round < rounds && !HasFailure(); ++round) {
    const auto world = static_cast<std::uint32_t>(random.between(3, 4));
    const auto culprit = static_cast<std::uint32_t>(random.below(world));
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(culprit) + " of " +
                 std::to_string(world));
    if (kill_one(random, world, culprit)) ++killed_in_a_call;
    EXPECT_EQ(test::shared_memory_names(), 0U);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process stayed";
  }
  EXPECT_GT(killed_in_a_call, 0);
}

/// Exchanges with other counts each time, until one fails.
int call_with_counts(JobOptions options, test::RankReport& report) {
  test::PlannedSource planned("flat");
  auto joined = Communicator::join(std::move(options), planned.source());
  if (!joined) {
    report.fail_with(joined.error());
    return 6;
  }
  Communicator& ranks = **joined;
  for (std::uint64_t call = 0;; ++call) {
    const auto exchange = test::CountedExchange::random(ranks.size(), 40'000, call);
    const test::CountedSide side(exchange, ranks.rank());
    std::vector<std::byte> sent(side.send_bytes());
    std::vector<std::byte> received(side.receive_bytes());
    side.fill(sent.data());
    report.phase.store(in_a_call);
    const auto done = ranks.all_to_all(sent.data(), side.sent(), received.data(), side.received(), exchange.type);
    report.phase.store(between_calls);
    if (!done) {
      report.fail_with(done.error());
      return 7;
    }
    side.check(received.data());
    if (::testing::Test::HasFailure()) return 8;
    report.calls.fetch_add(1);
  }
}

class CountedKills : public ::testing::TestWithParam<TransportChoice> {};

TEST_P(CountedKills, Fault1SurvivorsOfAnExchangeWithCountsNameTheRank) {
  Random random(7);
  int killed_in_a_call = 0;
  for (int round = 0; round < 8 && !HasFailure(); ++round) {
    const std::uint32_t world = 4;
    const auto culprit = static_cast<std::uint32_t>(random.below(world));
    SCOPED_TRACE("round " + std::to_string(round) + ": rank " + std::to_string(culprit));
    JobOptions options;
    options.transport = GetParam();
    options.timeout = options.rendezvous.timeout = std::chrono::milliseconds(30000);
    options.rendezvous.port = test::quiet_port();
    RankProcesses ranks(world, options, [&](RankProcesses::Rank&& own) {
      return call_with_counts(std::move(own.options), *own.report);
    });
    EXPECT_TRUE(ranks.await_calls(1 + random.below(20)));
    std::this_thread::sleep_for(std::chrono::microseconds(random.below(3000)));
    const std::int64_t killed_ns = engine::now_ns();
    ranks.signal(culprit, SIGKILL);
    EXPECT_EQ(ranks.exit_code(culprit), 128 + SIGKILL) << ranks.message(culprit);
    for (std::uint32_t rank = 0; rank < world; ++rank) {
      if (rank == culprit) continue;
      EXPECT_EQ(ranks.exit_code(rank), 7) << ranks.message(rank);
      const std::string message = ranks.message(rank);
      EXPECT_NE(message.find("with counts per peer"), std::string::npos) << message;
      EXPECT_NE(message.find("rank " + std::to_string(culprit)), std::string::npos) << message;
      EXPECT_LT((ranks.report(rank).failed_at_ns.load() - killed_ns) / 1'000'000, 5000) << message;
    }
    if (ranks.report(culprit).phase.load() == in_a_call) ++killed_in_a_call;
    EXPECT_EQ(test::shared_memory_names(), 0U);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process stayed";
  }
  EXPECT_GT(killed_in_a_call, 0);
}

INSTANTIATE_TEST_SUITE_P(Transports, CountedKills, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& choice) { return std::string(to_string(choice.param)); });

INSTANTIATE_TEST_SUITE_P(Bytes, ExchangeKills, ::testing::Values(std::size_t{64}, std::size_t{1} << 20),
                         [](const auto& bytes) { return std::to_string(bytes.param); });

}  // namespace
}  // namespace espalier
