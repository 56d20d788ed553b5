#include "compare/read/nccl_tests.h"

#include <gtest/gtest.h>

#include <fstream>

#include "compare/read/nccl_tests_line.h"
#include "compare/read/read_run.h"

namespace espalier::compare {
namespace {

Measurements read(std::string_view text, const std::string& name = "run.log", const NcclTestsHints& hints = {}) {
  auto result = read_nccl_tests_text(text, name, hints);
  EXPECT_TRUE(result.has_value()) << (result ? "" : result.error().message);
  return result.value_or(Measurements{});
}

constexpr std::string_view two_columns =
    "# nccl-tests version 2.17.6 nccl-headers=22605 nccl-library=22605\n"
    "# Collective test starting: all_reduce_perf\n"
    "# nThread 1 nGpus 1 minBytes 1024 maxBytes 4096 step: 4(factor) warmup iters: 1 iters: 20 agg iters: 1\n"
    "# Using devices\n"
    "#  Rank  0 Group  0 Pid  41 on  hosta device  0 [0000:0f:00] Some GPU\n"
    "#  Rank  1 Group  0 Pid  42 on  hosta device  1 [0000:15:00] Some GPU\n"
    "#\n"
    "#                                                              out-of-place                       in-place\n"
    "#       size         count      type   redop    root     time   algbw   busbw #wrong     time   algbw   busbw "
    "#wrong\n"
    "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)\n"
    "        1024           256     float     sum      -1    12.50    0.08    0.08      0    11.75    0.09    0.09    "
    "N/A\n"
    "        4096          1024     float     sum      -1    14.25    0.29    0.29      2    14.00    0.29    0.29     "
    " 1\n"
    "# Out of bounds values : 3 FAILED\n"
    "# Avg bus bandwidth    : 0.2\n";

TEST(NcclTests, ReadsTheTable) {
  const Measurements runs = read(two_columns);
  EXPECT_EQ(runs.origin, "nccl-tests");
  ASSERT_EQ(runs.rows.size(), 2U);
  const Measurement& first = runs.rows[0];
  EXPECT_EQ(first.collective, "all_reduce");
  EXPECT_EQ(first.ranks, 2U);
  EXPECT_EQ(first.size.count, 1024);
  EXPECT_EQ(first.type, "float");
  EXPECT_EQ(first.root, "");
  EXPECT_DOUBLE_EQ(first.seconds, 12.5e-6);
  EXPECT_DOUBLE_EQ(first.in_place_seconds.value(), 11.75e-6);
  EXPECT_EQ(first.wrong, 0);
  EXPECT_EQ(first.line, 11U);
  EXPECT_EQ(runs.rows[1].wrong, 3);
  ASSERT_EQ(runs.warnings.size(), 1U);
  EXPECT_EQ(runs.warnings[0], "run.log:13: values out of bounds");
}

/// The same table through every launcher and with colours gives the same rows.
TEST(NcclTests, TakesPrefixesAndColoursOff) {
  const Measurements plain = read(two_columns);
  for (const std::string prefix : {"0: ", " 0: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "node-1: ",
                                   "Thu Jan  1 00:00:00 2026[1,0]<stdout>:", "\x1b[32m", "0: [1,0]<stdout>:"}) {
    std::string text;
    std::string_view rest = two_columns;
    while (!rest.empty()) {
      const std::size_t end = rest.find('\n');
      text += prefix + std::string(rest.substr(0, end)) + "\x1b[0m\r\n";
      rest.remove_prefix(end + 1);
    }
    EXPECT_EQ(read(text).rows, plain.rows) << prefix;
  }
}

TEST(NcclTests, OneColumnIsOutOfPlaceUnlessTheHeaderSaysOtherwise) {
  const Measurements out_of_place = read("  8  2  float  sum  10.09  0.00  0.00  0\n");
  ASSERT_EQ(out_of_place.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(out_of_place.rows[0].seconds, 10.09e-6);
  EXPECT_FALSE(out_of_place.rows[0].in_place_seconds.has_value());
  const Measurements in_place = read("#     in-place\n  8  2  float  sum  -1  10.09  0.00  0.00  0\n");
  EXPECT_DOUBLE_EQ(in_place.rows.at(0).in_place_seconds.value(), 10.09e-6);
}

TEST(NcclTests, OldVersionsPrintAnErrorInsteadOfACount) {
  const Measurements runs = read(
      "#       size         count      type   redop     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "  64  16  float  sum  60.33  0.00  0.00  2e-07  61.00  0.00  0.00  1e-07\n");
  EXPECT_FALSE(runs.rows.at(0).wrong.has_value());
}

TEST(NcclTests, KeepsTheRootOfARootedCollective) {
  const Measurements runs = read("  64  16  float  none  3  60.33  0.00  0.00  0\n", "broadcast.txt");
  EXPECT_EQ(runs.rows.at(0).root, "3");
  EXPECT_EQ(runs.rows.at(0).collective, "broadcast");
}

/// NCCL's log between rows, at their end and in their middle.
TEST(NcclTests, PassesTheLogOver) {
  const Measurements runs = read(
      "hosta:41:77 [0] NCCL INFO Channel 00/02 : 0 1\n"
      "  64  16  float  sumhosta:41:77 [0] NCCL INFO AllReduce: opCount 0 count 16\n"
      "hosta:42:78 [1] NCCL INFO AllReduce: opCount 0 count 16\n"
      "  60.33  0.01  0.02  0  61.00  0.01  0.02  0\n"
      "  128  32  float  sum  70.00  0.01  0.02  0 hosta:41:77 [0] NCCL INFO comm 0x7f\n");
  ASSERT_EQ(runs.rows.size(), 2U);
  EXPECT_DOUBLE_EQ(runs.rows[0].seconds, 60.33e-6);
  EXPECT_DOUBLE_EQ(runs.rows[0].in_place_seconds.value(), 61e-6);
  EXPECT_EQ(runs.rows[0].line, 4U);
  EXPECT_DOUBLE_EQ(runs.rows[1].seconds, 70e-6);
}

TEST(NcclTests, TellsRunsInOneFileApart) {
  const Measurements runs = read(
      "+ mpirun -np 2 ./build/all_gather_perf -b 8\n"
      "# nThread 1 nGpus 1\n#   Rank  0 Pid 1 on h device 0\n#   Rank  1 Pid 2 on h device 1\n"
      "  8  2  float  none  10.0  0.0  0.0  0\n"
      "+ mpirun -np 4 ./build/reduce_scatter_perf -b 8\n"
      "# nThread 1 nGpus 1\n#   Rank  0 Pid 1 on h device 0\n#   Rank  3 Pid 2 on h device 1\n"
      "  8  2  float  sum  20.0  0.0  0.0  0\n");
  ASSERT_EQ(runs.rows.size(), 2U);
  EXPECT_EQ(runs.rows[0].collective, "all_gather");
  EXPECT_EQ(runs.rows[0].ranks, 2U);
  EXPECT_EQ(runs.rows[0].run, 0U);
  EXPECT_EQ(runs.rows[1].collective, "reduce_scatter");
  EXPECT_EQ(runs.rows[1].ranks, 4U);
  EXPECT_EQ(runs.rows[1].run, 1U);
}

TEST(NcclTests, TheCollectiveComesFromTheFileThenTheHintThenTheName) {
  const std::string row = "  8  2  float  sum  10.0  0.0  0.0  0\n";
  EXPECT_EQ(read(row, "logs/AllReduce-2n.txt").rows.at(0).collective, "all_reduce");
  EXPECT_EQ(read(row, "allreduce.txt", {"all_gather"}).rows.at(0).collective, "all_gather");
  EXPECT_EQ(read("# Collective test starting: alltoall_perf\n" + row, "x", {"gather"}).rows.at(0).collective,
            "all_to_all");
  EXPECT_EQ(read(row, "out.txt").rows.at(0).collective, "");
}

constexpr std::string_view document = R"({"version": 3, "args": ["./sendrecv_perf", "-b", "8"],
"env": ["SECRET_TOKEN=hunter2"], "nccl_version": 22203,
"config": {"nthreads": 1, "devices": [{"rank": 0, "hostname": "hosta"}, {"rank": 1, "hostname": "hosta"}]},
"results": [
{"size": 4096, "count": 1024, "type": "float", "redop": "sum", "root": "    -1",
 "out_of_place": {"time": 69.5, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": 0.0},
 "in_place": {"time": 70.5, "alg_bw": 0.0, "bus_bw": 0.0, "nwrong": "N/A"}},
{"size": 8192, "type": "float", "root": 1, "out_of_place": null, "in_place": {"time": 80, "nwrong": 2}}
], "out_of_bounds": {"count": 2, "okay": "false"}})";

TEST(NcclTests, ReadsTheJsonForm) {
  const auto runs = read_nccl_tests_json(document, "out.json", {});
  ASSERT_TRUE(runs.has_value()) << runs.error().message;
  ASSERT_EQ(runs->rows.size(), 2U);
  EXPECT_EQ(runs->rows[0].collective, "send_recv");
  EXPECT_EQ(runs->rows[0].ranks, 2U);
  EXPECT_DOUBLE_EQ(runs->rows[0].seconds, 69.5e-6);
  EXPECT_DOUBLE_EQ(runs->rows[0].in_place_seconds.value(), 70.5e-6);
  EXPECT_EQ(runs->rows[0].wrong, 0);
  EXPECT_EQ(runs->rows[0].root, "");
  EXPECT_EQ(runs->rows[0].line, 5U);
  EXPECT_DOUBLE_EQ(runs->rows[1].seconds, 80e-6);
  EXPECT_EQ(runs->rows[1].wrong, 2);
  EXPECT_EQ(runs->rows[1].root, "1");
  EXPECT_EQ(runs->warnings.size(), 1U);
}

TEST(NcclTests, SeesTheFormFromTheContent) {
  const auto json = read_run(document, "a", {});
  ASSERT_TRUE(json.has_value());
  EXPECT_EQ(std::get<Measurements>(*json).rows.size(), 2U);
  const auto text = read_run(two_columns, "b", {});
  ASSERT_TRUE(text.has_value());
  EXPECT_EQ(std::get<Measurements>(*text).rows.size(), 2U);
}

TEST(NcclTests, CleansLines) {
  EXPECT_EQ(nccl_tests::clean_line("\x1b]0;title\x07 8 2").text, " 8 2");
  EXPECT_EQ(nccl_tests::clean_line("NCCL version 2.12.12+cuda11.7").text, "NCCL version 2.12.12+cuda11.7");
  EXPECT_EQ(nccl_tests::clean_line("h:1:2 [0] NCCL WARN x").text, "");
  EXPECT_TRUE(nccl_tests::clean_line("h:1:2 [0] NCCL WARN x").was_interrupted);
}

TEST(NcclTestsText, KeepsThePrintedBusBandwidth) {
  const auto read = read_nccl_tests_text(
      "  1048576  262144  float  sum  -1  123.2  8.51  15.95  0  121.3  8.64  16.21  0\n"
      "        8       2  float  sum  -1  69.12  0.00   0.00  0  72.43  0.00   0.00  0\n",
      "all_reduce.log", {});
  ASSERT_TRUE(read) << read.error().message;
  ASSERT_EQ(read->rows.size(), 2U);
  EXPECT_DOUBLE_EQ(read->rows[0].busbw.value_or(0), 15.95e9);
  EXPECT_FALSE(read->rows[1].busbw.has_value());  // Too little to be printed says nothing.
}

}  // namespace
}  // namespace espalier::compare
