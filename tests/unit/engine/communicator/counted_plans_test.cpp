// all_to_all with counts per peer by schedules of the whole matrix.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <vector>

#include "engine/communicator/make_transports.h"
#include "tests/support/exchange/counted_exchange.h"
#include "tests/support/local_ranks.h"

namespace espalier::engine {
namespace {

using std::chrono::milliseconds;
using test::CountedExchange;
using test::Memory;
using test::PlannedSource;
using test::run_exchange;
using Counts = std::vector<std::int64_t>;

class CountedPlansOf : public ::testing::TestWithParam<TransportChoice> {
 protected:
  /// Messages of a S below `least` are direct ones.
  void run(std::uint32_t ranks, Bytes least, const std::function<void(Communicator&)>& body) {
    JobOptions options;
    options.transport = GetParam();
    options.timeout = milliseconds(20000);
    run_ranks(ranks, source_.source(), std::move(options), [&](Communicator& communicator) {
      communicator.plan_counts([this, least](const Collective& collective, Bytes size) -> Result<SourcedSchedule> {
        if (size < least) return SourcedSchedule{};
        ++planned_;
        return pairwise_.source()(collective, size);
      });
      body(communicator);
    });
  }

  std::atomic<int> planned_ = 0;  ///< Times that a schedule was asked for and given, on all ranks.

 private:
  PlannedSource source_{"flat"};
  PlannedSource pairwise_{"pairwise"};
};

TEST_P(CountedPlansOf, EveryByteArrives) {
  run(4, Bytes{1}, [](Communicator& ranks) {
    for (std::uint64_t seed = 0; seed < 20; seed += 2) {
      const auto exchange = CountedExchange::random(4, 3000, seed);
      for (const Memory memory : {Memory::registered, Memory::plain}) run_exchange(ranks, exchange, memory, false);
    }
  });
  EXPECT_GE(planned_, 4 * 2 * 10);
}

/// What lies in other orders, overlaps or is small goes as before, between calls by schedules.
TEST_P(CountedPlansOf, OtherCallsAreByDirectMessages) {
  run(3, Bytes{200}, [](Communicator& ranks) {
    for (std::uint64_t seed = 1; seed < 9; ++seed) {
      run_exchange(ranks, CountedExchange::random(3, 500, seed), Memory::plain, seed % 4 == 2);
      CountedExchange small{3, {1, 2, 3, 4, 5, 6, 7, 8, 9}};
      run_exchange(ranks, small, Memory::plain, false);
      CountedExchange none{3, Counts(9)};
      run_exchange(ranks, none, Memory::plain, false);
      std::vector<float> sum(100, 1.0F);
      ASSERT_TRUE(ranks.all_reduce(sum.data(), sum.data(), 100, ElementType::float32, ReduceOperation::sum));
      EXPECT_EQ(sum.front(), 3.0F);
    }
  });
}

TEST_P(CountedPlansOf, BothRanksAreNamedWhereCountsDoNotMatch) {
  run(3, Bytes{1}, [](Communicator& ranks) {
    const Counts ones = {1, 1, 1};
    // Rank 1 sends five to rank 2, which expects four. All else matches.
    const Counts sent = ranks.rank() == 1 ? Counts{1, 1, 5} : ones;
    const Counts received = ranks.rank() == 2 ? Counts{1, 4, 1} : ones;
    std::vector<std::int32_t> from(200), into(200);
    const auto done = ranks.all_to_all(from.data(), {sent}, into.data(), {received}, ElementType::int32);
    if (ranks.rank() == 0 && done) return;  // What concerns it was done before the others found out.
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("rank 1 sends 5 int32 to rank 2, which expects 4"), std::string::npos)
        << done.error().message;
  });
  EXPECT_EQ(planned_, 0);
}

/// Counts that no buffers can have, of one rank alone: the others do not wait for it.
TEST_P(CountedPlansOf, ImpossibleCountsAreRefused) {
  run(2, Bytes{1}, [](Communicator& ranks) {
    const Counts fine = {1, 1};
    const Counts sent = ranks.rank() == 0 ? Counts{1, -1} : fine;
    std::vector<std::int32_t> from(2), into(2);
    const auto done = ranks.all_to_all(from.data(), {sent}, into.data(), {fine}, ElementType::int32);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("a count of -1 of what is sent, for rank 1"), std::string::npos)
        << done.error().message;
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, CountedPlansOf, ::testing::Values(TransportChoice::shm, TransportChoice::tcp),
                         [](const auto& info) { return std::string(to_string(info.param)); });

}  // namespace
}  // namespace espalier::engine
