#pragma once

// Tested by: tests/unit/compare/read/others_test.cpp

#include <string_view>

#include "base/result.h"
#include "compare/read/measurements.h"

namespace espalier::compare {

/// Measurements of other tools than nccl-tests. Sizes become message sizes S of nccl-tests, transfers between two ranks
/// broadcasts of two (of both at once: send_recv), and calls that were measured several times their median.
/// `name` stands for the file. Errors of all: invalid_input with file:line, also for a text without a row.
/// Cost: linear in the text, and O(n log n) in the calls of a record.

/// Records of NCCL's inspector, a JSON object a line. Of the ranks of one call in one file the one that took least, the
/// last to come, waited for nobody. Source: NCCL, plugins/profiler/inspector.
Result<Measurements> read_nccl_inspector(std::string_view text, std::string_view name);
/// The same as Prometheus text: sizes are what bus bandwidth and time give together.
Result<Measurements> read_nccl_inspector_metrics(std::string_view text, std::string_view name);

/// A dump of PyTorch's flight recorder as JSON, whose entries have "duration_ms" (TORCH_NCCL_ENABLE_TIMING=1), or the
/// pickle, which is refused with the line that converts it. Source: PyTorch,
/// torch/csrc/distributed/c10d/FlightRecorder.
Result<Measurements> read_flight_recorder(std::string_view text, std::string_view name);
/// Whether the text is a pickle of protocol 2 or later.
bool is_pickle(std::string_view text);

/// The OSU benchmarks, versions 5 to 7: blocking collectives by average latency, and bandwidth or latency of a pair.
/// Those whose sizes are per rank need a command line with -n or -np in the text.
Result<Measurements> read_osu(std::string_view text, std::string_view name);
/// The Intel MPI Benchmarks: collectives by average time, PingPong, Sendrecv.
Result<Measurements> read_imb(std::string_view text, std::string_view name);
/// ib_write_bw and the others of perftest, bandwidth and latency; MB are 2^20 bytes there. Of bandwidths, and of OSU's,
/// a row is the stream of all messages that are under way at once.
Result<Measurements> read_perftest(std::string_view text, std::string_view name);
/// The same as --out_json writes it, which holds one size.
Result<Measurements> read_perftest_json(std::string_view text, std::string_view name);
/// nvbandwidth's matrices of GPU pairs, by copy engines; a row for each pair, with its GPUs as members. Sizes are 512
/// MiB where no --bufferSize stands in the text.
Result<Measurements> read_nvbandwidth(std::string_view text, std::string_view name);
/// The same as `nvbandwidth -j` prints it.
Result<Measurements> read_nvbandwidth_json(std::string_view text, std::string_view name);
/// CUDA's sample p2pBandwidthLatencyTest, what it copies one way with peer access: 160 MB between each pair. Source:
/// NVIDIA/cuda-samples.
Result<Measurements> read_p2p_test(std::string_view text, std::string_view name);

}  // namespace espalier::compare
