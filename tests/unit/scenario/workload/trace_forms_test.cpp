#include "scenario/workload/trace_forms.h"

#include <gtest/gtest.h>

#include "scenario/run/run_job.h"
#include "tests/unit/scenario/jobs.h"
#include "tests/unit/scenario/star.h"

namespace espalier::scenario {
namespace {

using test::us;

ChakraOptions first_of(std::size_t count) {
  ChakraOptions options;
  for (std::size_t i = 0; i < count; ++i) options.ranks.emplace_back(i);
  return options;
}

JobReport run_goal(std::string_view text, std::size_t ranks) {
  const auto nodes = read_goal(text, "test.goal", ranks);
  EXPECT_TRUE(nodes.has_value()) << nodes.error().message;
  if (!nodes) return {};
  Job job;
  const auto added = add_chakra(job, *nodes, first_of(ranks));
  EXPECT_TRUE(added.has_value()) << added.error().message;
  return test::run_checked(job, test::star(ranks));
}

TEST(Goal, RunsOperationsInTheirOrder) {
  // A link of the star takes 1 us and 1 us per 1,000 bytes, and there are two on the way: rank 0 computes for 5 us and
  // sends, 1 us of bytes and 2 us of latency; rank 1 computes for 3 us, on another cpu already before.
  const JobReport report = run_goal(
      "num_ranks 2\n"
      "rank 0 {\n"
      "l1: calc 5000\n"
      "l2: send 1000b to 1 tag 7\n"
      "l2 requires l1\n"
      "}\n"
      "rank 1 {\n"
      "l1: recv 1000b from 0 tag 7\n"
      "l2: calc 3000 cpu 1\n"
      "l3: calc 4000\n"
      "l3 requires l1\n"
      "}\n",
      2);
  EXPECT_EQ(report.elapsed.count, (5 + 3 + 4) * us);
}

TEST(Goal, OperationsOfACpuFollowEachOther) {
  EXPECT_EQ(run_goal("num_ranks 1\nrank 0 {\na: calc 2000\nb: calc 3000\nc: calc 4000 cpu 1\n}\n", 1).elapsed.count,
            5 * us);
}

// b begins when a may: both at once behind the 2 us of c, not one behind the other.
TEST(Goal, IrequiresWaitsForTheBeginning) {
  const std::string_view text =
      "num_ranks 1\nrank 0 {\nc: calc 2000\na: calc 10000 cpu 1\na requires c\nb: calc 3000 cpu 2\nb irequires a\n}\n";
  EXPECT_EQ(run_goal(text, 1).elapsed.count, 12 * us);
  std::string strict(text);
  strict.replace(strict.find("irequires"), 9, "requires");
  EXPECT_EQ(run_goal(strict, 1).elapsed.count, 15 * us);
}

TEST(Goal, ErrorsSayWhere) {
  const auto error = [](std::string_view text) {
    const auto nodes = read_goal(text, "f", 2);
    return nodes ? std::string() : nodes.error().message;
  };
  EXPECT_EQ(error(""), "f:0: there is no num_ranks");
  EXPECT_EQ(error("num_ranks 3\n"), "f:1: it has 3 ranks, and there are 2 to put it on");
  EXPECT_EQ(error("num_ranks 1\nrank 1 {\n"), "f:2: a rank begins with 'rank R {', R below num_ranks (1)");
  EXPECT_EQ(error("num_ranks 1\nrank 0 {\n"), "f:2: the braces of rank 0 are not closed");
  EXPECT_EQ(error("num_ranks 1\nrank 0 {\nl1: jump 3\n}"), "f:3: 'jump' is not understood here");
  EXPECT_EQ(error("num_ranks 1\nrank 0 {\nl1: calc 3\nl1 requires l2\n}"), "f:4: there is no 'l2' above");
  EXPECT_EQ(error("num_ranks 1\nrank 0 {\nl1: calc 3\nl1: calc 4\n}"), "f:4: 'l1' is there twice");
  EXPECT_EQ(error("num_ranks 1\nrank 0 {\n}\nrank 0 {\n}"), "f:4: rank 0 is there twice");
}

/// A kernel from `begin` on stream 7, or a collective of NCCL on stream 20.
std::string kernel(double begin, double length, const std::string& more = "\"stream\": 7") {
  return R"({"ph": "X", "cat": "kernel", "name": "k", "ts": )" + std::to_string(begin) + R"(, "dur": )" +
         std::to_string(length) + R"(, "args": {)" + more + "}}";
}
std::string all_reduce(double begin, double length, const std::string& more = {}) {
  return kernel(begin, length,
                R"("stream": 20, "Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000,)"
                R"("dtype": "Float", "Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]")" +
                    more);
}
std::string kineto(const std::vector<std::string>& events) {
  std::string text;
  for (const std::string& event : events) text += (text.empty() ? "" : ",") + event;
  return R"({"traceEvents": [)" + text + "]}";
}

TEST(Kineto, KernelsWaitForWhatHadEndedWhenTheyBegan) {
  // Rank 0: 10 us of a kernel, 2 us of nothing, an all_reduce, a kernel beside it that had not to wait for it, and one
  // 1 us behind both. Rank 1: the all_reduce at once.
  const std::string first = kineto({kernel(100, 10), all_reduce(112, 30), kernel(112, 4), kernel(143, 6)});
  const std::string second = kineto({all_reduce(50, 100)});
  std::vector<std::vector<ChakraNode>> nodes;
  ChakraOptions options = first_of(2);
  for (const std::string& text : {first, second}) {
    const auto trace = read_kineto(text, "step.json", 2);
    ASSERT_TRUE(trace.has_value()) << trace.error().message;
    nodes.push_back(trace->nodes);
    for (const auto& [name, ranks] : trace->groups) options.groups[name] = {Rank(0), Rank(1)};
  }
  Job job;
  ASSERT_TRUE(add_chakra(job, nodes, options).has_value());
  // A ring of two: 2 steps of 2 us and 2,000 bytes at 1 GB/s take 8 us, from 12 us on; 1 us; 6 us.
  EXPECT_EQ(test::run_checked(job, test::star(2)).elapsed.count, (12 + 8 + 1 + 6) * us);
}

TEST(Kineto, TakesRanksFromWhereTheyAreWhole) {
  const std::string cut =
      kernel(0, 1,
             R"("stream": 20, "Collective name": "broadcast", "In msg nelems": 4, "dtype": "Long",)"
             R"("Group size": 2, "Process Group Name": "pairs", "Process Group Ranks": "[0, 1, ...]")");
  const auto refused = read_kineto(kineto({cut}), "f", 4);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "f: kernel 'k' does not say which 2 ranks its group 'pairs' has");
  const std::string head =
      R"({"distributedInfo": {"pg_config": [{"pg_name": "pairs", "ranks": [3, 1]}]}, "traceEvents": [)";
  const auto read = read_kineto(head + cut + "]}", "f", 4);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->groups.at("pairs [1,3]"), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(read->nodes.back().comm_size, 32);
}

TEST(Kineto, ErrorsNameTheKernel) {
  const auto error = [](const std::string& text) {
    const auto trace = read_kineto(text, "f", 2);
    return trace ? std::string() : trace.error().message;
  };
  EXPECT_EQ(error("["), "f: not a trace of the PyTorch profiler: no JSON object");
  EXPECT_EQ(error("{}"), "f: not a trace of the PyTorch profiler: there are no traceEvents");
  EXPECT_EQ(error(kineto({})), "f: not a trace of the PyTorch profiler: no kernel of a GPU ran");
  EXPECT_EQ(error(kineto({kernel(0, 1, R"("Collective name": "allreduce")")})),
            "f: kernel 'k' does not say how much it carries");
  EXPECT_EQ(error(kineto({kernel(0, 1, R"("Collective name": "gossip", "dtype": "Int", "In msg nelems": 1)")})),
            "f: kernel 'k': there is no collective for 'gossip'");
  EXPECT_EQ(error(kineto({kernel(0, 1, R"("Collective name": "send", "dtype": "Int", "In msg nelems": 1)")})),
            "f: kernel 'k' does not say which rank it is for");
}

}  // namespace
}  // namespace espalier::scenario
