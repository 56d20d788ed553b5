#include "engine/communicator/agreement.h"

#include <gtest/gtest.h>

#include "engine/communicator/communicator.h"
#include "tests/support/engine_cases.h"
#include "tests/support/networks/planes.h"

namespace espalier::engine {
namespace {

using test::long_enough;

/// What `agree_on` gives to each of three ranks.
std::vector<Result<void>> agree(const std::function<std::vector<Setting>(std::uint32_t)>& settings_of_rank) {
  const auto planes = test::planes_of(3);
  std::vector<Result<void>> results(3);
  test::on_each_rank(
      3, [&](std::uint32_t rank) { results[rank] = agree_on(*planes[rank], settings_of_rank(rank), long_enough); });
  return results;
}

TEST(Agreement, EqualSettingsPass) {
  for (const auto& result : agree([](std::uint32_t) { return std::vector<Setting>{{"-n", "3"}, {"-o", ""}}; })) {
    EXPECT_TRUE(result) << result.error().message;
  }
}

TEST(Agreement, TheFirstRankThatDiffersIsNamedWithBothValues) {
  const auto results = agree([](std::uint32_t rank) {
    return std::vector<Setting>{{"-n", "3"}, {"--chunk", rank == 2 ? "64K" : "auto"}};
  });
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::invalid_input);
    EXPECT_EQ(result.error().message,
              "the ranks were started with different options: rank 0 has --chunk auto, rank 2 has --chunk 64K");
  }
}

TEST(Agreement, ASettingThatARankDoesNotHaveIsADifference) {
  const auto results = agree([](std::uint32_t rank) {
    return rank == 1 ? std::vector<Setting>{{"-n", "3"}, {"new", "1"}} : std::vector<Setting>{{"-n", "3"}};
  });
  for (const auto& result : results) {
    ASSERT_FALSE(result);
    EXPECT_TRUE(result.error().message.ends_with("rank 0 has new not given, rank 1 has new 1"))
        << result.error().message;
  }
}

/// Far from any timeout, on all ranks alike, and for each option that connections depend on.
TEST(Agreement, RanksThatCannotTalkAreToldOnJoining) {
  const std::vector<std::pair<std::string, std::function<void(JobOptions&)>>> options = {
      {"--sockets 1, rank 1 has --sockets 4", [](JobOptions& own) { own.sockets_per_peer = 4; }},
      {"--checksum off, rank 1 has --checksum on", [](JobOptions& own) { own.checksum = true; }},
      {"-d float, rank 1 has -d half",
       [](JobOptions& own) {
         own.agreed = {{"-d", "half"}};
       }},
  };
  for (const auto& [expected, change] : options) {
    auto listener = rendezvous::listen_on("127.0.0.1", 0);
    ASSERT_TRUE(listener);
    const std::uint16_t port = listener->port;
    test::on_each_rank(2, [&](std::uint32_t rank) {
      JobOptions own;
      own.transport = TransportChoice::tcp;
      own.agreed = {{"-d", "float"}};
      own.rendezvous = test::options_of(rank, 2, port);
      if (rank == 0) own.rendezvous.listener = std::move(*listener);
      if (rank == 1) change(own);
      test::PlannedSource source("ring");
      const auto joined = Communicator::join(std::move(own), source.source());
      ASSERT_FALSE(joined);
      EXPECT_NE(joined.error().message.find(expected), std::string::npos) << joined.error().message;
    });
  }
}

}  // namespace
}  // namespace espalier::engine
