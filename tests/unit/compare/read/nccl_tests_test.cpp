#include "compare/read/nccl_tests.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
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
  for (const std::string prefix :
       {"0: ", " 0: ", "[1,0]<stdout>:", "[1,0]<stdout>: ", "node-1: ", "Thu Jan  1 00:00:00 2026[1,0]<stdout>:",
        "\x1b[32m", "0: [1,0]<stdout>:", "[0] ", "[rank0]: ", "2026-01-02T03:04:05.123456Z ",
        "2026-01-02 03:04:05,123 - INFO - ", "(RayWorker pid=71, ip=10.0.0.1) ", "> ", "| ", "worker-0  | ",
        "[pod/nccl-0/worker] ", "I0102 03:04:05.123456 71 main.cc:7] "}) {
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

TEST(NcclTests, LabelsWithinRowsAreTakenOut) {
  // Hydra and mpirun label each part that a process writes.
  for (const std::string label : {"[0]", "[1,0]<stdout>:", "[1,12]<stderr>:", "[prterun-node1-71@1,0]<stdout>:",
                                  "Tue Nov 28 04:05:03 2023[1,0]<stdout>:", "Tue Nov  8 04:05:03 2023<stdout>:"}) {
    const Measurements runs =
        read(label + "#  size  count  type  redop  root  time  algbw  busbw  #wrong\n" + label +
                 "      1048576        262144     float     sum      -1" + label + "    1626.5    0.64    1.24      0" +
                 label + "    2302.3    0.46    0.87      0\n",
             "all_reduce.log");
    ASSERT_EQ(runs.rows.size(), 1U) << label;
    EXPECT_DOUBLE_EQ(runs.rows[0].seconds, 1626.5e-6);
    EXPECT_DOUBLE_EQ(runs.rows[0].in_place_seconds.value(), 2302.3e-6);
    EXPECT_TRUE(runs.warnings.empty());
  }
}

TEST(NcclTests, RowsWithOtherTextInPlaceOfTheirInPlaceTimesAreSaid) {
  const std::string good = "  1024  256  float  sum  -1  12.5  0.08  0.08  0  11.5  0.09  0.09  0\n";
  for (const std::string cut :
       {"  2048  512  float  sum  -1  13.5  0.15  0.15  0  mlx5_0: retry\n",
        "  2048  512  float  sum  -1  13.5  0.15  0.15  0hosta:41:77 [0] NCCL INFO Connected\n"}) {
    const Measurements runs = read(good + cut, "all_reduce.log");
    ASSERT_EQ(runs.rows.size(), 2U);
    EXPECT_DOUBLE_EQ(runs.rows[1].seconds, 13.5e-6);
    EXPECT_FALSE(runs.rows[1].in_place_seconds.has_value());
    ASSERT_EQ(runs.warnings.size(), 1U) << cut;
    EXPECT_EQ(runs.warnings[0], "all_reduce.log:2: the in-place times of 1 row are not in it, as other text follows");
    // Tables without in-place times lack none.
    EXPECT_TRUE(read(cut, "all_reduce.log").warnings.empty());
  }
}

TEST(NcclTests, RowsOfSeveralRunsInOneTableHaveTheirOwnRanks) {
  // A table put together of runs on one machine and on two: 17.5/10 = 2 x 7/8, 9.375/5 = 2 x 15/16.
  const Measurements runs = read(
      "nodes   size      count   type  redop  time  algbw  busbw  error  time  algbw  busbw  error\n"
      "   1   1048576   262144  float    sum  104.9  10.00  17.50  2e-07  104.9  10.00  17.50  2e-07\n"
      "   2   1048576   262144  float    sum  209.7   5.00   9.38  4e-07  209.7   5.00   9.38  4e-07\n",
      "all_reduce.txt");
  ASSERT_EQ(runs.rows.size(), 2U);
  EXPECT_EQ(runs.rows[0].ranks, 8U);
  EXPECT_EQ(runs.rows[1].ranks, 16U);
}

TEST(NcclTests, MoreBusThanAlgorithmBandwidthIsAnAllReduce) {
  // 2(n-1)/n is more than 1 from three ranks on; all other collectives have at most 1.
  const std::string eight = "  1048576  262144  float  sum  -1  104.9  10.00  17.50  0  104.9  10.00  17.50  0\n";
  const std::string small = "  1024  256  float  sum  -1  12.5  0.08  0.14  0  12.5  0.08  0.14  0\n";
  const Measurements runs = read(small + eight, "out.txt");
  EXPECT_EQ(runs.rows.at(0).collective, "all_reduce");
  EXPECT_EQ(runs.rows.at(1).ranks, 8U);
  const std::string shards = "  1048576  32768  float  none  -1  104.9  10.00  8.75  0  104.9  10.00  8.75  0\n";
  EXPECT_EQ(read(shards, "out.txt").rows.at(0).collective, "");
}

TEST(NcclTests, RowsOfOldVersionsHaveNoOperation) {
  // 2019 to 2022: an operation only where there is one, a root only where there is one.
  const Measurements gathers = read(
      "#       size         count    type     time   algbw   busbw  error     time   algbw   busbw  error\n"
      "       65536          2048   float    52.01    1.26    1.10  0e+00    50.09    1.31    1.14  0e+00\n"
      "# Out of bounds values : 0 OK\n",
      "all_gather.txt");
  ASSERT_EQ(gathers.rows.size(), 1U);
  EXPECT_EQ(gathers.rows[0].type, "float");
  EXPECT_DOUBLE_EQ(gathers.rows[0].seconds, 52.01e-6);
  EXPECT_DOUBLE_EQ(gathers.rows[0].in_place_seconds.value(), 50.09e-6);
  EXPECT_FALSE(gathers.rows[0].wrong.has_value());
  const Measurements rooted =
      read("  64  16  float  3  60.33  0.00  0.00  0e+00  61.33  0.00  0.00  0e+00\n", "broadcast.txt");
  EXPECT_EQ(rooted.rows.at(0).root, "3");
  EXPECT_DOUBLE_EQ(rooted.rows[0].in_place_seconds.value(), 61.33e-6);
  const Measurements alone =
      read("   1048576  32768   float   162.1   6.47   5.66  0e+00    162.0   6.47   5.66  0e+00\n");
  EXPECT_DOUBLE_EQ(alone.rows.at(0).seconds, 162.1e-6);
  const Measurements interrupted = read(
      "  64  16  floathosta:41:77 [0] NCCL INFO AllGather: opCount 0\n  60.33  0.01  0.02  0  61.00  0.01  0.02  0\n");
  EXPECT_DOUBLE_EQ(interrupted.rows.at(0).seconds, 60.33e-6);
}

TEST(NcclTests, ColumnsAreThoseOfTheHeading) {
  // -I adds four to each group, -S the time of day behind the row.
  const Measurements runs = read(
      "#  size  count  type  redop  root  time  algbw  busbw  #wrong  i_min  i_max  i_p99  i_cv%  time  algbw  busbw  "
      "#wrong  i_min  i_max  i_p99  i_cv%\n"
      "  1024  256  float  sum  -1  12.5  0.08  0.08  1  11.0  13.0  12.9  4.0  11.5  0.09  0.09  2  11.1  13.1  12.8  "
      "3.0  2026-01-02 03:04:05\n");
  ASSERT_EQ(runs.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(runs.rows[0].in_place_seconds.value(), 11.5e-6);
  EXPECT_EQ(runs.rows[0].wrong, 3);
}

TEST(NcclTests, RowsMayHaveNoCountOfWrongElements) {
  // As wrappers and reports of them cut the table: the heading says so, or a root of -1, which is no time.
  const std::string rows =
      "     1048576        262144     float     sum      -1    45.20   23.20   43.50\n"
      "     2097152        524288     float     sum      -1    90.10   23.28   43.64   89.0   23.56   44.18\n";
  for (const std::string& heading :
       {std::string("# size count type redop root time algbw busbw\n"), std::string(),
        std::string("#    size(B)  count(elems)  type  redop  root  time(us)  algbw(GB/s)  busbw(GB/s)\n")}) {
    const Measurements table = read("# nThread 1 nGpus 8 minBytes 8\n" + heading + rows, "all_reduce.log");
    ASSERT_EQ(table.rows.size(), 2U) << heading;
    EXPECT_DOUBLE_EQ(table.rows[0].seconds, 45.2e-6);
    EXPECT_DOUBLE_EQ(table.rows[0].busbw.value_or(0), 43.5e9);
    EXPECT_FALSE(table.rows[0].wrong);
    EXPECT_DOUBLE_EQ(table.rows[1].seconds, 90.1e-6);
    EXPECT_DOUBLE_EQ(table.rows[1].in_place_seconds.value_or(0), 89e-6);
  }
  // Old versions without an operation, and a heading that was cut: four whole numbers are no root and three values.
  const std::string old = "# size count type time algbw busbw\n";
  EXPECT_DOUBLE_EQ(read(old + "  1024  256  float  34.5  0.03  0.03\n", "all_gather.log").rows.at(0).seconds, 34.5e-6);
  EXPECT_DOUBLE_EQ(read(old + "  1024  256  float  34.5  0.03  0.03  0\n", "all_gather.log").rows.at(0).seconds,
                   34.5e-6);
}

TEST(NcclTests, LinesThatOnlyResembleRowsArePassedOver) {
  const Measurements runs = read("12 34 apples 5\n8 2 of them\n  8  2  float  sum  10.0  0.0  0.0  0\n1 2 sum\n");
  EXPECT_EQ(runs.rows.size(), 1U);
}

TEST(NcclTests, ARowThatIsCutAtTheEndIsLeftOut) {
  const std::string row = "  8  2  float  sum  -1  10.0  0.0  0.0  0\n";
  for (const std::string cut : {"  16  4  float  sum", "  16  4  float  sum  -1  11.0  0.0"}) {
    const Measurements runs = read(row + cut, "a.log");
    EXPECT_EQ(runs.rows.size(), 1U);
    EXPECT_EQ(runs.warnings, (std::vector<std::string>{"a.log: the last row is cut, and left out"}));
    EXPECT_FALSE(read_nccl_tests_text(row + cut + "\n", "a.log", {}).has_value());
  }
}

TEST(NcclTests, RowsOfNoBytesAreLeftOut) {
  const Measurements runs = read(
      "  0  0  float  none  0  0.07  0.00  0.00  0  0.06  0.00  0.00  0\n"
      "  0  0  float  none  0  0.04  0.00  0.00  0  0.04  0.00  0.00  0\n"
      "  32  4  float  none  0  41.64  0.00  0.00  0  16.50  0.00  0.00  0\n",
      "scatter.txt");
  ASSERT_EQ(runs.rows.size(), 1U);
  EXPECT_EQ(runs.rows[0].size.count, 32);
  EXPECT_EQ(runs.warnings, (std::vector<std::string>{"scatter.txt: 2 rows of 0 bytes are left out"}));
}

/// A row of an all_reduce whose printed bandwidths are those of so many ranks: bus is algorithm times 2(n-1)/n.
std::string row_of(int ranks, double algbw) {
  std::array<char, 160> row{};
  std::snprintf(row.data(), row.size(), "  1048576  262144  float  sum  -1  100.0  %.2f  %.2f  0\n", algbw,
                algbw * 2 * (ranks - 1) / ranks);
  return row.data();
}

TEST(NcclTests, BandwidthsTellTheRanks) {
  for (const int ranks : {1, 2, 3, 8, 16, 24, 32, 96}) {
    const Measurements runs = read(row_of(ranks, 49.96) + row_of(ranks, 150.33), "all_reduce.log");
    ASSERT_EQ(runs.rows.size(), 2U);
    EXPECT_TRUE(may_be_of(runs.rows[0], static_cast<std::size_t>(ranks))) << ranks;
    if (ranks > 32) continue;
    EXPECT_EQ(runs.rows[0].ranks, static_cast<std::uint32_t>(ranks));
    EXPECT_FALSE(may_be_of(runs.rows[0], static_cast<std::size_t>(ranks) + 1)) << ranks;
  }
  // Small rates are too coarse for one number; the range is right. 0.64 and 1.24: 1.245/0.635 to 1.235/0.645 is 1.915
  // to 1.961, so 23.5 to 50.8 ranks.
  const Measurements coarse = read("  8  2  float  sum  -1  1626.5  0.64  1.24  0\n", "all_reduce.log");
  EXPECT_EQ(coarse.rows[0].ranks, 0U);
  EXPECT_EQ(describe_ranks(coarse.rows[0]), "24 to 50");
  // A collective whose factor is 1 tells nothing, and neither does one that is not known.
  EXPECT_EQ(describe_ranks(read(row_of(8, 50), "broadcast.log").rows[0]), "");
  EXPECT_EQ(describe_ranks(read("  8  2  float  sum  -1  100.0  50.00  43.75  0\n", "out.log").rows[0]), "");
}

TEST(NcclTests, AListOfDevicesThatWasCutDoesNotCount) {
  const Measurements runs =
      read("#  Rank  0 Group  0 Pid 1 on h device 0\n#  Rank  7 Group  0 Pid 1 on h device 7\n" + row_of(16, 49.96),
           "all_reduce.log");
  EXPECT_EQ(runs.rows[0].ranks, 16U);
  EXPECT_EQ(
      runs.warnings,
      (std::vector<std::string>{"all_reduce.log:3: it lists devices of 8 ranks, and its bandwidths are those of 16"}));
}

TEST(NcclTests, WhatIsNoRunIsNamed) {
  const auto why = [](std::string_view text) {
    const auto run = read_run(text, "f", {});
    return run ? std::string() : run.error().message;
  };
  EXPECT_EQ(why("#    Intel(R) MPI Benchmarks 2021.2, MPI-1 part\n       0         1000         0.05\n"),
            "f:1:1: this is what the Intel MPI Benchmarks printed, not a run");
  EXPECT_EQ(why("<graphs version=\"1\"/>"), "f:1:1: this is which rings and trees NCCL chose, not a run");
  EXPECT_EQ(why("# nThread 1 nGpus 8 minBytes 8\n"), "f:1: no row of nccl-tests is in this text");
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

/// A -J file of one row, of these devices (rank and group).
std::string document_of(const char* program, const char* config, const std::vector<std::array<int, 2>>& devices) {
  std::string text = fmt::format(R"({{"args": ["./{}"], "config": {{{}, "devices": [)", program, config);
  for (const auto& [rank, group] : devices) {
    text += fmt::format(R"({}{{"rank": {}, "group": {}}})", rank == devices.front()[0] ? "" : ", ", rank, group);
  }
  return text + R"(]}, "results": [{"size": 4096, "count": 1024, "type": "float", "out_of_place": {"time": 70}}]})";
}

TEST(NcclTests, DevicesOfTheJsonFormAreThoseOfWholeProcesses) {
  const auto ranks = [](const char* config, const std::vector<std::array<int, 2>>& devices) {
    const auto runs = read_nccl_tests_json(document_of("all_reduce_perf", config, devices), "out.json", {});
    EXPECT_TRUE(runs) << runs.error().message;
    return runs ? runs->rows.at(0).ranks : 0;
  };
  EXPECT_EQ(ranks(R"("nthreads": 1, "ngpus": 8)", {{0, 0}}), 8U);
  EXPECT_EQ(ranks(R"("nthreads": 2, "ngpus": 4)", {{0, 0}, {8, 0}}), 16U);
  EXPECT_EQ(ranks(R"("nthreads": 1, "ngpus": 8)", {{0, 0}, {1, 0}, {2, 0}, {3, 0}, {4, 0}, {5, 0}, {6, 0}, {7, 0}}),
            8U);
  EXPECT_EQ(ranks(R"("nthreads": 1, "ngpus": 1)", {{0, 0}, {1, 0}, {2, 1}, {3, 1}}), 2U);
  EXPECT_EQ(ranks(R"("nthreads": 1, "ngpus": 9223372036854775807)", {{0, 0}}), 4096U);
  const char* far = R"({"args": ["all_reduce_perf"], "config": {"ngpus": 2, "devices": [{"rank": 9223372036854775807},
      {"rank": -9223372036854775808}, {"rank": "x", "group": null}]},
      "results": [{"size": 8, "in_place": {"time": 7}}]})";
  EXPECT_EQ(read_nccl_tests_json(far, "out.json", {})->rows.at(0).ranks, 3U);
}

TEST(NcclTests, GroupsThatRunAtOnceAreOfTheirOwnRanks) {
  std::string text(two_columns);
  text.replace(text.find("Rank  1 Group  0"), 16, "Rank  2 Group  1");
  text.insert(text.find("#\n"),
              "#  Rank  1 Group  0 Pid  43 on  hosta device  2 [0000:15:00] Some GPU\n"
              "#  Rank  3 Group  1 Pid  43 on  hosta device  3 [0000:15:00] Some GPU\n");
  EXPECT_EQ(read(text).rows.at(0).ranks, 2U);
}

TEST(NcclTests, ACutJsonFormKeepsItsRows) {
  const auto runs = read_nccl_tests_json(document.substr(0, document.find(R"({"size": 8192)")), "out.json", {});
  ASSERT_TRUE(runs) << runs.error().message;
  EXPECT_EQ(runs->rows.size(), 1U);
  ASSERT_EQ(runs->warnings.size(), 1U);
  EXPECT_EQ(runs->warnings[0], "out.json:8: the document is cut here: the run may not have ended");
  const auto empty = read_nccl_tests_json(document.substr(0, document.find(R"({"size": 4096)")), "out.json", {});
  EXPECT_FALSE(empty);
}

TEST(NcclTests, TimesOfCallingThreadsAreRefused) {
  std::string text(two_columns);
  for (std::size_t at = 0; (at = text.find("   time", at)) != std::string::npos;) text.replace(at, 7, "cputime");
  EXPECT_EQ(read_nccl_tests_text(text, "run.log", {}).error().message,
            "run.log:11: these are times of the calling threads (cputime), which say when a call returned, not when it "
            "was done");
  std::string json(document);
  json.replace(json.find("\"time\""), 6, "\"cpu_time\"");
  EXPECT_EQ(
      read_nccl_tests_json(json, "out.json", {}).error().message,
      "out.json:6:31: this is the time of the calling thread: it says when a call returned, not when it was done");
}

TEST(NcclTests, AlltoallvHasBlocksByDistance) {
  const std::string text =
      "# Collective test starting: alltoallv_perf\n"
      "#  Rank  0 Group  0 Pid  41 on  hosta device  0 [0000:0f:00] Some GPU\n"
      "#  Rank  1 Group  0 Pid  42 on  hosta device  1 [0000:15:00] Some GPU\n"
      "     1048576        262144     float    none      -1   100.00   10.49    5.24      0   100.00   10.49    5.24   "
      " N/A\n";
  const Measurements assumed = read(text);
  EXPECT_EQ(assumed.rows.at(0).collective, "all_to_all");
  EXPECT_EQ(assumed.shares, (std::vector<std::int64_t>{0, 1, 1, 0}));
  EXPECT_EQ(assumed.warnings.size(), 1U);
  const Measurements told = read(text, "run.log", {"", "spread:0"});
  EXPECT_TRUE(told.shares.empty());  // Equal blocks.
  EXPECT_TRUE(told.warnings.empty());
  // Beside another program's rows, those of alltoallv are left out.
  const Measurements beside = read(std::string(two_columns) + text);
  EXPECT_EQ(beside.rows.size(), 2U);
  EXPECT_EQ(beside.rows.at(0).collective, "all_reduce");
  EXPECT_TRUE(beside.shares.empty());
  EXPECT_EQ(read_nccl_tests_text("# Collective test starting: alltoallv_perf\n 8 2 float none -1 9 1 1 0\n", "a", {})
                .error()
                .message,
            "a:2: rows of alltoallv_perf, and not of how many ranks");
}

TEST(NcclTests, AlltoallvOfTheJsonFormSaysWhatItWasTold) {
  std::string text = document_of("alltoallv_perf", R"("nthreads": 1, "ngpus": 3)", {{0, 0}});
  const auto usual = read_nccl_tests_json(text, "a", {});
  ASSERT_TRUE(usual) << usual.error().message;
  EXPECT_EQ(usual->shares, (std::vector<std::int64_t>{0, 1, 2, 2, 0, 1, 1, 2, 0}));
  EXPECT_TRUE(usual->warnings.empty());
  text.insert(1, R"("env": ["NCCL_TESTS_ALLTOALLV_SPREAD=0.5"], )");
  EXPECT_EQ(read_nccl_tests_json(text, "a", {})->shares, (std::vector<std::int64_t>{1, 2, 3, 3, 1, 2, 2, 3, 1}));
  text.replace(text.find("SPREAD=0.5"), 10, "MATRIX_FILE=/m.txt");
  EXPECT_EQ(read_nccl_tests_json(text, "a", {}).error().message,
            "a:1:1: alltoallv_perf sent the blocks of /m.txt, which are not in it");
  EXPECT_EQ(read_nccl_tests_json(text, "a", {"", "spread:1"})->shares, usual->shares);
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
