#include "compare/stragglers.h"

#include <gtest/gtest.h>

#include <string>

#include "compare/read/rank_calls.h"

namespace espalier::compare {
namespace {

RankCalls record(std::uint32_t rank, std::vector<double> seconds, std::optional<std::int64_t> first = std::nullopt) {
  RankCalls calls{"f", rank, {}};
  double begin = 0;
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    std::optional<std::int64_t> number;
    if (first) number = *first + static_cast<std::int64_t>(i);
    calls.calls.push_back({"dp", "all_reduce", number, begin, seconds[i]});
    begin += 10;
  }
  return calls;
}

TEST(Stragglers, WhoIsInACallForTheShortestTimeCameLast) {
  // Rank 2 comes last to both calls, by 3 and 1 seconds after the one before it.
  const Stragglers found = find_stragglers(std::vector{record(0, {5, 4}), record(1, {4, 5}), record(2, {1, 3})});
  EXPECT_EQ(found.calls, 2U);
  EXPECT_DOUBLE_EQ(found.cost, 4);
  EXPECT_DOUBLE_EQ(found.span, 15);  // Of rank 1: its second call begins at 10.
  ASSERT_EQ(found.ranks.size(), 3U);
  EXPECT_EQ(found.ranks[0].rank, 2U);
  EXPECT_EQ(found.ranks[0].last, 2U);
  EXPECT_DOUBLE_EQ(found.ranks[0].cost, 4);
  ASSERT_EQ(found.kinds.size(), 1U);
  EXPECT_EQ(found.kinds[0].rank, 2U);
}

TEST(Stragglers, CallsWithoutNumbersAreCountedFromTheEnd) {
  // Rank 0 lost its first call: its only one is the second of rank 1.
  const Stragglers found = find_stragglers(std::vector{record(0, {2}), record(1, {7, 5})});
  EXPECT_EQ(found.calls, 1U);
  EXPECT_EQ(found.ranks[0].rank, 0U);
  EXPECT_DOUBLE_EQ(found.ranks[0].cost, 3);
}

TEST(Stragglers, NumbersPairCallsWhereTheyAreSaid) {
  const Stragglers found = find_stragglers(std::vector{record(0, {2}, 4), record(1, {7, 5}, 4)});
  EXPECT_EQ(found.calls, 1U);
  EXPECT_DOUBLE_EQ(found.ranks[0].cost, 5);
}

TEST(RankCalls, AFlightRecordersEntriesAreCalls) {
  const std::string text = R"({"version": "2.3", "rank": 3, "pg_config": {"0": {"ranks": "[0, 3]"}}, "entries": [
    {"profiling_name": "nccl:all_reduce", "process_group": ["0", "default_pg"], "collective_seq_id": 7,
     "time_created_ns": 2000000000, "is_p2p": false, "duration_ms": 1.5},
    {"profiling_name": "nccl:send", "process_group": ["0", "default_pg"], "is_p2p": true, "duration_ms": 1},
    {"profiling_name": "nccl:all_reduce", "process_group": ["0", "default_pg"], "duration_ms": null}]})";
  ASSERT_TRUE(is_rank_record(text));
  const auto read = read_rank_calls(text, "f", 0);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, 3U);
  ASSERT_EQ(read->calls.size(), 1U);
  const RankCall& call = read->calls.front();
  EXPECT_EQ(call.group, "default_pg");
  EXPECT_EQ(call.number, 7);
  EXPECT_DOUBLE_EQ(call.begin, 2);
  EXPECT_DOUBLE_EQ(call.seconds, 1.5e-3);
}

TEST(RankCalls, AProfilersKernelsOfCollectivesAreCalls) {
  const std::string text = R"({"distributedInfo": {"rank": 1, "pg_config": []}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel", "ts": 3000000, "dur": 250,
     "args": {"Collective name": "allreduce", "Process Group Name": "dp"}},
    {"ph": "X", "cat": "kernel", "name": "gemm", "ts": 1, "dur": 2, "args": {"stream": 7}},
    {"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 1, "dur": 2,
     "args": {"Collective name": "allreduce"}}]})";
  ASSERT_TRUE(is_rank_record(text));
  const auto read = read_rank_calls(text, "f", 0);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->rank, 1U);
  ASSERT_EQ(read->calls.size(), 1U);
  EXPECT_DOUBLE_EQ(read->calls.front().begin, 3);
  EXPECT_DOUBLE_EQ(read->calls.front().seconds, 250e-6);
}

TEST(RankCalls, SaysWhereARecordIsBrokenOrHasNothing) {
  const auto empty = read_rank_calls(R"({"traceEvents": []})", "f", 0);
  ASSERT_FALSE(empty);
  EXPECT_EQ(empty.error().message, "f:1:1: no collective of a GPU with its time is in this record");
  // As PyTorch before 2.3 wrote them.
  const auto unnamed = read_rank_calls(
      R"({"traceEvents": [{"ph": "X", "cat": "kernel", "name": "ncclKernel_SendRecv", "ts": 1, "dur": 2,
          "args": {"stream": 20}}]})",
      "f", 0);
  ASSERT_FALSE(unnamed);
  EXPECT_EQ(unnamed.error().message, "f:1:1: none of 1 kernel of NCCL says which call it carries out");
  const auto cut = read_rank_calls("{\"traceEvents\": [\n{\"ph\"", "f", 0);
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().message.substr(0, 4), "f:2:");
  EXPECT_FALSE(is_rank_record(R"({"otherData": {"espalier_timeline": 1}, "traceEvents": []})"));
  EXPECT_FALSE(is_rank_record("# nccl-tests"));
}

}  // namespace
}  // namespace espalier::compare
