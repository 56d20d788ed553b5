#include "scenario/workload/trace_forms.h"

#include <gtest/gtest.h>

#include <algorithm>

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

/// Compiled GOAL, written as the form is described (read_goal_binary.cpp), for tests.
class GoalBinary {
 public:
  struct Operation {
    std::uint8_t type;
    std::uint32_t peer;
    std::uint64_t amount;
    std::uint32_t tag;
    std::uint8_t cpu;
    std::vector<std::uint32_t> followers, joiners;
  };

  void add_rank(const std::vector<Operation>& operations) {
    std::vector<std::uint32_t> waits(operations.size(), 0);
    for (const Operation& of : operations) {
      for (const auto* list : {&of.followers, &of.joiners}) {
        for (const std::uint32_t follower : *list) {
          if (follower < waits.size()) ++waits[follower];
        }
      }
    }
    std::string roots, rest, lists;
    std::uint32_t listed = 0;
    for (std::uint32_t i = 0; i < operations.size(); ++i) {
      const Operation& of = operations[i];
      if (waits[i] == 0) put(roots, i, 4);
      put(rest, waits[i], 4);
      put(rest, of.type, 1);
      put(rest, of.peer, 4);
      put(rest, of.amount, 8);
      put(rest, of.tag, 4);
      put(rest, of.cpu, 1);
      put(rest, 0, 1);
      for (const auto* list : {&of.followers, &of.joiners}) {
        put(rest, list->size(), 4);
        put(rest, listed, 4);
        listed += static_cast<std::uint32_t>(list->size());
        for (const std::uint32_t follower : *list) put(lists, follower, 4);
      }
    }
    std::string rank;
    put(rank, operations.size(), 4);
    put(rank, roots.size() / 4, 4);
    ranks_.push_back(rank + roots + rest + lists);
  }

  [[nodiscard]] std::string bytes() const {
    std::string head, table, all;
    put(head, 4223, 8);
    put(head, ranks_.size(), 4);
    put(head, 0, 2);
    std::uint64_t at = 6 + 16 * ranks_.size();
    for (const std::string& rank : ranks_) {
      put(table, at, 8);
      put(table, at + rank.size(), 8);
      at += rank.size();
      all += rank;
    }
    return head + table + all;
  }

 private:
  static void put(std::string& to, std::uint64_t value, std::size_t width) {
    for (std::size_t i = 0; i < width; ++i) to += static_cast<char>(value >> (8 * i) & 0xFF);
  }

  std::vector<std::string> ranks_;
};

constexpr std::uint8_t goal_send = 1, goal_receive = 2, goal_calc = 3;

TEST(CompiledGoal, SaysWhatItsTextSays) {
  const std::string_view text =
      "num_ranks 2\n"
      "rank 0 {\na: calc 5000\nb: send 1000b to 1 tag 7\nc: calc 300 cpu 2\nb requires a\nc irequires b\nc requires "
      "a\n}\n"
      "rank 1 {\na: recv 1000b from 0 tag 7\nb: calc 4000 cpu 1\nb requires a\n}\n";
  GoalBinary binary;
  binary.add_rank(
      {{goal_calc, 0, 5000, 0, 0, {1, 2}, {}}, {goal_send, 1, 1000, 7, 0, {}, {2}}, {goal_calc, 0, 300, 0, 2, {}, {}}});
  binary.add_rank({{goal_receive, 0, 1000, 7, 0, {1}, {}}, {goal_calc, 0, 4000, 0, 1, {}, {}}});
  const auto of_text = read_goal(text, "f", 2);
  const auto of_bytes = read_goal_binary(binary.bytes(), "f", 2);
  ASSERT_TRUE(of_text && of_bytes) << (of_bytes ? "" : of_bytes.error().message);
  ASSERT_EQ(of_bytes->size(), 2U);
  for (std::size_t rank = 0; rank < 2; ++rank) {
    const auto &want = (*of_text)[rank], &have = (*of_bytes)[rank];
    ASSERT_EQ(have.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      EXPECT_EQ(have[i].id, want[i].id);
      EXPECT_EQ(have[i].name, want[i].name);
      EXPECT_EQ(have[i].type, want[i].type);
      EXPECT_EQ(have[i].stream, want[i].stream);
      EXPECT_EQ(have[i].duration_ns, want[i].duration_ns);
      EXPECT_EQ(have[i].comm_size, want[i].comm_size);
      EXPECT_EQ(have[i].comm_src, want[i].comm_src);
      EXPECT_EQ(have[i].comm_dst, want[i].comm_dst);
      EXPECT_EQ(have[i].comm_tag, want[i].comm_tag);
      std::vector<std::uint64_t> ours = have[i].after, theirs = want[i].after;
      std::ranges::sort(ours);
      std::ranges::sort(theirs);
      EXPECT_EQ(ours, theirs) << rank << " " << i;
    }
  }
}

TEST(CompiledGoal, RefusesWhatIsNotKnown) {
  const auto error = [](const std::string& bytes) {
    const auto nodes = read_goal_binary(bytes, "f", 2);
    return nodes ? std::string() : nodes.error().message;
  };
  const auto of = [&](const GoalBinary::Operation& operation) {
    GoalBinary binary;
    binary.add_rank({operation});
    return error(binary.bytes());
  };
  constexpr std::uint32_t any = 0xFFFFFFFF;
  EXPECT_EQ(error("num_ranks 2"), "f: it does not begin as compiled GOAL does, with the number 4223");
  EXPECT_EQ(of({4, 0, 1, 0, 0, {}, {}}), "f: rank 0, operation 0: type 4 is none of send (1), recv (2) and calc (3)");
  EXPECT_EQ(of({goal_receive, any, 1, 0, 0, {}, {}}), "f: rank 0, operation 0: it receives from any rank");
  EXPECT_EQ(of({goal_receive, 1, 1, any, 0, {}, {}}), "f: rank 0, operation 0: it receives any tag");
  EXPECT_EQ(of({goal_calc, 0, std::uint64_t{1} << 60U, 0, 0, {}, {}}),
            "f: rank 0, operation 0: 1152921504606846976 ns are past what there may be");
  EXPECT_EQ(of({goal_calc, 0, 1, 0, 0, {1}, {}}), "f: rank 0, operation 0: what waits for it is not there");
  GoalBinary three;
  for (int rank = 0; rank < 3; ++rank) three.add_rank({});
  EXPECT_EQ(error(three.bytes()), "f: it has 3 ranks, and there are 2 to put it on");
}

// Pacing anywhere, it is refused and not read past its end; with a byte more in its operations, as LogGOPSim2 has, it
// is of another version.
TEST(CompiledGoal, RefusesWhatIsCutOffOrLonger) {
  GoalBinary binary;
  binary.add_rank({{goal_calc, 0, 5000, 0, 0, {1}, {}}, {goal_send, 1, 1000, 7, 0, {}, {}}});
  binary.add_rank({{goal_receive, 0, 1000, 7, 0, {}, {}}});
  const std::string whole = binary.bytes();
  ASSERT_TRUE(read_goal_binary(whole, "f", 2));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto nodes = read_goal_binary(std::string_view(whole).substr(0, size), "f", 2);
    ASSERT_FALSE(nodes) << size;
    EXPECT_TRUE(nodes.error().message.starts_with("f: ")) << nodes.error().message;
  }
  std::string longer = whole;
  longer.insert(8 + 6 + 2 * 16 + 8 + 4 + 20, 4, '\0');  // Within the first operation of rank 0.
  longer[8 + 6 + 8] = static_cast<char>(longer[8 + 6 + 8] + 4);
  longer[8 + 6 + 16] = static_cast<char>(longer[8 + 6 + 16] + 4);
  longer[8 + 6 + 24] = static_cast<char>(longer[8 + 6 + 24] + 4);
  const auto nodes = read_goal_binary(longer, "f", 2);
  ASSERT_FALSE(nodes);
  EXPECT_EQ(nodes.error().message, "f: rank 0 is not as long as its 2 operations of 39 bytes and their orders");
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

TEST(Kineto, KernelsWaitForWhatTheyWereSeenToWaitFor) {
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

/// How long two ranks take that both recorded this, of which 4,000 bytes all_reduced take 8 us on a star, and what was
/// guessed at a rank.
std::pair<std::int64_t, std::uint64_t> replay(const std::vector<std::string>& events,
                                              WaitReading reading = WaitReading::least) {
  const auto trace = read_kineto(kineto(events), "step.json", 2, reading);
  EXPECT_TRUE(trace.has_value());
  ChakraOptions options = first_of(2);
  for (const auto& [name, ranks] : trace->groups) options.groups[name] = {Rank(0), Rank(1)};
  Job job;
  EXPECT_TRUE(add_chakra(job, std::vector{trace->nodes, trace->nodes}, options).has_value());
  return {test::run_checked(job, test::star(2)).elapsed.count / us, trace->guessed};
}

TEST(Kineto, AKernelThatFollowedTheOneBeforeWasNotSeenToWait) {
  // The third kernel began when the second ended, 1 us after the all_reduce: with one of 8 us instead of 5 it begins
  // then too, 16 us from the first's begin, and all is over after 20. If it waited, it would begin at 18.
  const std::vector<std::string> events = {kernel(100, 10), all_reduce(110, 5), kernel(110, 6), kernel(116, 4)};
  EXPECT_EQ(replay(events), std::pair(20L, 1UL));
  EXPECT_EQ(replay(events, WaitReading::most), std::pair(22L, 1UL));
}

TEST(Kineto, ACollectiveWaitsForWhatWasComputed) {
  // The second all_reduce began when the first ended, after 30 us; now that takes 8, to 18. But what it adds is there
  // at 20 only, when the second kernel ends: it is over at 28.
  EXPECT_EQ(replay({kernel(100, 10), all_reduce(110, 30), kernel(110, 10), all_reduce(140, 5)}), std::pair(28L, 0UL));
}

/// A call of the host, and what the driver records of one that waits.
std::string host_call(const std::string& name, double begin, double length, int correlation) {
  return R"({"ph": "X", "cat": "cuda_runtime", "name": ")" + name + R"(", "ts": )" + std::to_string(begin) +
         R"(, "dur": )" + std::to_string(length) + R"(, "args": {"correlation": )" + std::to_string(correlation) + "}}";
}
std::string recorded_wait(const std::string& name, int correlation, int stream, int on_stream, int recorded) {
  return R"({"ph": "X", "cat": "cuda_sync", "name": ")" + name + R"(", "ts": 0, "dur": 0, "args": {"correlation": )" +
         std::to_string(correlation) + R"(, "stream": )" + std::to_string(stream) + R"(, "wait_on_stream": )" +
         std::to_string(on_stream) + R"(, "wait_on_cuda_event_record_corr_id": )" + std::to_string(recorded) + "}}";
}
std::string launched(int correlation) { return R"("stream": 7, "correlation": )" + std::to_string(correlation); }
std::string also_launched(int correlation) { return R"(, "correlation": )" + std::to_string(correlation); }

TEST(Kineto, TakesWaitsOfStreamsFromTheDriversRecord) {
  // As above, but stream 20 waits for what was recorded by call 2 on stream 7, behind the first kernel, and the third
  // kernel for the all_reduce: nothing is guessed, whichever reading is asked for.
  const std::vector<std::string> waiting = {kernel(100, 10, launched(1)),
                                            all_reduce(110, 5, also_launched(4)),
                                            kernel(110, 6, launched(6)),
                                            kernel(116, 4, launched(8)),
                                            recorded_wait("Stream Wait Event", 3, 20, 7, 2),
                                            recorded_wait("Stream Wait Event", 7, 7, 20, 5)};
  for (const WaitReading reading : {WaitReading::least, WaitReading::most}) {
    EXPECT_EQ(replay(waiting, reading), std::pair(22L, 0UL));
    // Without the last wait it does not.
    EXPECT_EQ(replay({waiting.begin(), waiting.end() - 1}, reading), std::pair(20L, 0UL));
  }
}

TEST(Kineto, TheHostsWaitsHoldWhatItLaunchesThen) {
  // The host launched the second kernel when it was through with waiting: for the all_reduce, which ended meanwhile.
  // 10 us, 8 us of the all_reduce, then 1 us until it began, and 4 us.
  const std::vector<std::string> events = {kernel(100, 10, launched(1)),
                                           all_reduce(110, 5, also_launched(2)),
                                           kernel(116, 4, launched(4)),
                                           host_call("cudaLaunchKernel", 99, 1, 1),
                                           host_call("cudaLaunchKernel", 100, 1, 2),
                                           host_call("cudaDeviceSynchronize", 102, 13.25, 3),
                                           host_call("cudaLaunchKernel", 115.5, 0.25, 4)};
  EXPECT_EQ(replay(events), std::pair(23L, 0UL));
  // What was launched before the all_reduce cannot wait for it.
  EXPECT_EQ(replay({kernel(100, 10, launched(1)), all_reduce(110, 5, also_launched(4)), kernel(116, 4, launched(3))}),
            std::pair(20L, 0UL));
}

TEST(Kineto, TakesRanksFromWhereTheyAreWhole) {
  const std::string pacing =
      kernel(0, 1,
             R"("stream": 20, "Collective name": "broadcast", "In msg nelems": 4, "dtype": "Long",)"
             R"("Group size": 2, "Process Group Name": "pairs", "Process Group Ranks": "[0, 1, ...]")");
  const auto refused = read_kineto(kineto({pacing}), "f", 4);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().message, "f: kernel 'k' does not say which 2 ranks its group 'pairs' has");
  const std::string head =
      R"({"distributedInfo": {"pg_config": [{"pg_name": "pairs", "ranks": [3, 1]}]}, "traceEvents": [)";
  const auto read = read_kineto(head + pacing + "]}", "f", 4);
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(read->groups.at("pairs [1,3]"), (std::vector<std::size_t>{1, 3}));
  EXPECT_EQ(read->nodes.back().comm_size, 32);
}

/// A kernel of that name on stream 20, with these arguments beside.
std::string named_kernel(const std::string& name, const std::string& more = "\"External id\": 7") {
  return R"({"ph": "X", "cat": "kernel", "name": ")" + name + R"(", "ts": 0, "dur": 9, "args": {"stream": 20, )" +
         more + "}}";
}

TEST(Kineto, KernelsThatCommunicateAreNeverComputation) {
  // Names of NCCL 2.4 to 2.28, RCCL, vLLM's own all_reduce and NVSHMEM: nothing says how much they carry.
  for (const std::string name :
       {"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
        "ncclAllReduceRingLLKernel_sum_f32(ncclColl)", "ncclSymkDevKernel_AllReduce_AGxLL_R_sum_f32",
        "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "rcclGenericKernel<1, false>(ncclDevComm*)",
        "void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>", "nvshmemi_transfer_rma",
        "deep_ep::intranode::dispatch"}) {
    const auto trace = read_kineto(kineto({kernel(0, 5), named_kernel(name)}), "f", 2);
    ASSERT_FALSE(trace.has_value()) << name;
    EXPECT_NE(trace.error().message.find("does not say how much it carries"), std::string::npos) << name;
  }
  const auto compute = read_kineto(kineto({named_kernel("ampere_sgemm_128x64_tn")}), "f", 2);
  ASSERT_TRUE(compute.has_value());
  EXPECT_EQ(compute->nodes.back().type, ChakraType::compute);
}

TEST(Kineto, AKernelTakesWhatItsCallSays) {
  // The call on the CPU has the arguments; the kernel has its number.
  const std::string call =
      R"({"ph": "X", "cat": "cpu_op", "name": "record_param_comms", "ts": 0, "dur": 1, "args": {"External id": 7, )"
      R"("Collective name": "allreduce", "In msg nelems": 1000, "Out msg nelems": 1000, "dtype": "Float", )"
      R"("Group size": 2, "Process Group Name": "0", "Process Group Ranks": "[0, 1]"}})";
  const auto trace = read_kineto(kineto({call, named_kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL")}), "f", 2);
  ASSERT_TRUE(trace.has_value()) << trace.error().message;
  EXPECT_EQ(trace->nodes.back().type, ChakraType::collective);
  EXPECT_EQ(trace->nodes.back().comm_size, 4000);  // 1,000 floats
}

TEST(Kineto, WorkOfADeviceThatIsNotInTheTraceIsNoComputationOfTheProcessor) {
  const auto event = [](const std::string& category, const std::string& name) {
    return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name + R"(", "ts": 1, "dur": 8, "tid": 5})";
  };
  const std::string op = event("cpu_op", "aten::mm"), ask = event("cuda_runtime", "cudaDeviceSynchronize");
  EXPECT_TRUE(read_kineto(kineto({op, ask}), "f", 2));
  for (const std::string& call : {event("cuda_runtime", "cudaLaunchKernel"), event("cuda_runtime", "hipLaunchKernel"),
                                  event("mtia_runtime", "enqueueCommand"), event("Runtime", "cudaLaunchKernel")}) {
    const auto trace = read_kineto(kineto({op, call}), "f", 2);
    ASSERT_FALSE(trace) << call;
    EXPECT_EQ(trace.error().message,
              "f: 1 call gave a GPU or another device something to do, and nothing of what it did is read");
  }
  // PyTorch before 1.12 wrote the kernels' category with a capital.
  const auto old = read_kineto(kineto({event("Runtime", "cudaLaunchKernel"), event("Kernel", "gemm")}), "f", 2);
  ASSERT_TRUE(old) << old.error().message;
  EXPECT_EQ(old->nodes.back().name, "gemm");
  EXPECT_EQ(old->nodes.back().duration_ns, 8000U);
}

TEST(Kineto, ErrorsNameTheKernel) {
  const auto error = [](const std::string& text) {
    const auto trace = read_kineto(text, "f", 2);
    return trace ? std::string() : trace.error().message;
  };
  EXPECT_EQ(error("["), "f: not a trace of the PyTorch profiler: no JSON object");
  EXPECT_EQ(error("{}"), "f: not a trace of the PyTorch profiler: there are no traceEvents");
  EXPECT_EQ(error(kineto({})),
            "f: not a trace of the PyTorch profiler: no kernel of a GPU and no operator of a processor ran");
  EXPECT_EQ(error(kineto({kernel(0, 1, R"("Collective name": "allreduce")")})),
            "f: kernel 'k' does not say how much it carries");
  EXPECT_EQ(error(kineto({kernel(0, 1, R"("Collective name": "gossip", "dtype": "Int", "In msg nelems": 1)")})),
            "f: kernel 'k': there is no collective for 'gossip'");
  EXPECT_EQ(error(kineto({kernel(0, 1, R"("Collective name": "send", "dtype": "Int", "In msg nelems": 1)")})),
            "f: kernel 'k' does not say which rank it is for");
}

}  // namespace
}  // namespace espalier::scenario
