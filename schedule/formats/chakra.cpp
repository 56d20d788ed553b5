// Chakra execution traces: messages of protocol buffers behind their lengths. Source: mlcommons/chakra,
// schema/protobuf/et_def.proto.

#include <fmt/format.h>

#include "schedule/formats/rank_events.h"
#include "schedule/formats/writers.h"
#include "schedule/json/json_output.h"

namespace espalier {
namespace {

constexpr std::uint64_t send_node = 5, receive_node = 6;

std::string varint(std::uint64_t value) {
  std::string bytes;
  for (; value >= 0x80U; value >>= 7U) bytes += static_cast<char>(value | 0x80U);
  return bytes + static_cast<char>(value);
}

std::string number_field(std::uint64_t field, std::uint64_t value) { return varint(field << 3U) + varint(value); }

std::string bytes_field(std::uint64_t field, std::string_view bytes) {
  return varint(field << 3U | 2U) + varint(bytes.size()) + std::string(bytes);
}

/// AttributeProto with a name and an int64.
std::string attribute(std::string_view name, std::uint64_t value) {
  return bytes_field(10, bytes_field(1, name) + number_field(9, value));
}

std::string message(const std::string& bytes) { return varint(bytes.size()) + bytes; }

std::string node(std::size_t id, const RankEvent& event, std::size_t rank) {
  const std::size_t other = event.peer.index();
  std::string bytes = number_field(1, id) +
                      bytes_field(2, fmt::format("{} transfer {}", event.is_send ? "send" : "receive", event.tag)) +
                      number_field(3, event.is_send ? send_node : receive_node);
  std::string after;
  for (const std::uint32_t earlier : event.after) after += varint(earlier);
  if (!after.empty()) bytes += bytes_field(5, after);
  bytes += attribute("comm_size", static_cast<std::uint64_t>(event.bytes));
  bytes += attribute("comm_src", event.is_send ? rank : other) + attribute("comm_dst", event.is_send ? other : rank);
  return bytes + attribute("comm_tag", event.tag);
}

}  // namespace

Result<std::vector<ExportedFile>> write_chakra(const Schedule& schedule, const Topology& topology,
                                               const ExportOptions& options) {
  constexpr std::string_view format = "Chakra";
  const auto ranks = rank_events(schedule, topology, format, options);
  if (!ranks) return tl::unexpected(ranks.error());
  std::vector<ExportedFile> files;
  for (std::size_t rank = 0; rank < ranks->size(); ++rank) {
    std::string bytes = message(bytes_field(1, "0.0.4"));
    const std::vector<RankEvent>& events = (*ranks)[rank];
    for (std::size_t i = 0; i < events.size(); ++i) bytes += message(node(i, events[i], rank));
    files.push_back({fmt::format(".{}.et", rank), std::move(bytes)});
  }
  files.front().lost = lost_by_events(schedule, format, false);
  return files;
}

Result<std::vector<ExportedFile>> write_astra_sim(const Schedule& schedule, const Topology& topology,
                                                  const ExportOptions& options) {
  // The keys that may name traces. Source: astra-sim, astra-sim/system/Sys.cc.
  std::string key;
  switch (schedule.collective.kind) {
    case CollectiveKind::all_reduce: key = "all-reduce"; break;
    case CollectiveKind::all_gather: key = "all-gather"; break;
    case CollectiveKind::reduce_scatter: key = "reduce-scatter"; break;
    case CollectiveKind::all_to_all: key = "all-to-all"; break;
    default:
      return fail(ErrorCode::unsupported,
                  fmt::format("ASTRA-sim has no {} of one's own", to_string(schedule.collective.kind)),
                  "all_reduce, all_gather, reduce_scatter and all_to_all it has; chakra writes the traces alone");
  }
  auto files = write_chakra(schedule, topology, options);
  if (!files) return files;
  // One split: the traces are of the whole message. local-mem-bw has to be there and takes no part in a collective; 50
  // is that of ASTRA-sim's own example.
  files->push_back(
      {".system.json", fmt::format("{{\n  \"scheduling-policy\": \"FIFO\",\n  \"preferred-dataset-splits\": 1,\n"
                                   "  \"{}-implementation-custom\": [{}],\n  \"local-mem-bw\": 50\n}}\n",
                                   key, in_quotes(options.name))});
  return files;
}

}  // namespace espalier
