#include "engine/launch/rank_limit.h"

#include <gtest/gtest.h>

#include "engine/launch/local_job.h"

namespace espalier::engine::launch {
namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20U;
constexpr std::int64_t plenty = std::int64_t{1} << 40U;

// 4 threads, one descriptor besides 64, 16 MiB for each rank: every limit allows 100 ranks and not one more.
TEST(RankLimit, EachLimitIsKept) {
  const std::vector<std::pair<MachineLimits, std::string>> cases = {
      {{400, plenty, plenty}, "each has up to 4 threads, and there may be 400 (ulimit -u)"},
      {{plenty, 164, plenty}, "rank 0 has a descriptor for each, and may have 164 (ulimit -n)"},
      {{plenty, plenty, 1600 * mebibyte}, "each takes about 16 MiB, and 1600 MiB are available"}};
  for (const auto& [limits, reason] : cases) {
    EXPECT_TRUE(check_local_ranks(100, limits));
    const auto refused = check_local_ranks(101, limits);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::too_large);
    EXPECT_EQ(refused.error().message, "101 ranks are more than the 100 that this machine can run: " + reason);
    EXPECT_EQ(refused.error().help, "take a topology of fewer ranks, or say --max-local-ranks 101");
  }
}

TEST(RankLimit, OneRankIsAlwaysAllowed) { EXPECT_TRUE(check_local_ranks(1, {1, 1, 1})); }

TEST(RankLimit, TheMachineSaysWhatItAllows) {
  const auto limits = read_machine_limits();
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_GT(limits->processes, 1);
  EXPECT_GT(limits->descriptors, 8);
  EXPECT_GT(limits->memory, mebibyte);
}

TEST(RankLimit, AJobPastItIsRefusedBeforeAnythingStarts) {
  LocalJobOptions options;
  options.world = 100'000'000;
  options.program = "/no/such/program";  // Would be the error if a rank were started.
  const auto refused = run_local_job(options);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, ErrorCode::too_large) << refused.error().message;
  options.max_ranks = options.world;
  const auto tried = run_local_job(options);
  ASSERT_FALSE(tried);
  EXPECT_EQ(tried.error().message, "rank 0: cannot start /no/such/program: No such file or directory");
}

}  // namespace
}  // namespace espalier::engine::launch
