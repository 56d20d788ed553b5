// Seeded rounds of transport, ranks, collective, moment and fault: survivors always raise in bounded time, data is
// never wrong, and no process stays.
#include <gtest/gtest.h>

#include "base/random.h"
#include "tests/faults/rank_processes.h"

namespace espalier {
namespace {

using std::chrono::milliseconds;
using test::call_until_failure;
using test::Memory;
using test::RankProcesses;

enum class Fault : std::uint8_t { killed, stopped, aborted, disagrees, leaves };

struct Round {
  TransportChoice transport = TransportChoice::shm;
  std::uint32_t world = 2;
  CollectiveKind kind = CollectiveKind::all_reduce;
  std::size_t count = 1;
  Memory memory = Memory::plain;
  Fault fault = Fault::killed;
  std::uint32_t culprit = 0;
  std::uint64_t calls = 0;  ///< Before the fault.
};

Round random_round(Random& random) {
  Round round;
  round.transport = random.below(2) == 0 ? TransportChoice::shm : TransportChoice::tcp;
  round.world = static_cast<std::uint32_t>(random.between(2, 5));
  round.kind = all_collective_kinds[random.below(all_collective_kinds.size())];
  round.count = random.below(4) == 0 ? 200'000 + random.below(100'000) : 1 + random.below(5000);
  round.memory = random.below(2) == 0 ? Memory::plain : Memory::registered;
  // Most are kills; few are stops, which take the timeout.
  constexpr std::array faults = {Fault::killed,  Fault::killed,    Fault::killed, Fault::killed,
                                 Fault::aborted, Fault::disagrees, Fault::leaves, Fault::stopped};
  round.fault = faults[random.below(faults.size())];
  round.culprit = static_cast<std::uint32_t>(random.below(round.world));
  round.calls = random.below(30);
  return round;
}

constexpr milliseconds timeout(1000);
/// Past the timeout: the reporting delay of ranks that wait for waiting ranks, and other work of the machine.
constexpr milliseconds bound = timeout + milliseconds(9000);

/// A body that does its own fault after so many calls.
int misbehave(RankProcesses::Rank&& own, const Round& round) {
  test::PlannedSource source("ring", Bytes{4096});
  auto joined = Communicator::join(std::move(own.options), source.source());
  if (!joined) {
    own.report->fail_with(joined.error());
    return 6;
  }
  std::vector<float> send(round.count * round.world + 1);
  std::vector<float> receive(send.size());
  engine::fill_send_buffer({round.kind, ElementType::float32, ReduceOperation::sum, round.world, 0, round.count, 3},
                           own.rank,
                           send.data());  // As call_until_failure has it.
  for (std::uint64_t call = 0;; ++call) {
    const bool is_wrong = call >= round.calls;
    if (is_wrong) own.report->phase.store(1);
    if (is_wrong && round.fault == Fault::leaves) return 7;
    if (is_wrong && round.fault == Fault::aborted) (*joined)->abort("a test of abort");
    const std::size_t count = round.count + (is_wrong && round.fault == Fault::disagrees ? 1 : 0);
    const auto done =
        (*joined)->run({round.kind, send.data(), receive.data(), count, ElementType::float32, ReduceOperation::sum, 0});
    if (!done) {
      own.report->fail_with(done.error());
      return 7;
    }
    own.report->calls.fetch_add(1);
  }
}

void try_round(const Round& round) {
  JobOptions options;
  options.transport = round.transport;
  options.timeout = timeout;
  options.rendezvous.timeout = milliseconds(4000);  // Joining may take longer than that where cores are few.
  RankProcesses ranks(round.world, options, [&](RankProcesses::Rank&& own) {
    const bool is_culprit = own.rank == round.culprit && round.fault != Fault::killed && round.fault != Fault::stopped;
    if (is_culprit) return misbehave(std::move(own), round);
    return call_until_failure(std::move(own), round.kind, round.count, round.memory);
  });
  if (round.fault == Fault::killed || round.fault == Fault::stopped) {
    ASSERT_TRUE(ranks.await_calls(round.calls));
    ranks.signal(round.culprit, round.fault == Fault::killed ? SIGKILL : SIGSTOP);
  } else {
    RankProcesses::await(
        [&] {
          return ranks.report(round.culprit).phase.load() != 0 || ranks.report(round.culprit).failed_at_ns.load() != 0;
        },
        milliseconds(30000));
  }
  const std::int64_t begun_ns = engine::now_ns();
  for (std::uint32_t rank = 0; rank < round.world; ++rank) {
    if (rank == round.culprit) continue;
    SCOPED_TRACE("rank " + std::to_string(rank));
    const int code = ranks.exit_code(rank, bound + milliseconds(5000));
    // Before the first call the others may still be joining.
    EXPECT_TRUE(code == 7 || (round.calls == 0 && code == 6)) << code << ": " << ranks.message(rank);
    EXPECT_LT((ranks.report(rank).failed_at_ns.load() - begun_ns) / 1'000'000, bound.count()) << ranks.message(rank);
    const char* named = code == 6 ? "rank " : "call ";
    EXPECT_NE(ranks.message(rank).find(named), std::string::npos) << ranks.message(rank);
  }
}

class RandomRounds : public ::testing::TestWithParam<std::uint64_t> {};

TEST_P(RandomRounds, SurvivorsRaiseInTime) {
  constexpr int rounds = 20;
  Random random(GetParam());
  for (int i = 0; i < rounds; ++i) {
    const Round round = random_round(random);
    SCOPED_TRACE("seed " + std::to_string(GetParam()) + " round " + std::to_string(i) + ": " +
                 std::string(to_string(round.transport)) + ", " + std::to_string(round.world) + " ranks, " +
                 std::string(to_string(round.kind)) + " of " + std::to_string(round.count) + ", fault " +
                 std::to_string(static_cast<int>(round.fault)) + " of rank " + std::to_string(round.culprit) +
                 " after " + std::to_string(round.calls));
    try_round(round);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process stayed";
}

INSTANTIATE_TEST_SUITE_P(Seeds, RandomRounds, ::testing::Range<std::uint64_t>(0, 10));

}  // namespace
}  // namespace espalier
