#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <variant>
#include <vector>

#include "compare/read/read_run.h"

namespace espalier::compare {
namespace {

Measurements rows_in(std::string_view text) {
  auto run = read_run(text, "f", {});
  EXPECT_TRUE(run) << run.error().message;
  return run ? std::get<Measurements>(*run) : Measurements{};
}

/// What people paste below each other: each table's rows are its own, whatever the others' numbers look like.
TEST(Tables, OfSeveralBenchmarksInOneFileAreAllRead) {
  const std::string sample =
      "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n"
      "Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n"
      "     0 1299.74 160.00 \n     1 80.00 1302.99 \n"
      "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n     0   1.33  13.10 \n";
  const std::string nccl =
      "# nThread 1 nGpus 2 minBytes 8 maxBytes 1048576\n#   Rank  0 Pid 1 on a device  0 [0x00] GPU\n"
      "#   Rank  1 Pid 1 on a device  1 [0x00] GPU\n# size count type redop time algbw busbw error\n"
      "  8  2  float  sum  20.00  0.00  0.00  0\n 1048576  262144  float  sum  100.0  10.49  10.49  0\n";
  const std::string osu =
      "$ mpirun -np 4 osu_allreduce\n# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)\n1024  7.5\n";
  const std::string imb =
      "# Benchmarking Bcast\n# #processes = 4\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n"
      " 2048 1000 1.0 3.0 2.5\n";
  const std::string perftest =
      "RDMA_Write BW Test\n #bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]\n"
      " 1048576 5000 1100.00 1000.00 0.001\n";
  const std::string nvbandwidth =
      "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n 0       N/A    400.00\n"
      " 1    200.00       N/A\n\nSUM device_to_device_memcpy_read_ce 600.00\n";
  std::vector<std::string> parts = {sample, nccl, osu, imb, perftest, nvbandwidth};
  std::ranges::sort(parts);
  do {
    std::string text;
    for (const std::string& part : parts) text += part;
    const Measurements table = rows_in(text);
    std::vector<double> microseconds;
    for (const Measurement& row : table.rows) microseconds.push_back(std::round(row.seconds * 1e9) / 1e3);
    std::ranges::sort(microseconds);
    // OSU; IMB; nccl-tests' two rows; 160 MB at 160 and 80 GB/s; 512 MiB at 400 and 200 GB/s; 128 MiB at 1,000 MiB/s.
    const std::vector<double> expected = {2.5, 7.5, 20, 100, 1000, 1342.177, 2000, 2684.355, 128000};
    ASSERT_EQ(microseconds, expected) << text;
    ASSERT_TRUE(table.warnings.empty()) << table.warnings.front();
  } while (std::ranges::next_permutation(parts).found);
  const Measurements both = rows_in(sample + nccl);
  EXPECT_EQ(both.origin, "nccl-tests and p2pBandwidthLatencyTest");
  EXPECT_EQ(both.rows.front().members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(both.rows.back().ranks, 2U);
  EXPECT_EQ(both.rows.back().line, 17U);
  // What has no rows beside what has some is said.
  EXPECT_EQ(rows_in(nccl + "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n").warnings.at(0),
            "f:1:1: p2pBandwidthLatencyTest printed no rates of GPU pairs with peer access");
}

}  // namespace
}  // namespace espalier::compare
