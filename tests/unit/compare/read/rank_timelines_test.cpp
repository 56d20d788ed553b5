#include "compare/read/rank_timelines.h"

#include <gtest/gtest.h>

#include <string>

namespace espalier::compare {
namespace {

constexpr std::int64_t picoseconds_of_us = 1'000'000;  // In picoseconds.

Span span_us(std::uint32_t lane, std::size_t transfer, Phase phase, std::int64_t begin_us, std::int64_t end_us) {
  return {lane, TransferId(transfer), 0, phase, {begin_us * picoseconds_of_us}, {end_us * picoseconds_of_us}};
}

/// Rank 0 sends transfer 1 from 10 to 20 us; rank 1 has it at 25 us, sends transfer 2 from 30 to 40 us; rank 0 has that
/// at 45 us. Rank 1's file counts from `first_us` on a clock that is `skew_us` ahead.
std::vector<RankTimeline> two_ranks(const std::string& other_boot, std::int64_t first_us, std::int64_t skew_us) {
  std::vector<RankTimeline> parts(2);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    parts[rank].file = "rank" + std::to_string(rank);
    parts[rank].timeline.title = "all_reduce, nccl, 4 MiB on NCCL";
    parts[rank].timeline.origin = "run";
    parts[rank].timeline.rank_names = {"rank0", "rank1"};
  }
  parts[0].clock = TimelineClock{"a", 1'000'000, 5'000'000};
  parts[0].timeline.spans = {span_us(0, 1, Phase::send, 10, 20), span_us(0, 2, Phase::recv, 21, 45)};
  parts[1].clock = TimelineClock{other_boot, 1'000'000 + first_us * 1000, 5'000'000 + (first_us + skew_us) * 1000};
  parts[1].timeline.spans = {span_us(1, 1, Phase::recv, 5 - first_us, 25 - first_us),
                             span_us(1, 2, Phase::send, 30 - first_us, 40 - first_us)};
  return parts;
}

void expect_merged(const Timeline& merged) {
  ASSERT_EQ(merged.spans.size(), 4U);  // The first begins at 5 us.
  EXPECT_EQ(merged.spans[0], span_us(1, 1, Phase::recv, 0, 20));
  EXPECT_EQ(merged.spans[1], span_us(0, 1, Phase::send, 5, 15));
  EXPECT_EQ(merged.spans[2], span_us(0, 2, Phase::recv, 16, 40));
  EXPECT_EQ(merged.spans[3], span_us(1, 2, Phase::send, 25, 35));
}

TEST(RankTimelines, OneBootIsOneClock) {
  const auto merged = merge_rank_timelines(two_ranks("a", 3, 900));  // The time of day does not count.
  ASSERT_TRUE(merged) << merged.error().message;
  expect_merged(*merged);
}

TEST(RankTimelines, OtherMachinesAreShiftedByTheirMessages) {
  for (const std::int64_t skew : {-400, 0, 700}) {
    const auto merged = merge_rank_timelines(two_ranks("b", 3, skew));
    ASSERT_TRUE(merged) << merged.error().message;
    expect_merged(*merged);
  }
}

TEST(RankTimelines, WhatDoesNotFitIsRefused) {
  const auto why = [](const std::vector<RankTimeline>& parts) {
    const auto merged = merge_rank_timelines(parts);
    return merged ? std::string("it was merged") : merged.error().message;
  };
  auto parts = two_ranks("a", 3, 0);
  parts[1].clock.reset();
  EXPECT_EQ(why(parts), "rank1:1:1: the timeline does not say what clock it is of");
  parts = two_ranks("a", 3, 0);
  parts[1].timeline.rank_names.push_back("rank2");
  EXPECT_EQ(why(parts), "rank1:1:1: its ranks are not those of rank0");
  parts = two_ranks("a", 3, 0);
  parts[1].timeline.title = "all_gather";
  EXPECT_EQ(why(parts), "rank1:1:1: it is of 'all_gather', rank0 of 'all_reduce, nccl, 4 MiB on NCCL'");
  parts = two_ranks("a", 3, 0);
  parts[1].timeline.spans[0].lane = 0;
  EXPECT_EQ(why(parts), "rank1:1:1: rank0 is in rank0, too");
  parts = two_ranks("b", 3, std::int64_t{90'000} * 1'000'000);
  EXPECT_EQ(why(parts), "rank1:1:1: it is more than a day from rank0");
}

TEST(RankTimelines, TheClockIsReadFromTheHeader) {
  const auto clock =
      read_timeline_clock(R"({"otherData":{"espalier_timeline":1,"espalier_clock":{"boot":"x","first_ns":12,)"
                          R"("first_real_ns":34}},"traceEvents":[]})");
  ASSERT_TRUE(clock);
  EXPECT_EQ(clock->boot, "x");
  EXPECT_EQ(clock->first_ns, 12);
  EXPECT_EQ(clock->first_real_ns, 34);
  EXPECT_FALSE(read_timeline_clock(R"({"traceEvents":[{"espalier_clock":{"boot":"x"}}]})"));
  EXPECT_FALSE(read_timeline_clock(R"({"espalier_clock":{"boot":"x","first_ns":"soon"},"traceEvents":[]})"));
  EXPECT_FALSE(read_timeline_clock("{}"));
}

}  // namespace
}  // namespace espalier::compare
