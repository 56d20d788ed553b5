// all_to_all with counts per peer: what is refused, who is named, and how it mixes with other calls.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>
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

class Counted : public ::testing::TestWithParam<TransportChoice> {
 protected:
  void run(std::uint32_t ranks, const std::function<void(Communicator&)>& body,
           milliseconds timeout = milliseconds(20000)) {
    JobOptions options;
    options.transport = GetParam();
    options.timeout = timeout;
    run_ranks(ranks, source_.source(), std::move(options), body);
  }

  PlannedSource source_{"flat"};
};

/// What a call of one int32 buffer each ends with.
std::string error_of(Communicator& ranks, const BlockCounts& sent, const BlockCounts& received) {
  std::vector<std::int32_t> from(200);
  std::vector<std::int32_t> into(200);
  const auto done = ranks.all_to_all(from.data(), sent, into.data(), received, ElementType::int32);
  return done ? std::string() : done.error().message;
}

TEST_P(Counted, BothRanksAreNamedWhereCountsDoNotMatch) {
  for (const bool is_first_call : {true, false}) {
    run(3, [&](Communicator& ranks) {
      const Counts ones = {1, 1, 1};
      // Rank 1 sends five to rank 2, which expects four. All else matches.
      const Counts sent = ranks.rank() == 1 ? Counts{1, 1, 5} : ones;
      const Counts received = ranks.rank() == 2 ? Counts{1, 4, 1} : ones;
      // A rank may still be in the first call when others end the second.
      std::string message = is_first_call ? "" : error_of(ranks, {ones}, {ones});
      if (message.empty()) message = error_of(ranks, {sent}, {received});
      if (ranks.rank() == 0 && message.empty()) return;  // What concerns it was done before the others found out.
      EXPECT_NE(message.find("rank 1 sends 5 int32 to rank 2, which expects 4"), std::string::npos) << message;
      EXPECT_NE(message.find("all_to_all of int32 with counts per peer"), std::string::npos) << message;
    });
  }
}

TEST_P(Counted, WhatIsExpectedOfARankThatSendsNothingIsNamed) {
  run(2, [](Communicator& ranks) {
    const Counts nothing = {0, 0};
    const Counts received = ranks.rank() == 0 ? Counts{0, 70} : nothing;
    const std::string message = error_of(ranks, {nothing}, {received});
    EXPECT_NE(message.find("rank 1 sends 0 int32 to rank 0, which expects 70"), std::string::npos) << message;
  });
}

TEST_P(Counted, OneRankWithoutCountsIsNamed) {
  run(2, [](Communicator& ranks) {
    std::array<std::int32_t, 4> from{};
    std::array<std::int32_t, 4> into{};
    const Counts twos = {2, 2};
    const auto done = ranks.rank() == 0 ? ranks.all_to_all(from.data(), {twos}, into.data(), {twos}, ElementType::int32)
                                        : ranks.all_to_all(from.data(), into.data(), 2, ElementType::int32);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("whether there are counts per peer"), std::string::npos)
        << done.error().message;
  });
}

TEST_P(Counted, TypesAreCompared) {
  run(2, [](Communicator& ranks) {
    std::array<std::int32_t, 4> from{};
    std::array<std::int32_t, 4> into{};
    const Counts twos = {2, 2};
    const auto type = ranks.rank() == 0 ? ElementType::int32 : ElementType::float32;
    const auto done = ranks.all_to_all(from.data(), {twos}, into.data(), {twos}, type);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("disagree on the type"), std::string::npos) << done.error().message;
  });
}

/// Counts that no buffers can have, of one rank: each is refused there, and ends the call on the other.
TEST_P(Counted, ImpossibleCountsAreRefused) {
  constexpr std::int64_t huge = INT64_MAX;
  constexpr std::int64_t most = (std::int64_t{1} << 50) / 4;
  struct Impossible {
    Counts sent, sent_at, received, received_at;
    const char* message;
  };
  const std::vector<Impossible> cases = {
      {{1}, {}, {1, 1}, {}, "1 counts and 0 displacements of what is sent among 2 ranks"},
      {{1, 1}, {}, {}, {}, "0 counts and 0 displacements of what is received among 2 ranks"},
      {{1, 1}, {0}, {1, 1}, {}, "2 counts and 1 displacements of what is sent among 2 ranks"},
      {{1, -1}, {}, {1, 1}, {}, "a count of -1 of what is sent, for rank 1"},
      {{1, 1}, {}, {1, INT64_MIN}, {}, "a count of -9223372036854775808 of what is received, for rank 1"},
      {{1, 1}, {0, -2}, {1, 1}, {}, "a displacement of -2 of what is sent, for rank 1"},
      {{1, huge}, {}, {1, 1}, {}, "is past the limit of 1 PiB"},
      {{most, most}, {}, {1, 1}, {}, "is past the limit of 1 PiB"},
      {{1, 1}, {0, huge}, {1, 1}, {}, "is past the limit of 1 PiB"},
      {{1, 1}, {}, {1, 1}, {0, most + 1}, "is past the limit of 1 PiB"},
      {{2, 1}, {}, {1, 1}, {}, "rank 0 sends 2 elements to itself and receives 1"},
      {{2, 2}, {}, {2, 2}, {3, 4}, "what is received from two ranks overlaps"},
  };
  for (const Impossible& one : cases) {
    run(2, [&](Communicator& ranks) {
      const Counts fine = {1, 1};
      const std::string message = ranks.rank() == 0
                                      ? error_of(ranks, {one.sent, one.sent_at}, {one.received, one.received_at})
                                      : error_of(ranks, {fine}, {fine});
      EXPECT_NE(message.find(one.message), std::string::npos) << message;
    });
  }
}

TEST_P(Counted, OtherCollectivesTakeNoCounts) {
  run(2, [](Communicator& ranks) {
    float value = 1;
    CallArguments arguments{CollectiveKind::all_reduce, &value, &value, 1, ElementType::float32};
    const Counts ones = {1, 1};
    arguments.send_blocks = {ones, {}};
    const auto done = ranks.run(arguments);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("all_reduce takes no counts per peer"), std::string::npos);
  });
}

TEST_P(Counted, MissingBuffersAreRefusedButWhereNothingGoes) {
  run(2, [](Communicator& ranks) {
    const Counts nothing = {0, 0};
    ASSERT_TRUE(ranks.all_to_all(nullptr, {nothing}, nullptr, {nothing}, ElementType::int8));
    // What one rank alone sends needs no buffer to receive there, and none to send on the other.
    std::array<std::int8_t, 3> bytes{1, 2, 3};
    const bool is_source = ranks.rank() == 0;
    const Counts to_one = {0, 3};
    const Counts from_zero = {3, 0};
    ASSERT_TRUE(ranks.all_to_all(is_source ? bytes.data() : nullptr, {is_source ? to_one : nothing},
                                 is_source ? nullptr : bytes.data(), {is_source ? nothing : from_zero},
                                 ElementType::int8));
  });
  run(2, [](Communicator& ranks) {
    const Counts ones = {1, 1};
    std::array<std::int8_t, 2> bytes{};
    const auto done =
        ranks.all_to_all(ranks.rank() == 0 ? nullptr : bytes.data(), {ones}, bytes.data(), {ones}, ElementType::int8);
    ASSERT_FALSE(done);
    EXPECT_NE(done.error().message.find("on rank 0 has no send buffer"), std::string::npos) << done.error().message;
  });
}

TEST_P(Counted, CountsAreExchanged) {
  run(5, [](Communicator& ranks) {
    for (std::int64_t round = 0; round < 20; ++round) {
      Counts sent;
      for (std::int64_t to = 0; to < 5; ++to) sent.push_back(100 * ranks.rank() + to + round);
      Counts received(5);
      ASSERT_TRUE(ranks.exchange_counts(sent, received));
      for (std::size_t from = 0; from < 5; ++from) {
        EXPECT_EQ(received[from], 100 * static_cast<std::int64_t>(from) + ranks.rank() + round);
      }
    }
    Counts few(4);
    EXPECT_FALSE(ranks.exchange_counts(few, few));
  });
}

/// Between other calls, started, in groups, and launched together with calls of other communicators.
TEST_P(Counted, MixWithOtherCalls) {
  run(4, [&](Communicator& world) {
    const std::array<std::uint32_t, 2> members = {world.rank() % 2, world.rank() % 2 + 2};
    auto half = world.split(members, "half", source_.source());
    ASSERT_TRUE(half) << half.error().message;
    for (std::uint64_t round = 0; round < 12; ++round) {
      const auto memory = round % 3 == 0 ? Memory::registered : Memory::plain;
      run_exchange(world, CountedExchange::random(4, 3000, round), memory, false);
      run_exchange(**half, CountedExchange::random(2, 3000, round + 100), memory, round % 2 == 0);
      test::run_case(world, {CollectiveKind::all_reduce, ElementType::int32, ReduceOperation::sum, 4, 0, 500, round},
                     Memory::plain, true);
      if (::testing::Test::HasFailure()) return world.abort("a test failed");
    }
    const auto of_world = CountedExchange::random(4, 5000, 7);
    const auto of_half = CountedExchange::random(2, 5000, 8);
    const test::CountedSide one(of_world, world.rank());
    const test::CountedSide other(of_half, (*half)->rank());
    std::vector<std::byte> sent(one.send_bytes() + other.send_bytes() + 1);
    std::vector<std::byte> received(one.receive_bytes() + other.receive_bytes() + 1);
    one.fill(sent.data());
    other.fill(sent.data() + one.send_bytes());
    world.group_begin();
    ASSERT_TRUE(world.all_to_all(sent.data(), one.sent(), received.data(), one.received(), of_world.type));
    ASSERT_TRUE((*half)->all_to_all(sent.data() + one.send_bytes(), other.sent(), received.data() + one.receive_bytes(),
                                    other.received(), of_half.type));
    const auto launched = world.group_end();
    ASSERT_TRUE(launched) << launched.error().message;
    one.check(received.data());
    other.check(received.data() + one.receive_bytes());

    std::vector<CallHandle> handles;
    std::vector<std::vector<std::byte>> results(3, std::vector<std::byte>(one.receive_bytes() + 1));
    for (std::vector<std::byte>& result : results) {
      CallArguments arguments{CollectiveKind::all_to_all, sent.data(), result.data(), 0, of_world.type};
      arguments.send_blocks = one.sent();
      arguments.receive_blocks = one.received();
      auto started = world.start(arguments);
      ASSERT_TRUE(started) << started.error().message;
      handles.push_back(std::move(*started));
    }
    for (CallHandle& handle : handles) ASSERT_TRUE(handle.wait());
    for (const std::vector<std::byte>& result : results) one.check(result.data());
  });
}

TEST_P(Counted, ACallHasNoSchedule) {
  run(1, [](Communicator& alone) {
    const Counts three = {3};
    std::array<std::int32_t, 3> from{4, 5, 6};
    std::array<std::int32_t, 3> into{};
    ASSERT_TRUE(alone.all_to_all(from.data(), {three}, into.data(), {three}, ElementType::int32));
    EXPECT_EQ(into, from);
    CallArguments arguments{CollectiveKind::all_to_all, from.data(), into.data(), 0, ElementType::int32};
    arguments.send_blocks = arguments.receive_blocks = {three, {}};
    EXPECT_FALSE(alone.schedule_of(arguments));
  });
}

TEST_P(Counted, ARankThatDoesNotComeIsNamed) {
  run(
      3,
      [](Communicator& ranks) {
        const Counts ones = {1, 1, 1};
        ASSERT_EQ(error_of(ranks, {ones}, {ones}), "");
        if (ranks.rank() == 1) {
          while (!ranks.control().has_failed()) std::this_thread::sleep_for(milliseconds(5));
          return;
        }
        const std::string message = error_of(ranks, {ones}, {ones});
        EXPECT_NE(message.find("rank 1"), std::string::npos) << message;
      },
      milliseconds(400));
}

std::vector<TransportChoice> choices() {
  std::vector<TransportChoice> choices = {TransportChoice::shm, TransportChoice::tcp};
  if (has_verbs()) choices.push_back(TransportChoice::verbs);
  return choices;
}
INSTANTIATE_TEST_SUITE_P(Transports, Counted, ::testing::ValuesIn(choices()),
                         [](const auto& choice) { return std::string(to_string(choice.param)); });

}  // namespace
}  // namespace espalier::engine
