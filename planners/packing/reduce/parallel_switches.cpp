#include "planners/packing/reduce/parallel_switches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "planners/lp/resource_graph.h"
#include "planners/packing/reduce/parallel_planes.h"

namespace espalier {

namespace {

/// Where a switch's links go to or come from.
struct PortSide {
  bool leaves = false;
  NodeId neighbour;
  friend auto operator<=>(const PortSide& a, const PortSide& b) {
    return std::pair(a.leaves, a.neighbour.index()) <=> std::pair(b.leaves, b.neighbour.index());
  }
};
using SwitchLinks = std::map<PortSide, std::vector<LinkId>>;
/// What alike switches have in common: how many links a neighbour has each way, and by side their rate and latency.
using SwitchMark = std::pair<std::size_t, std::vector<std::tuple<bool, std::size_t, std::int64_t, std::int64_t>>>;

bool is_like(const Link& a, const Link& b) { return a.bandwidth() == b.bandwidth() && a.latency == b.latency; }

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

/// The links at planes that are alike, those together that stand for each other; nothing where they are not quite
/// alike.
std::optional<std::vector<std::vector<LinkId>>> plane_lanes(const Topology& topology,
                                                            const std::vector<std::vector<std::uint32_t>>& planes) {
  std::vector<std::vector<LinkId>> lanes;
  for (std::size_t i = 0; i < planes.size(); ++i) {
    std::map<std::size_t, std::size_t> place;
    for (std::size_t k = 0; k < planes[i].size(); ++k) place[planes[i][k]] = k;
    // Known by their ends, where switches go by their places; the links between two nodes in their order.
    std::map<std::tuple<bool, std::size_t, bool, std::size_t>, std::vector<LinkId>> links;
    for (std::size_t l = 0; l < topology.link_count(); ++l) {
      const Link& link = topology.link(LinkId(l));
      const auto tail = place.find(link.tail.index());
      const auto head = place.find(link.head.index());
      if (tail == place.end() && head == place.end()) continue;
      links[{tail == place.end(), tail == place.end() ? link.tail.index() : tail->second, head == place.end(),
             head == place.end() ? link.head.index() : head->second}]
          .push_back(LinkId(l));
    }
    std::size_t at = 0;
    for (const auto& [ends, parallel] : links) {
      for (const LinkId link : parallel) {
        if (i == 0) lanes.emplace_back();
        if (at == lanes.size()) return std::nullopt;
        if (i > 0 && !is_like(topology.link(lanes[at].front()), topology.link(link))) return std::nullopt;
        lanes[at++].push_back(link);
      }
    }
    if (at != lanes.size()) return std::nullopt;
  }
  return lanes;
}

}  // namespace

ParallelSwitches::ParallelSwitches(const Topology& topology)
    : group_of_(topology.node_count(), no_group), lanes_of_(topology.link_count()) {
  join_switches(topology);
  join_planes(topology);
}

void ParallelSwitches::join_switches(const Topology& topology) {
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
    std::map<PortSide, std::vector<LinkId>> lanes;
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

void ParallelSwitches::join_planes(const Topology& topology) {
  if (std::ranges::any_of(topology.nodes(), [](const Node& node) { return node.bandwidth.bytes_per_second != 0; })) {
    return;
  }
  const ParallelPlanes planes(make_resource_graph(topology, false));
  for (const auto& group : planes.groups()) {
    const auto& model = group.front();
    if (model.size() == 1 || group_of_[model.front()] != no_group) continue;
    auto lanes = plane_lanes(topology, group);
    if (!lanes) continue;
    for (const auto& plane : group) {
      for (const std::uint32_t node : plane) group_of_[node] = group_count_;
    }
    for (auto& links : *lanes) {
      const auto shared = std::make_shared<const std::vector<LinkId>>(std::move(links));
      for (const LinkId link : *shared) lanes_of_[link.index()] = shared;
    }
    ++group_count_;
  }
}

}  // namespace espalier
