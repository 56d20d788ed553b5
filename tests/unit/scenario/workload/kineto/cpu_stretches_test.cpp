#include <gtest/gtest.h>

#include "scenario/run/run_job.h"
#include "scenario/workload/trace_forms.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::us;

std::string event(const std::string& category, const std::string& name, double begin, double length, int thread,
                  const std::string& args = {}) {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "ts": )" + std::to_string(begin) +
         R"(, "dur": )" + std::to_string(length) + R"(, "tid": )" + std::to_string(thread) + R"(, "args": {)" + args +
         "}}";
}
std::string op(double begin, double length, const std::string& name = "aten::mm") {
  return event("cpu_op", name, begin, length, 1);
}
/// What issues an all_reduce, and the backend's range of 1,000 floats, which take 8 us on the star of two.
std::string issue(double begin) { return op(begin, 2, "c10d::allreduce_"); }
std::string call(double begin, double length, const std::string& name = "gloo:all_reduce") {
  return event("user_annotation", name, begin, length, 2, R"("Input type": ["float"], "Input Dims": [[1000]])");
}

std::string trace_of(const std::vector<std::string>& events, const std::string& head = {}) {
  std::string text;
  for (const std::string& one : events) text += (text.empty() ? "" : ",") + one;
  return "{" + head + R"("traceEvents": [)" + text + "]}";
}

struct Replayed {
  std::int64_t elapsed_us = 0;
  std::uint64_t guessed = 0;
  RecordedTime recorded;
};
/// Ranks that all recorded this.
Replayed replay_cpu(const std::string& trace, WaitReading reading = WaitReading::least, std::size_t ranks = 2,
                    bool is_spmd = false) {
  const auto read = read_kineto(trace, "step.json", is_spmd ? 1 : ranks, reading, is_spmd);
  EXPECT_TRUE(read.has_value()) << read.error().message;
  if (!read) return {};
  ChakraOptions options;
  for (std::size_t i = 0; i < ranks; ++i) options.ranks.emplace_back(i);
  Job job;
  const auto added = add_chakra(job, std::vector(ranks, read->nodes), options);
  EXPECT_TRUE(added.has_value()) << added.error().message;
  return {test::run_checked(job, test::star(ranks)).elapsed.count / us, read->guessed, read->recorded};
}

TEST(CpuTrace, AThreadWaitsForACallThatEndedWhileItDidNothing) {
  // 10 us; the call is issued, begins 3 us later and takes 8, until 21; beside it 10 us until 20. The thread had done
  // nothing for 55 us when the call ended, so it goes on at 21, for the 15 us from there to its last operator's end.
  const Replayed run = replay_cpu(trace_of({op(100, 10), issue(110), op(112, 8), call(113, 62), op(180, 10)}));
  EXPECT_EQ(run.elapsed_us, 21 + 15);
  EXPECT_EQ(run.guessed, 0U);
  EXPECT_EQ(run.recorded.elapsed_us, 90);
  EXPECT_EQ(run.recorded.exposed_us, 55);  // From 120 to 175.
}

TEST(CpuTrace, ACallThatEndedInAShortGapIsGuessed) {
  // The call ended 5 us into a gap of 8. By the least nothing waited: 10 us and 28 from the issue to the end. By the
  // most the last operator waits for the call, until 21, and 13 us are left from the call's end on.
  const std::string trace = trace_of({op(100, 10), issue(110), op(112, 8), call(113, 12), op(128, 10)});
  EXPECT_EQ(replay_cpu(trace).elapsed_us, 38);
  EXPECT_EQ(replay_cpu(trace).guessed, 1U);
  EXPECT_EQ(replay_cpu(trace, WaitReading::most).elapsed_us, 34);
}

TEST(CpuTrace, AThreadThatCarriesACallOutItselfWaitsForIt) {
  // The operator that issues the call holds all of it: 10 us, the call 2 us later for 8, and 15 from its end on.
  const std::string own =
      event("user_annotation", "espalier:all_reduce", 112, 40, 1, R"("Input type": ["float"], "Input Dims": [[1000]])");
  const std::string trace = trace_of({op(100, 10), op(110, 45, "c10d::allreduce_"), own, op(157, 10)});
  EXPECT_EQ(replay_cpu(trace).elapsed_us, 10 + 2 + 8 + 15);
  EXPECT_EQ(replay_cpu(trace).recorded.exposed_us, 40);
}

TEST(CpuTrace, CallsOfABackendsThreadFollowEachOther) {
  // Both are issued at once; the second begins when the first is over, 8 us after, and nothing waits for them.
  const std::string trace = trace_of({op(100, 10), issue(110), issue(112), call(110, 30), call(140, 30)});
  EXPECT_EQ(replay_cpu(trace).elapsed_us, 10 + 8 + 8);
}

TEST(CpuTrace, WhatOneRankRecordedIsAskedOfEight) {
  // A ring of 8 on the star: 14 steps of 2 us and 500 bytes at 1 GB/s, where 2 ranks take 2 of 2 us and 2,000 bytes.
  const std::string head =
      R"("distributedInfo": {"world_size": 2, "pg_config": [{"pg_name": "0", "ranks": [0, 1]}]}, )";
  const std::string trace = trace_of({issue(100), call(100, 60)}, head);
  EXPECT_EQ(replay_cpu(trace, WaitReading::least, 2, true).elapsed_us, 8);
  EXPECT_GT(replay_cpu(trace, WaitReading::least, 8, true).elapsed_us, 8);
  EXPECT_EQ(replay_cpu(trace, WaitReading::least, 8, true).recorded.elapsed_us, 60);
}

/// What an error says of a trace.
std::string refusal(const std::string& trace, bool is_spmd = false) {
  const auto read = read_kineto(trace, "step.json", 2, WaitReading::least, is_spmd);
  EXPECT_FALSE(read.has_value());
  return read ? std::string() : read.error().message;
}

TEST(CpuTrace, WhatItDoesNotSayIsRefused) {
  EXPECT_EQ(refusal(trace_of({event("user_annotation", "gloo:all_reduce", 1, 2, 2)})),
            "step.json: 'gloo:all_reduce' does not say how much it carries");
  EXPECT_EQ(refusal(trace_of({call(1, 2, "gloo:send")})), "step.json: 'gloo:send' does not say which rank it is for");
  EXPECT_EQ(refusal(trace_of({issue(5)})),
            "step.json: calls of torch.distributed were issued, but no range of a backend says when they ran");
  const std::string two = R"("distributedInfo": {"pg_config": [{"pg_name": "0", "ranks": [0, 1]},
                              {"pg_name": "1", "ranks": [0]}]}, )";
  EXPECT_EQ(refusal(trace_of({issue(5), call(6, 2)}, two)),
            "step.json: there are 2 process groups, and ranges on the CPU do not say whose they are");
  const std::string sends = event("cpu_op", "c10d::send", 1, 1, 1, R"("Concrete Inputs": ["", "", "1", "0"])");
  const std::string head = R"("distributedInfo": {"world_size": 2}, )";
  EXPECT_EQ(refusal(trace_of({sends, call(1, 2, "gloo:send")}, head), true),
            "step.json: call 'gloo:send' is a message: whom other ranks would send to is not known");
}

}  // namespace
}  // namespace espalier::scenario
