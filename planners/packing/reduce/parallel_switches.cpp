#include "planners/packing/reduce/parallel_switches.h"

#include <algorithm>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "base/disjoint_sets.h"

namespace espalier::planners {

namespace {

/// A plane's links by their ends. The plane's own switches count by their place in it, after all nodes, so that the
/// links of like planes have like ends.
using PlaneLinks = std::map<std::pair<std::size_t, std::size_t>, LinkId>;
/// What like planes have in common: ends, rate and latency of every link.
using PlaneMark = std::vector<std::tuple<std::size_t, std::size_t, std::int64_t, std::int64_t>>;

/// Nothing where the plane is alike to none.
std::optional<PlaneLinks> links_of(const Topology& topology, const std::vector<NodeId>& plane) {
  std::map<NodeId, std::size_t> place;
  for (const NodeId node : plane) place.emplace(node, topology.node_count() + place.size());
  const auto end_of = [&](NodeId node) { return place.contains(node) ? place.at(node) : node.index(); };
  PlaneLinks links;
  const auto add = [&](LinkId id) {
    const Link& link = topology.link(id);
    return links.try_emplace({end_of(link.tail), end_of(link.head)}, id).first->second == id;
  };
  for (const NodeId node : plane) {
    const bool is_plain = topology.node(node).bandwidth.bytes_per_second == 0 &&
                          std::ranges::all_of(topology.out_links(node), add) &&
                          std::ranges::all_of(topology.in_links(node), add);
    if (!is_plain) return std::nullopt;
  }
  return links.empty() ? std::nullopt : std::optional(std::move(links));
}

PlaneMark mark_of(const Topology& topology, const PlaneLinks& links) {
  PlaneMark mark;
  for (const auto& [ends, id] : links) {
    const Link& link = topology.link(id);
    mark.emplace_back(ends.first, ends.second, link.bandwidth().bytes_per_second, link.latency.count);
  }
  return mark;
}

/// The planes of several switches, their switches in the order of the ranks that they serve; none where that says too
/// little.
std::vector<std::vector<NodeId>> wide_planes(const Topology& topology) {
  DisjointSets sets(topology.node_count());
  // By switch: whether to or from a rank, which, and at what rate.
  std::vector<std::vector<std::tuple<bool, std::size_t, std::int64_t>>> served(topology.node_count());
  for (const Link& link : topology.links()) {
    const bool from_rank = topology.node(link.tail).is_rank;
    const bool to_rank = topology.node(link.head).is_rank;
    const std::int64_t rate = link.bandwidth().bytes_per_second;
    if (!from_rank && !to_rank) sets.join(link.tail.value(), link.head.value());
    if (from_rank && !to_rank) served[link.head.index()].emplace_back(false, link.tail.index(), rate);
    if (!from_rank && to_rank) served[link.tail.index()].emplace_back(true, link.head.index(), rate);
  }
  std::map<std::uint32_t, std::vector<NodeId>> planes;
  for (std::uint32_t v = 0; v < topology.node_count(); ++v) {
    std::ranges::sort(served[v]);
    if (!topology.node(NodeId(v)).is_rank) planes[sets.find(v)].push_back(NodeId(v));
  }
  std::vector<std::vector<NodeId>> wide;
  const auto served_by = [&](NodeId node) -> const auto& { return served[node.index()]; };
  for (auto& [first, plane] : planes) {
    std::ranges::stable_sort(plane, {}, served_by);
    if (plane.size() == 1 || std::ranges::adjacent_find(plane, {}, served_by) != plane.end()) continue;
    wide.push_back(std::move(plane));
  }
  return wide;
}

}  // namespace

ParallelSwitches::ParallelSwitches(const Topology& topology)
    : topology_(topology),
      group_of_(topology.node_count(), no_group),
      is_taken_(topology.node_count(), false),
      set_of_(topology.link_count(), no_group) {
  std::vector<Plane> single;
  for (std::size_t v = 0; v < topology.node_count(); ++v) {
    if (!topology.node(NodeId(v)).is_rank) single.push_back({NodeId(v)});
  }
  join(single);
  join(wide_planes(topology));
}

void ParallelSwitches::join(const std::vector<Plane>& planes) {
  std::map<PlaneMark, std::vector<std::pair<const Plane*, PlaneLinks>>> alike;
  for (const Plane& plane : planes) {
    auto links = links_of(topology_, plane);
    if (!links) continue;
    const PlaneMark mark = mark_of(topology_, *links);
    alike[mark].emplace_back(&plane, *std::move(links));
  }
  const auto is_taken = [&](NodeId node) { return is_taken_[node.index()]; };
  for (const auto& [mark, members] : alike) {
    if (members.size() == 1) continue;
    if (std::ranges::any_of(members,
                            [&](const auto& member) { return std::ranges::any_of(*member.first, is_taken); })) {
      continue;
    }
    std::size_t first = parallel_.size();
    parallel_.resize(first + mark.size());
    for (const auto& [plane, links] : members) {
      for (const NodeId node : *plane) group_of_[node.index()] = group_count_;
      std::size_t at = first;
      for (const auto& [ends, link] : links) {
        is_taken_[topology_.link(link).tail.index()] = is_taken_[topology_.link(link).head.index()] = true;
        set_of_[link.index()] = static_cast<std::uint32_t>(at);
        parallel_[at++].push_back(link);
      }
    }
    ++group_count_;
  }
}

}  // namespace espalier::planners
