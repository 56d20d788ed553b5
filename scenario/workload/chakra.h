#pragma once

// Tested by: tests/unit/scenario/workload/chakra_test.cpp

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/element.h"
#include "base/result.h"
#include "scenario/workload/flop_rate.h"
#include "scenario/workload/job.h"

namespace espalier::scenario {

/// What a node of a Chakra execution trace does (ChakraProtoMsg.NodeType).
enum class ChakraType : std::uint8_t {
  metadata = 1,
  memory_load = 2,
  memory_store = 3,
  compute = 4,
  send = 5,
  receive = 6,
  collective = 7,
};

/// One node of a trace, as far as it is read.
struct ChakraNode {
  std::uint64_t id = 0;
  std::string name;
  ChakraType type = ChakraType::metadata;
  std::vector<std::uint64_t> after;  ///< Control and data dependencies.
  std::uint64_t duration_us = 0;
  std::uint64_t duration_ns = 0;        ///< Beside it, of forms that are finer (trace_forms.h).
  std::optional<std::uint16_t> stream;  ///< Of computing nodes: another than that of the rank's computing.
  std::uint64_t operations = 0;         ///< Attribute num_ops.
  bool on_cpu = false;                  ///< Attribute is_cpu_op.
  std::int64_t comm_type = -1;          ///< ChakraProtoMsg.CollectiveCommType.
  std::int64_t comm_size = -1;          ///< In bytes.
  std::int64_t comm_src = -1;
  std::int64_t comm_dst = -1;
  std::int64_t comm_tag = 0;
  std::int64_t root = 0;
  std::string group;               ///< Attribute pg_name or comm_group; empty: all ranks.
  bool has_all_dimensions = true;  ///< Attribute involved_dim, where it is given, is true throughout.
};

/// The most bytes of a compressed trace, unpacked.
inline constexpr std::size_t max_unpacked_trace = std::size_t{1} << 31U;

/// Reads one rank's trace: messages behind their lengths, a GlobalMetadata first, then nodes; compressed by gzip or
/// not. `name` stands for the file. Errors: invalid_input with the byte where the bytes are no such trace; unsupported
/// for node types that are not simulated; too_large past 2^26 nodes, or when it unpacks to more than `max_unpacked`.
/// Source: mlcommons/chakra, schema/protobuf/et_def.proto.
Result<std::vector<ChakraNode>> read_chakra(std::string_view bytes, const std::string& name,
                                            std::size_t max_unpacked = max_unpacked_trace);

/// How a trace is laid over a topology.
struct ChakraOptions {
  std::vector<Rank> ranks;                          ///< By rank of the trace.
  std::map<std::string, std::vector<Rank>> groups;  ///< By name: ranks of the topology.
  ElementType type = ElementType::float32;          ///< Of what collectives carry.
  std::optional<FlopRate> rate;  ///< Of a rank: for nodes with a number of operations and no duration.
  Bytes chunk;                   ///< Of all calls; zero: that of the whole run.
};

/// Adds traces, one per rank, to a job. A node is issued when what it depends on is over, never for its place in the
/// file; computing nodes of a rank run one after the other, those on CPU too, and the collectives of a group follow
/// each other. A send does not wait for its receive. Counterparts are found in the order of issue (dependencies first,
/// then by id): the k-th collective of a group at one rank belongs with the k-th at the others, the k-th send from a to
/// b with a tag with the k-th receive. Errors: invalid_input, naming rank and node, where nodes do not fit together;
/// unsupported where something is not simulated.
Result<void> add_chakra(Job& job, std::span<const std::vector<ChakraNode>> traces, const ChakraOptions& options);

}  // namespace espalier::scenario
