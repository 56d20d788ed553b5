#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "compare/read/read_run.h"

namespace espalier::compare {
namespace {

Measurements rows_of(std::string_view text) {
  auto run = read_run(text, "f", {});
  EXPECT_TRUE(run) << run.error().message;
  if (!run) return {};
  EXPECT_TRUE(std::holds_alternative<Measurements>(*run));
  return std::get<Measurements>(*run);
}

std::string why(std::string_view text) {
  const auto run = read_run(text, "f", {});
  return run ? std::string("it was read") : run.error().message + " | " + run.error().help;
}

std::string record(int rank, std::string_view collective, int number, std::int64_t bytes, int microseconds,
                   double algbw) {
  return R"({"header":{"id":"0x14","rank":)" + std::to_string(rank) +
         R"(,"n_ranks":4,"nnodes":1},"metadata":{"pid":7},)" + R"("coll_perf":{"coll":")" + std::string(collective) +
         R"(","coll_sn":)" + std::to_string(number) + R"(,"coll_msg_size_bytes":)" + std::to_string(bytes) +
         R"(,"coll_exec_time_us":)" + std::to_string(microseconds) + R"(,"coll_algobw_gbs":)" + std::to_string(algbw) +
         "}}\n";
}

TEST(OtherReaders, InspectorRowsAreMediansOfCallsByTheRankThatCameLast) {
  // Call 1: rank 1 came last and took 100 us. Calls 2 and 3 took 110 and 300 us; the median of the three is 110.
  const Measurements table =
      rows_of(record(0, "AllReduce", 1, 1 << 20, 400, 2.6) + record(1, "AllReduce", 1, 1 << 20, 100, 10.4) +
              record(0, "AllReduce", 2, 1 << 20, 110, 9.5) + record(0, "AllReduce", 3, 1 << 20, 300, 3.5));
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].collective, "all_reduce");
  EXPECT_EQ(table.rows[0].ranks, 4U);
  EXPECT_EQ(table.rows[0].size.count, 1 << 20);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 110e-6);
}

TEST(OtherReaders, InspectorSizesOfShardsAreOfAllRanks) {
  // 64 KiB of each of four ranks in 100 us are 2.62 GB/s of the whole; by its bandwidth a record of the whole has
  // 0.655.
  EXPECT_EQ(rows_of(record(0, "AllGather", 1, 65536, 100, 2.62144)).rows[0].size.count, 4 * 65536);
  EXPECT_EQ(rows_of(record(0, "ReduceScatter", 1, 65536, 100, 0.65536)).rows[0].size.count, 65536);
}

TEST(OtherReaders, InspectorMetricsGiveSizesThatAreRanges) {
  const std::string labels =
      R"({version="v5.1",gpu="GPU0",nranks="4",collective="AllReduce",message_size="4-5GB",algo_proto="Ring_ll"} )";
  const Measurements table = rows_of("nccl_bus_bandwidth_gbs" + labels + "678.263\n" +
                                     "nccl_collective_exec_time_microseconds" + labels + "9498.47\n");
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_EQ(table.rows[0].size.count, std::int64_t{1} << 32);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 9498.47e-6);
  EXPECT_EQ(table.rows[0].ranks, 4U);
}

constexpr const char* recorded = R"({"version": "2.5",
 "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}, "7": {"ranks": [0, 1, 2, 3]}},
 "entries": [
  {"record_id": 0, "process_group": ["0", "default_pg"], "profiling_name": "nccl:all_reduce", "input_sizes": [[3, 4]],
   "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"], "duration_ms": 0.25},
  {"record_id": 1, "process_group": ["7", "x"], "profiling_name": "nccl:_all_gather_base", "input_sizes": [[256]],
   "input_dtypes": ["BFloat16"], "output_sizes": [[1024]], "output_dtypes": ["BFloat16"], "duration_ms": 0.5},
  {"record_id": 2, "process_group": ["7", "x"], "profiling_name": "nccl:recv 3<-1", "input_sizes": [[1]],
   "input_dtypes": ["Float"], "output_sizes": [[1]], "output_dtypes": ["Float"], "duration_ms": 0.5},
  {"record_id": 3, "process_group": ["0", "x"], "profiling_name": "nccl:all_reduce", "input_sizes": [[3, 4]],
   "input_dtypes": ["Float"], "output_sizes": [[3, 4]], "output_dtypes": ["Float"], "duration_ms": null}]})";

TEST(OtherReaders, FlightRecorderHasSizesAndGroups) {
  const Measurements table = rows_of(recorded);
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].collective, "all_gather");
  EXPECT_EQ(table.rows[0].ranks, 4U);
  EXPECT_EQ(table.rows[0].size.count, 2048);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 0.5e-3);
  EXPECT_EQ(table.rows[1].collective, "all_reduce");
  EXPECT_EQ(table.rows[1].ranks, 2U);
  EXPECT_EQ(table.rows[1].size.count, 48);
}

TEST(OtherReaders, FlightRecorderWithoutTimesAndPicklesSayWhatToDo) {
  std::string untimed = recorded;
  for (std::size_t at = 0; (at = untimed.find("\"duration_ms\"", at)) != std::string::npos;)
    untimed.replace(at, 13, "\"x\"");
  EXPECT_NE(why(untimed).find("TORCH_NCCL_ENABLE_TIMING=1"), std::string::npos) << why(untimed);
  EXPECT_NE(why("\x80\x04\x95\x10").find("python3 -c 'import json,pickle"), std::string::npos);
}

TEST(OtherReaders, RecordsOfTheInspectorMayShareAHeader) {
  // From version 4.3 on a marker has it, and the records behind it have none. One that is being written is left out.
  const Measurements table = rows_of(
      R"({"header": {"id": "0x7f", "rank": 2, "n_ranks": 8, "nnodes": 1}, "dump_stats": {"coll_records": 2}})"
      "\n"
      R"({"coll_perf": {"coll": "AllGather", "coll_sn": 1, "coll_msg_size_bytes": 1024, "coll_exec_time_us": 50}})"
      "\n"
      R"({"coll_perf": {"coll": "AllReduce", "coll_sn": 2, "coll_msg_size_bytes": 2048, "coll_exec_time_us": 60}})"
      "\n"
      R"({"coll_perf": {"coll": "AllRed)");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].collective, "all_gather");
  EXPECT_EQ(table.rows[0].ranks, 8U);
  EXPECT_EQ(table.rows[0].size.count, 8 * 1024);
  EXPECT_EQ(table.rows[1].ranks, 8U);
  EXPECT_EQ(table.warnings.at(0), "f: the last record is cut, and left out");
  const Measurements flat = rows_of(
      R"({"id":"abc123","rank":0,"n_ranks":4,"coll_perf":{"coll":"AllReduce","coll_sn":1,"coll_msg_size_bytes":1024,
"coll_exec_time_us":61.5}})");
  EXPECT_EQ(flat.rows.at(0).ranks, 4U);
}

TEST(OtherReaders, OsuHasCollectivesAndPairs) {
  const Measurements table = rows_of(
      "# OSU MPI-CUDA Allreduce Latency Test v7.0\n"
      "# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations\n"
      "[a100-01:mpi_rank_0][dreg_register] [Performance Impact Warning]: Entries are being evicted\n"
      "16777216             8630.58           8619.50           8642.46         10\n"
      "# OSU MPI Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1048576  10000.00\n"
      "# OSU MPI Bi-Directional Bandwidth Test v5.9\n# Size      Bandwidth (MB/s)\n1048576  20000.00\n");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].collective, "all_reduce");
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 8630.58e-6);
  EXPECT_EQ(table.rows[0].line, 4U);
  EXPECT_EQ(table.rows[1].collective, "broadcast");
  EXPECT_EQ(table.rows[1].ranks, 2U);
  EXPECT_EQ(table.rows[1].size.count, 64 << 20);  // 64 messages are under way at once.
  EXPECT_DOUBLE_EQ(table.rows[1].seconds, (64 << 20) / 1e10);
  EXPECT_EQ(table.rows[2].collective, "send_recv");
  EXPECT_DOUBLE_EQ(table.rows[2].seconds, (64 << 20) / 1e10);  // Each direction has half of 20 GB/s.
}

TEST(OtherReaders, SmallMessagesOfABandwidthTestAreNoTimesOfOne) {
  // One byte at 0.9 MB/s is a message a microsecond, not a transfer that takes one.
  const Measurements osu = rows_of(
      "    # OSU MPI-CUDA Bandwidth Test v7.5\n    # Datatype: MPI_CHAR.\n    # Size      Bandwidth (MB/s)     "
      "Validation\n"
      "    1        0.90   Pass\n    1024   926.30   Pass\n    65536   8000.00   Pass\n");
  ASSERT_EQ(osu.rows.size(), 1U);
  EXPECT_EQ(osu.rows[0].size.count, 4 << 20);
  EXPECT_EQ(osu.warnings.at(0), "f: 2 rows of less than 64 KiB left out, whose bandwidth is that of starting messages");
  const std::string perftest =
      " TX depth        : 32\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      " 2          5000             4.26               3.88           2.036842\n";
  EXPECT_EQ(why(perftest),
            "f:1:1: perftest printed no row that is read | measure messages of 64 KiB and more: ib_write_bw -a or -s "
            "1048576");
  const Measurements stream =
      rows_of(perftest + " 65536      5000             1000.00            1000.00        0.016\n");
  EXPECT_EQ(stream.rows.at(0).size.count, 2 << 20);
  EXPECT_DOUBLE_EQ(stream.rows.at(0).seconds, 2e-3);
}

/// What version 7.4 prints above its tables.
TEST(OtherReaders, OsuTitlesAreWhatTheySay) {
  const auto of = [](const std::string& title, const std::string& columns = "# Size  Avg Latency(us)\n65536 10.00\n") {
    const auto run =
        read_run("srun -N2 --ntasks-per-node=4 osu_test\n# OSU " + title + " Test v7.4\n" + columns, "f", {});
    if (!run) return std::string("none");
    const Measurement& row = std::get<Measurements>(*run).rows.at(0);
    return row.collective + " " + std::to_string(row.ranks) + " " + std::to_string(row.size.count >> 16);
  };
  EXPECT_EQ(of("MPI All-to-All Personalized Exchange Latency"), "all_to_all 8 8");
  EXPECT_EQ(of("MPI-CUDA All-to-Allv Personalized Exchange Latency"), "all_to_all 8 8");
  EXPECT_EQ(of("MPI All-to-All Personalized Exchange Persistent Latency"), "all_to_all 8 8");
  EXPECT_EQ(of("MPI Allgatherv Latency"), "all_gather 8 8");
  EXPECT_EQ(of("MPI Allreduce Persistent Latency"), "all_reduce 8 1");
  EXPECT_EQ(of("NCCL Allreduce Latency"), "all_reduce 8 1");
  EXPECT_EQ(of("MPI Reduce_scatter_block Latency"), "reduce_scatter 8 1");
  EXPECT_EQ(of("MPI Scatterv Latency"), "scatter 8 8");
  EXPECT_EQ(of("MPI Latency"), "broadcast 2 1");
  EXPECT_EQ(of("MPI Latency Persistent"), "broadcast 2 1");
  EXPECT_EQ(of("MPI_Put Latency"), "broadcast 2 1");
  EXPECT_EQ(of("MPI_Put Bi-directional Bandwidth"), "send_recv 2 64");
  const std::string overlapped =
      "# Overall = Coll. Init + Compute + MPI_Test + MPI_Wait\n"
      "# Size           Overall(us)       Compute(us)    Pure Comm.(us)        Overlap(%)\n65536 30.00 15.00 10.00 "
      "20\n";
  EXPECT_EQ(of("MPI Non-blocking Allreduce Latency", overlapped), "all_reduce 8 1");
  EXPECT_EQ(of("MPI Non-blocking All-to-All Personalized ExchangeLatency", overlapped), "all_to_all 8 8");
  EXPECT_EQ(of("MPI Non-Blocking Broadcast Latency", overlapped), "broadcast 8 1");
  for (const char* other : {"MPI Neighborhood Allgather Latency", "MPI Neighborhood Alltoall Latency",
                            "MPI Multi Latency", "MPI Multi-threaded Latency", "MPI Multiple Bandwidth / Message Rate",
                            "MPI_Accumulate latency", "MPI_Fetch_and_op latency", "MPI_Get Multi Latency",
                            "MPI Barrier Latency", "OpenSHMEM Reduce Latency", "UPC Exchange Latency"}) {
    EXPECT_EQ(of(other), "none") << other;
  }
  EXPECT_EQ(
      why("# OSU MPI Neighborhood Allgather Latency Test v7.4\n# Size  Avg Latency(us)\n8 10.0\n"),
      "f:1:1: OSU MPI Neighborhood Allgather Latency Test v7.4: neighbours are of a graph, which the text does not "
      "have | ");
}

TEST(OtherReaders, OsuTimesOfOverlappedCallsAreTheirOwn) {
  const Measurements table = rows_of(
      "# OSU MPI Non-blocking Allreduce Latency Test v7.4\n"
      "# Size  Overall(us)  Compute(us)  Coll. Init(us)  MPI_Test(us)  MPI_Wait(us)  Pure Comm.(us)  Overlap(%)\n"
      "65536 30.00 15.00 1.00 0.00 9.00 10.00 20\n");
  EXPECT_DOUBLE_EQ(table.rows.at(0).seconds, 10e-6);
}

TEST(OtherReaders, OsuValuesThatCameOutWrongAreSaid) {
  const Measurements table = rows_of(
      "# OSU MPI Allreduce Latency Test v7.4\n# Size  Avg Latency(us)  Validation\n8 10.0 Pass\n16 10.0 Fail\n");
  EXPECT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.warnings, std::vector<std::string>{"f:4: wrong values"});
}

TEST(OtherReaders, ImbOfOverlappedCallsAndOfOthers) {
  const Measurements table = rows_of(
      "#    Intel(R) MPI Benchmarks 2021.7, MPI-NBC part\n# Benchmarking Iallreduce\n# #processes = 4\n"
      "       #bytes #repetitions t_ovrl[usec] t_pure[usec]  t_CPU[usec]   overlap[%]\n"
      "         1024         1000        25.00        10.00        12.00        20.00\n"
      "# Benchmarking Iallgather_pure\n# #processes = 4\n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "         1024         1000         9.00        11.00        10.00\n"
      "# Benchmarking I_pure\n#bytes #repetitions t_avg[usec]\n8 1 1.0\n"
      "# Benchmarking Exchange\n# #processes = 4\n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]   Mbytes/sec\n"
      "         1024         1000         9.00        11.00        10.00       409.60\n");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].collective, "all_reduce");
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 10e-6);
  EXPECT_EQ(table.rows[1].collective, "all_gather");
  EXPECT_EQ(table.rows[1].size.count, 4 * 1024);
  EXPECT_EQ(table.warnings, (std::vector<std::string>{"f:12: I_pure is not read", "f:16: Exchange is not read"}));
}

TEST(OtherReaders, OsuSizesOfOneRankNeedTheNumberOfRanks) {
  const std::string rows = "# OSU MPI Allgather Latency Test v5.9\n# Size  Avg Latency(us)\n1024  10.0\n";
  EXPECT_NE(why(rows).find("f:1:1: sizes of all_gather are of one rank"), std::string::npos) << why(rows);
  const Measurements table = rows_of("$ mpirun -np 16 ./osu_allgather\n" + rows);
  EXPECT_EQ(table.rows.at(0).size.count, 16 * 1024);
  EXPECT_EQ(table.rows.at(0).ranks, 16U);
}

TEST(OtherReaders, ImbHasItsRanks) {
  const Measurements table = rows_of(
      "#    Intel(R) MPI Benchmarks 2021.2, MPI-1 part\n# Benchmarking PingPong\n# #processes = 2\n"
      "# ( 6 additional processes waiting in MPI_Barrier)\n       #bytes #repetitions      t[usec]   Mbytes/sec\n"
      "            0         1000         0.61         0.00\n      1048576           40       100.00     10485.76\n"
      "# Benchmarking Allgather\n# #processes = 8\n"
      "       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "         1024         1000         9.00        11.00        10.00\n");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].collective, "broadcast");
  EXPECT_EQ(table.rows[0].ranks, 2U);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 100e-6);
  EXPECT_EQ(table.rows[1].collective, "all_gather");
  EXPECT_EQ(table.rows[1].ranks, 8U);
  EXPECT_EQ(table.rows[1].size.count, 8 * 1024);
  EXPECT_DOUBLE_EQ(table.rows[1].seconds, 10e-6);
}

TEST(OtherReaders, ImbIsReadAsMailAndPagesTurnItsLines) {
  // The last column on a line of its own; a title without its '#'.
  const Measurements table = rows_of(
      "# Benchmarking Sendrecv\n# #processes = 2\n       #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "Mbytes/sec\n            0         1000         4.06         4.06         4.06\n0.00\n"
      "            1         1000         4.21         4.23         4.22\n0.45\n"
      "   Benchmarking Bcast \n          #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "               8         1000         0.90        41.66        22.70\n");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].collective, "send_recv");
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 4.22e-6);
  EXPECT_EQ(table.rows[1].collective, "broadcast");
  EXPECT_DOUBLE_EQ(table.rows[1].seconds, 22.7e-6);
}

TEST(OtherReaders, PerftestAsJsonHasOneSize) {
  const auto document = [](const std::string& test, const std::string& results) {
    return "{\n\"test_info\": {\n\"test\": \"" + test + "\",\n\"TX_depth\": 32,\n\"Mtu\": 4096\n},\n\"results\": {\n" +
           results + "}\n}\n";
  };
  const std::string gigabits =
      "\"MsgSize\": 1048576,\n\"n_iterations\": 5000,\n\"BW_peak\": 397.00,\n"
      "\"BW_average\": 396.50,\n\"MsgRate\": 0.047266\n";
  const Measurements one = rows_of(document("RDMA_Write_BW_Test", gigabits));
  ASSERT_EQ(one.rows.size(), 1U);
  EXPECT_EQ(one.rows[0].collective, "broadcast");
  EXPECT_EQ(one.rows[0].size.count, 32 << 20);
  EXPECT_DOUBLE_EQ(one.rows[0].seconds, (32 << 20) / (396.5e9 / 8));
  const std::string mebibytes = "\"MsgSize\": 1048576,\n\"BW_average\": 47266.00,\n\"MsgRate\": 0.047266\n";
  const Measurements both = rows_of(document("Send_Bidirectional_BW_Test", mebibytes));
  EXPECT_EQ(both.rows.at(0).collective, "send_recv");
  EXPECT_DOUBLE_EQ(both.rows.at(0).seconds, 2 * 32 / 47266.0);
  const Measurements latency = rows_of(document(
      "RDMA_Write_Latency_Test", "\"MsgSize\": 8,\n\"t_min\": 1.10,\n\"t_typical\": 1.25,\n\"t_avg\": 1.30\n"));
  EXPECT_DOUBLE_EQ(latency.rows.at(0).seconds, 1.25e-6);
  EXPECT_EQ(
      why(document("RDMA_Write_BW_Test", "\"MsgSize\": 8,\n\"BW_average\": 4.00,\n\"MsgRate\": 0.5\n")),
      "f:1:1: perftest wrote no result that is read | measure messages of 64 KiB and more: ib_write_bw -s 1048576");
  EXPECT_EQ(why(document("X", "sl: 1,")).substr(0, 6), "f:8:1:");
}

TEST(OtherReaders, PerftestByServiceLevelHasAColumnMore) {
  const Measurements table = rows_of(
      " #bytes    #sl      #iterations    BW peak[MiB/sec]    BW average[MiB/sec]   MsgRate[Mpps]\n"
      " 65536    0           5000           2000.00            1000.00                  0.016000\n");
  EXPECT_DOUBLE_EQ(table.rows.at(0).seconds, 128 * 65536 / (1000.0 * (1 << 20)));
}

TEST(OtherReaders, ColumnsOfPerftestAreThoseOfItsHeading) {
  // Huawei's hccn_tool has no peak; some print the typical time before the largest.
  const Measurements table = rows_of(
      "RDMA_Read BW Test\n#bytes       #iterations       BW average[MB/sec]      MsgRate[Mpps]\n"
      "1048576      93205             1000.00                0.001000\n"
      "#bytes #iterations    t_min[usec]    t_typical[usec]    t_avg[usec]\n"
      "2       1000          0.81           0.85               0.93\n");
  EXPECT_DOUBLE_EQ(table.rows.at(0).seconds, 128e-3);
  EXPECT_DOUBLE_EQ(table.rows.at(1).seconds, 0.85e-6);
}

TEST(OtherReaders, PerftestCountsMebibytesAndGigabits) {
  const Measurements table = rows_of(
      "                    RDMA_Write BW Test\n Dual-port       : OFF\t\tDevice         : mlx5_0\n"
      " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
      " 1048576    5000             1100.00            1000.00\t\t   0.001000\n"
      "                    RDMA_Write Bidirectional BW Test\n"
      " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
      " 1000000    5000             0.00               160.00\t\t   0.001000\n"
      "                    RDMA_Write Latency Test\n"
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]    t_stdev[usec]\n"
      " 2       1000          1.02           5.00         1.10                1.12             0.1\n");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 128e-3);  // 128 messages of 1 MiB at 1,000 MiB/s
  EXPECT_EQ(table.rows[0].size.count, 128 << 20);
  EXPECT_EQ(table.rows[0].collective, "broadcast");
  EXPECT_DOUBLE_EQ(table.rows[1].seconds, 128e-4);  // 128 of 2 MB at 20 GB/s
  EXPECT_EQ(table.rows[1].collective, "send_recv");
  EXPECT_DOUBLE_EQ(table.rows[2].seconds, 1.1e-6);
}

TEST(OtherReaders, NvbandwidthHasARowForEachPair) {
  const Measurements table = rows_of(
      "nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\nmemcpy CE CPU(row) -> GPU(column) bandwidth "
      "(GB/s)\n"
      "           0         1\n 0     55.11     55.12\n\nSUM host_to_device_memcpy_ce 110.23\n\n"
      "Running device_to_device_memcpy_read_ce.\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n"
      "           0         1\n 0       N/A    400.00\n 1    200.00       N/A\n\n"
      "SUM device_to_device_memcpy_read_ce 600.00\n\n"
      "Running device_to_device_memcpy_write_ce.\nmemcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)\n"
      "           0         1\n 0       N/A    100.00\n 1      N/A       N/A\n\n"
      "Running device_to_device_latency_sm.\nDevice to Device Latency SM GPU(row) <-> GPU(column) (ns)\n"
      "           0         1\n 0       N/A    800.00\n 1    810.00       N/A\n");
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, (512 << 20) / 400e9);
  EXPECT_EQ(table.rows[1].members, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(table.rows[2].members, (std::vector<std::uint32_t>{1, 0}));  // The column sends.
  EXPECT_DOUBLE_EQ(table.rows[2].seconds, (512 << 20) / 100e9);
}

TEST(OtherReaders, NvbandwidthIsReadAsJson) {
  const Measurements table = rows_of(
      R"json({"nvbandwidth": {"CUDA Runtime Version": 13000, "testcases": [
 {"name": "device_to_device_memcpy_write_ce", "status": "Passed",
  "bandwidth_description": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
  "bandwidth_matrix": [["N/A", "100"],
   ["200", "N/A"]], "sum": 300},
 {"bandwidth_matrix": [["N/A", "90"], ["90", "N/A"]], "name": "device_to_device_bidirectional_memcpy_read_ce",
  "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) bandwidth (GB/s)"},
 {"name": "host_to_device_memcpy_ce", "bandwidth_matrix": [["55", "55"]],
  "bandwidth_description": "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"}]}})json");
  ASSERT_EQ(table.rows.size(), 2U);
  EXPECT_EQ(table.rows[0].members, (std::vector<std::uint32_t>{1, 0}));  // The column sends.
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, (512 << 20) / 100e9);
  EXPECT_EQ(table.rows[1].members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(table.rows[1].line, 5U);
  EXPECT_EQ(why(R"({"nvbandwidth": {"error": "No devices found", "testcases": []}})"),
            "f:1:1: nvbandwidth printed no matrix of GPU pairs by copy engines | run nvbandwidth -t "
            "device_to_device_memcpy_read_ce");
  EXPECT_EQ(why(R"({"nvbandwidth": {"testcases": [{"name": 3}]}})"),
            "f:1:41: a string is expected here, not a number | ");
}

TEST(OtherReaders, TheCudaSampleHasARowForEachPair) {
  const std::string text =
      "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nDevice: 0, Some GPU, pciBusID: 7, pciDeviceID: 0\n"
      "P2P Connectivity Matrix\n     D\\D     0     1\n     0\t     1     1\n     1\t     1     1\n"
      "Unidirectional P2P=Disabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 909.49  21.73 \n"
      "     1  22.61 921.83 \nUnidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0      1 \n"
      "     0 1299.74 250.00 \n     1 200.00 1302.99 \n"
      "Unidirectional P2P=Enabled Bandwidth (P2P Reads) Matrix (GB/s)\n   D\\D     0      1 \n"
      "     0 1299.74 100.00 \n     1 N/A 1302.99 \n"
      "Bidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n   D\\D     0      1 \n     0 918.22  29.73 \n"
      "P2P=Enabled Latency (P2P Writes) Matrix (us)\n   GPU     0      1 \n     0   1.33  13.10 \n";
  const Measurements table = rows_of(text);
  ASSERT_EQ(table.rows.size(), 3U);
  EXPECT_EQ(table.rows[0].members, (std::vector<std::uint32_t>{0, 1}));
  EXPECT_EQ(table.rows[0].size.count, 160'000'000);
  EXPECT_DOUBLE_EQ(table.rows[0].seconds, 160e6 / 250e9);
  EXPECT_EQ(table.rows[1].members, (std::vector<std::uint32_t>{1, 0}));
  EXPECT_EQ(table.rows[2].members, (std::vector<std::uint32_t>{1, 0}));  // A read: the column sends.
  EXPECT_EQ(
      why("Unidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix (GB/s)\n   D\\D     0 \n     0 1511.12 \n"),
      "f:1:1: p2pBandwidthLatencyTest printed no rates of GPU pairs with peer access | its matrix 'Unidirectional "
      "P2P=Enabled Bandwidth' is read");
  EXPECT_EQ(why("Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n D\\D 0 1\n 0 10.0\n"),
            "f:3:1: the row has 1 rates, its matrix 2 columns | ");
}

TEST(OtherReaders, WhatLogsPutBeforeEachLineIsPassedOver) {
  const std::vector<std::string> texts = {
      "\n# OSU MPI Allreduce Latency Test v7.3\n# Size       Avg Latency(us)\n8            1.50\n",
      "# Benchmarking Allreduce\n# #processes = 8\n #bytes #repetitions  t_min[usec]  t_max[usec]  t_avg[usec]\n"
      "            8         1000         1.00         2.00         1.50\n",
      "                    RDMA_Write BW Test\n #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]\n"
      " 65536      5000             392.11             391.98\n",
      " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]\n 2       1000          0.91           2.30  "
      "  "
      "     0.94\n",
      "nvbandwidth Version: v0.8\nmemcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n           0         1\n 0       "
      "N/A    391.58\n 1    391.60       N/A\n\n",
      "[P2P (Peer-to-Peer) GPU Bandwidth Latency Test]\nUnidirectional P2P=Enabled Bandwidth (P2P Writes) Matrix "
      "(GB/s)\n   D\\D     0      1\n     0 744.36  48.34\n     1  48.30 745.78\n"};
  for (const std::string& text : texts) {
    const auto plain = rows_of(text).rows;
    ASSERT_FALSE(plain.empty()) << text;
    for (const std::string label : {"2025-03-04T05:06:0# ", "[node-1:1#] ", "pod-x-1 app | ", "> ",
                                    "node01: ", "[1,#]<stdout>:", "Mar  4 05:06:0# node1 run[77]: "}) {
      std::string labelled;
      int number = 0;
      for (std::size_t at = 0; at < text.size();) {
        const std::size_t end = std::min(text.find('\n', at), text.size());
        std::string own = label;  // Times and ranks are not the same on each line.
        if (const auto digit = own.find('#'); digit != std::string::npos)
          own[digit] = static_cast<char>('0' + number++ % 10);
        labelled += own + text.substr(at, end - at) + "\n";
        at = end + 1;
      }
      EXPECT_EQ(rows_of(labelled).rows, plain) << labelled;
    }
  }
}

TEST(OtherReaders, BadRowsAreNamed) {
  EXPECT_EQ(why("# OSU MPI Broadcast Latency Test v5.9\n# Size  Avg Latency(us)\n1024  fast\n"),
            "f:3:1: a row is a size and a time or a rate | ");
  EXPECT_EQ(
      why("# OSU MPI Multiple Bandwidth Test v5.9\n"),
      "f:1:1: OSU MPI Multiple Bandwidth Test v5.9: several pairs run at once; osu_bw and osu_latency measure one | ");
  EXPECT_EQ(why("# Benchmarking Bcast\n#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n 4 1000 1.0 2.0\n"),
            "f:3:1: the row ends before its time | ");
  const std::string columns = "#bytes #repetitions t_min[usec] t_max[usec] t_avg[usec]\n 4096 1000 1.0 2.0 1.5\n";
  EXPECT_EQ(why("Sendrecv:\n" + columns),
            "f:1:1: the Intel MPI Benchmarks printed no row that is read | no line '# Benchmarking NAME' stands above "
            "this table");
  EXPECT_EQ(why("# Benchmarking S_IWrite_Indv\n# #processes = 1\n" + columns),
            "f:1:1: the Intel MPI Benchmarks printed no row that is read | S_IWrite_Indv is not read");
  EXPECT_EQ(why(" #bytes #iterations BW peak[MB/sec] BW average[MB/sec]\n 65536 5000 10\n"),
            "f:2:1: the row ends before its average bandwidth | ");
  EXPECT_EQ(why("memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n 0 1\n 0 N/A\n"),
            "f:3:1: the row has 1 rates, its matrix 2 columns | ");
  EXPECT_EQ(why("{\"header\": {\"n_ranks\": 4}, \"coll_perf\": {\"coll\": \"AllReduce\", \"coll_exec_time_us\": -1}}"),
            "f:1:84: this is not a time | ");
  EXPECT_EQ(why("nccl_bus_bandwidth_gbs{nranks=\"4\"} fast\n"), "f:1:1: a metric is NAME{LABELS} VALUE | ");
  EXPECT_EQ(why("{\"pg_config\": {}, \"entries\": 3}"), "f:1:30: a list is expected here, not a number | ");
}

/// What PyTorch's profiler writes names the process groups before its events.
TEST(Others, AProfilersTraceIsNoFlightRecord) {
  const std::string trace =
      R"({"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 2, "pg_count": 1,
"pg_config": [{"pg_name": "0", "pg_desc": "default_pg", "backend_config": "cuda:nccl", "pg_size": 2, "ranks": [0, 1]}]},
"traceEvents": []})";
  EXPECT_NE(why(trace).find("a trace of PyTorch's profiler"), std::string::npos) << why(trace);
  EXPECT_NE(why(trace).find("espalier diagnose"), std::string::npos);
}

}  // namespace
}  // namespace espalier::compare
