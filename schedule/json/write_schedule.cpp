#include <fmt/format.h>

#include <ostream>
#include <span>

#include "schedule/json/json_output.h"
#include "schedule/json/schedule_json.h"
#include "topology/yaml/write_topology.h"

namespace espalier {
namespace {

/// Node names; link names for all hops where one of them has parallel links or does not begin where the last one ended.
std::string route_text(std::span<const LinkId> links, const Topology& topology) {
  bool by_node = true;
  NodeId at = topology.link(links.front()).tail;
  for (const LinkId id : links) {
    const Link& link = topology.link(id);
    by_node = by_node && link.tail == at && topology.links_between(link.tail, link.head).size() == 1;
    at = link.head;
  }
  std::string text = "[";
  if (by_node) text += in_quotes(topology.node(topology.link(links.front()).tail).id);
  for (const LinkId id : links) {
    if (text.size() > 1) text += ", ";
    text += in_quotes(by_node ? topology.node(topology.link(id).head).id : topology.link_name(id));
  }
  return text + "]";
}

void write_matrix(BufferedOutput& out, const Collective& collective) {
  const char* separator = "\n \"matrix\": [";
  const std::size_t ranks = collective.rank_count;
  for (std::size_t from = 0; from < ranks; ++from) {
    out.print("{}\n  [{}]", separator, fmt::join(std::span(collective.shares).subspan(from * ranks, ranks), ", "));
    separator = ",";
  }
  out.print("],\n");
}

void write_head(BufferedOutput& out, const Schedule& schedule, const Topology& topology) {
  const Rank root = schedule.collective.root;
  out.print("{{\"espalier_schedule\": 1, \"collective\": {}, \"topology\": {},\n \"ranks\": [",
            in_quotes(to_string(schedule.collective.kind)), in_quotes(schedule.topology));
  for (std::size_t r = 0; r < topology.rank_count(); ++r) {
    out.print("{}{}", r > 0 ? ", " : "", in_quotes(topology.rank_name(Rank(r))));
  }
  if (!schedule.relays.empty()) {
    const char* separator = "],\n \"relays\": [";
    for (const NodeId relay : schedule.relays) {
      out.print("{}{}", separator, in_quotes(topology.node(relay).id));
      separator = ", ";
    }
  }
  out.print("], \"root\": {},", root.is_none() ? "null" : std::to_string(root.value()));
  if (schedule.collective.has_matrix()) {
    write_matrix(out, schedule.collective);
  } else if (!schedule.collective.shares.empty()) {
    out.print("\n \"shares\": [{}],\n", fmt::join(schedule.collective.shares, ", "));
  }
  out.print(" \"algorithm\": {}, \"units\": {},\n \"slices\": [", in_quotes(schedule.algorithm), schedule.units);
}

void write_slices(BufferedOutput& out, const Schedule& schedule) {
  const char* separator = "";
  for (const Slice& slice : schedule.slices) {
    out.print("{}\n  {{\"offset\": {}, \"length\": {}", separator, slice.offset, slice.length);
    if (!slice.rank.is_none()) out.print(", \"rank\": {}", slice.rank.value());
    if (!slice.to.is_none()) out.print(", \"to\": {}", slice.to.value());
    out.print("}}");
    separator = ",";
  }
  out.print("],\n \"transfers\": [");
}

void write_transfers(BufferedOutput& out, const Schedule& schedule, const Topology& topology) {
  std::vector<std::string> route_texts(schedule.route_count());
  const char* separator = "";
  for (const Transfer& transfer : schedule.transfers) {
    std::string& route = route_texts[transfer.route.index()];
    if (route.empty()) route = route_text(schedule.route(transfer.route).links, topology);
    out.print(
        "{}\n  {{\"slices\": [{}, {}], \"src\": {}, \"dst\": {}, \"action\": \"{}\", \"channel\": {}, \"route\": {}}}",
        separator, transfer.first_slice.value(), transfer.slice_count, schedule.src(transfer).value(),
        schedule.dst(transfer).value(), to_string(transfer.action()), transfer.channel().value(), route);
    separator = ",";
  }
  out.print("]");
}

void write_bound(BufferedOutput& out, const Bound& bound, const Topology& topology) {
  const bool moves = bound.time_per_byte != 0;
  out.print(",\n \"bound\": {{\"algbw\": {}, \"time_per_byte\": \"{}\", \"cut\": [",
            moves ? fmt::format("{}", to_double(1 / bound.time_per_byte)) : "null", to_string(bound.time_per_byte));
  const char* separator = "";
  for (const NodeId node : bound.cut) {
    out.print("{}{}", separator, in_quotes(topology.node(node).id));
    separator = ", ";
  }
  out.print("]");
  if (!bound.what.empty()) out.print(", \"what\": {}", in_quotes(bound.what));
  if (bound.is_floor) out.print(", \"floor\": true");
  out.print("}}");
}

void write_chunking(BufferedOutput& out, const SizedPacing& pacing) {
  out.print(",\n \"chunking\": {{\"size\": {}, \"chunk\": {}, \"ahead\": {}}}", pacing.size.count, pacing.chunk.count,
            pacing.ahead);
}

}  // namespace

Result<void> write_schedule(std::ostream& out, const Schedule& schedule, const Topology& topology,
                            const WriteOptions& options) {
  BufferedOutput buffered(out);
  write_head(buffered, schedule, topology);
  write_slices(buffered, schedule);
  write_transfers(buffered, schedule, topology);
  if (schedule.bound) write_bound(buffered, *schedule.bound, topology);
  if (schedule.pacing) write_chunking(buffered, *schedule.pacing);
  if (options.of_rank) buffered.print(",\n \"of_rank\": {}", options.of_rank->value());
  if (options.embed_network) buffered.print(",\n \"network\": {}", write_topology_json(topology));
  buffered.print("}}\n");
  buffered.flush();
  out.flush();
  if (!out) return fail(ErrorCode::unavailable, "the schedule could not be written in full");
  return {};
}

}  // namespace espalier
