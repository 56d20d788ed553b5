#include "planners/packing/twin_switches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

namespace espalier {

namespace {

/// Where a switch's links go to or come from.
struct SwitchSide {
  bool leaves = false;
  NodeId neighbour;
  friend auto operator<=>(const SwitchSide& a, const SwitchSide& b) {
    return std::pair(a.leaves, a.neighbour.index()) <=> std::pair(b.leaves, b.neighbour.index());
  }
};
using SwitchLinks = std::map<SwitchSide, std::vector<LinkId>>;
/// What alike switches have in common: how many links a neighbour has each way, and by side their rate and latency.
using SwitchMark = std::pair<std::size_t, std::vector<std::tuple<bool, std::size_t, std::int64_t, std::int64_t>>>;

SwitchLinks links_at(const Topology& topology, NodeId node) {
  SwitchLinks links;
  for (const LinkId link : topology.out_links(node)) links[{true, topology.link(link).head}].push_back(link);
  for (const LinkId link : topology.in_links(node)) links[{false, topology.link(link).tail}].push_back(link);
  return links;
}

/// Nothing where links differ so that they are no lanes.
std::optional<SwitchMark> mark_of(const Topology& topology, const SwitchLinks& links) {
  if (links.empty()) return std::nullopt;
  SwitchMark mark{links.begin()->second.size(), {}};
  for (const auto& [side, parallel] : links) {
    if (parallel.size() != mark.first) return std::nullopt;
    const auto rate_of = [&](LinkId link) {
      return std::pair(topology.link(link).bandwidth().bytes_per_second, topology.link(link).latency.count);
    };
    const auto first = rate_of(parallel.front());
    if (std::ranges::any_of(parallel, [&](LinkId link) { return rate_of(link) != first; })) return std::nullopt;
    mark.second.emplace_back(side.leaves, side.neighbour.index(), first.first, first.second);
  }
  return mark;
}

}  // namespace

TwinSwitches::TwinSwitches(const Topology& topology)
    : group_of_(topology.node_count(), no_group), lanes_of_(topology.link_count()) {
  std::map<SwitchMark, std::vector<std::size_t>> alike;
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    const Node& node = topology.node(NodeId(v));
    if (node.is_rank || node.bandwidth.bytes_per_second != 0) continue;
    if (auto mark = mark_of(topology, links_at(topology, NodeId(v)))) alike[*std::move(mark)].push_back(v);
  }
  std::vector<bool> is_beside(topology.node_count(), false);
  for (const auto& [mark, members] : alike) {
    if (members.size() * mark.first == 1 || is_beside[members.front()]) continue;
    for (const auto& [leaves, neighbour, rate, latency] : mark.second) is_beside[neighbour] = true;
    std::map<SwitchSide, std::vector<LinkId>> lanes;
    for (const std::size_t member : members) {
      group_of_[member] = group_count_;
      for (const auto& [side, parallel] : links_at(topology, NodeId(member))) {
        lanes[side].insert(lanes[side].end(), parallel.begin(), parallel.end());
      }
    }
    for (auto& [side, links] : lanes) {
      const auto shared = std::make_shared<const std::vector<LinkId>>(std::move(links));
      for (const LinkId link : *shared) lanes_of_[link.index()] = shared;
    }
    ++group_count_;
  }
}

}  // namespace espalier
