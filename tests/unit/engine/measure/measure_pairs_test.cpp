#include "engine/measure/measure_pairs.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>

#include "tests/support/engine_cases.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

class MeasurePairs : public ::testing::TestWithParam<TransportChoice> {
 protected:
  void run(std::uint32_t ranks, const std::function<void(Communicator&)>& body) {
    JobOptions options;
    options.transport = GetParam();
    options.timeout = std::chrono::milliseconds(20000);
    run_ranks(ranks, source_.source(), std::move(options), body);
  }

  test::PlannedSource source_{"flat"};
};

TEST_P(MeasurePairs, AllRanksGetTheTimesOfAllPairs) {
  run(5, [](Communicator& communicator) {
    PairOptions options;
    options.bytes = 100'000;
    options.transfers = 3;
    auto meter = PairMeter::make(communicator, options);
    ASSERT_TRUE(meter) << meter.error().message;
    double before = 0;
    for (const auto& pairs : {std::array{RankPair{0, 1}, RankPair{3, 2}}, std::array{RankPair{4, 0}, RankPair{1, 3}}}) {
      const auto round = (*meter)->measure(pairs);  // Rank 4, then rank 2, only waits.
      ASSERT_TRUE(round) << round.error().message;
      ASSERT_EQ(round->pairs.size(), 2U);
      for (const PairTimes& pair : round->pairs) {
        EXPECT_EQ(pair.seconds.size(), 3U);
        for (const double time : pair.seconds) EXPECT_GT(time, 0);
        EXPECT_GT(pair.latency, 0);
      }
      EXPECT_GT(round->elapsed, before);
      before = round->elapsed;
    }
  });
}

TEST_P(MeasurePairs, ALimitSlowsDownAPairAndNotItsTransfers) {
  run(2, [](Communicator& communicator) {
    PairOptions options;
    options.bytes = 100'000;
    options.transfers = 4;
    options.max_rate = 1e6;  // A transfer every 100 ms, of which each takes far less.
    auto meter = PairMeter::make(communicator, options);
    ASSERT_TRUE(meter) << meter.error().message;
    const auto round = (*meter)->measure(std::array{RankPair{0, 1}});
    ASSERT_TRUE(round) << round.error().message;
    EXPECT_GE(round->elapsed, 0.39);
    EXPECT_LT(round->pairs.front().seconds.front(), 0.09);
  });
}

TEST_P(MeasurePairs, APairEndsAfterItsTime) {
  run(2, [](Communicator& communicator) {
    PairOptions options;
    options.bytes = 1'000;
    options.transfers = 1'000;
    options.max_rate = 1e5;  // 10 ms apart: 10 s in all.
    options.max_time = std::chrono::milliseconds(60);
    auto meter = PairMeter::make(communicator, options);
    ASSERT_TRUE(meter) << meter.error().message;
    const auto round = (*meter)->measure(std::array{RankPair{1, 0}});
    ASSERT_TRUE(round) << round.error().message;
    EXPECT_LT(round->pairs.front().seconds.size(), 100U);
    EXPECT_GE(round->pairs.front().seconds.size(), 1U);
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, MeasurePairs, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& tested) { return std::string(to_string(tested.param)); });

}  // namespace
}  // namespace espalier::engine
