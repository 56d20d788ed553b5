#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <span>
#include <vector>

#include "schedule/formats/writers.h"
#include "schedule/loads.h"
#include "topology/draw/topology_svg.h"

namespace espalier {
namespace {

std::string end_name(const Schedule& schedule, const Topology& topology, Rank end) {
  const std::size_t ranks = schedule.collective.rank_count;
  return end.index() < ranks ? topology.rank_name(end) : topology.node(schedule.relays[end.index() - ranks]).id;
}

std::int64_t length_of(const Schedule& schedule, const Transfer& transfer) {
  std::int64_t length = 0;
  for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
    length += schedule.slices[transfer.first_slice.index() + i].length;
  }
  return length;
}

/// In double quotes, inner ones doubled (RFC 4180) or, for DOT, behind a backslash.
std::string in_double_quotes(std::string_view text, std::string_view quote) {
  std::string result = "\"";
  for (const char letter : text) result += letter == '"' ? std::string(quote) : std::string(1, letter);
  return result + "\"";
}

}  // namespace

Result<std::string> write_schedule_csv(const Schedule& schedule, const Topology& topology) {
  std::string text = "transfer,src,dst,action,channel,offset,length,units,links\n";
  for (std::size_t i = 0; i < schedule.transfers.size(); ++i) {
    const Transfer& transfer = schedule.transfers[i];
    const Route route = schedule.route(transfer.route);
    std::string links;
    for (const LinkId link : route.links) links += (links.empty() ? "" : " ") + topology.link_name(link);
    text += fmt::format("{},{},{},{},{},{},{},{},{}\n", i,
                        in_double_quotes(end_name(schedule, topology, route.src), "\"\""),
                        in_double_quotes(end_name(schedule, topology, route.dst), "\"\""), to_string(transfer.action()),
                        transfer.channel().index(), schedule.slices[transfer.first_slice.index()].offset,
                        length_of(schedule, transfer), schedule.units, in_double_quotes(links, "\"\""));
  }
  return text;
}

Result<std::string> write_schedule_dot(const Schedule& schedule, const Topology& topology) {
  struct Sum {
    std::size_t transfers = 0;
    double share = 0;
  };
  std::map<std::pair<Rank, Rank>, Sum> sums;
  const auto units = static_cast<double>(std::max<std::int64_t>(schedule.units, 1));
  for (const Transfer& transfer : schedule.transfers) {
    Sum& sum = sums[{schedule.src(transfer), schedule.dst(transfer)}];
    ++sum.transfers;
    sum.share += static_cast<double>(length_of(schedule, transfer)) / units;
  }
  std::string text =
      fmt::format("// {} by {} on {}: a part of the buffer, and in how many transfers\ndigraph plan {{\n",
                  to_string(schedule.collective.kind), schedule.algorithm, schedule.topology);
  for (std::size_t i = 0; i < schedule.collective.rank_count; ++i) {
    text += fmt::format("  {};\n", in_double_quotes(topology.rank_name(Rank(i)), "\\\""));
  }
  for (const auto& [ends, sum] : sums) {
    text += fmt::format("  {} -> {} [label=\"{:.4g} in {}\"];\n",
                        in_double_quotes(end_name(schedule, topology, ends.first), "\\\""),
                        in_double_quotes(end_name(schedule, topology, ends.second), "\\\""), sum.share, sum.transfers);
  }
  return text + "}\n";
}

std::string write_schedule_svg(const Schedule& schedule, const Topology& topology) {
  const Loads loads = compute_loads(schedule, topology);
  std::vector<double> shares;
  shares.reserve(topology.link_count());
  for (std::size_t i = 0; i < topology.link_count(); ++i) {
    shares.push_back(loads.time_per_byte == 0 ? 0 : to_double(link_share(schedule, topology, loads, LinkId(i))));
  }
  return topology_svg(
      topology, {shares, schedule.bound ? std::span<const NodeId>(schedule.bound->cut) : std::span<const NodeId>()});
}

}  // namespace espalier
