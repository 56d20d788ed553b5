#include "planners/nccl/nccl_collnet.h"

#include <algorithm>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "planners/graph/logical_graph.h"
#include "planners/graph/rank_groups.h"
#include "planners/tree/branch_maker.h"
#include "planners/tree/spanning_tree.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/link_kind.h"

namespace espalier::planners {
namespace {

constexpr Bytes message_of_collnet{1 << 18};
constexpr std::uint32_t routes_of_collnet = 8;

Error no_collnet(const std::string& what) { return {ErrorCode::unsupported, what, "use nccl/ring or nccl/tree"}; }

/// The links of a way of fewest links from a switch to every node that NICs and PCIe alone lead to, or from these to
/// the switch.
std::unordered_map<std::uint32_t, std::vector<LinkId>> ways_beside(const Topology& topology, NodeId node,
                                                                   bool outwards) {
  std::unordered_map<std::uint32_t, std::vector<LinkId>> ways{{node.value(), {}}};
  for (std::deque<NodeId> open{node}; !open.empty(); open.pop_front()) {
    for (const LinkId id : outwards ? topology.out_links(open.front()) : topology.in_links(open.front())) {
      const NodeId next = outwards ? topology.link(id).head : topology.link(id).tail;
      if (ways.contains(next.value())) continue;
      std::vector<LinkId> way = ways[open.front().value()];
      way.insert(outwards ? way.end() : way.begin(), id);
      ways.emplace(next.value(), std::move(way));
      const Node& is = topology.node(next);
      if (!is.is_rank && is.kind != NodeKind::switch_node && is.kind != NodeKind::gpu) open.push_back(next);
    }
  }
  return ways;
}

/// A GPU beside a switch, with the ways to it and back.
struct Head {
  Rank rank;
  std::vector<LinkId> there;
  std::vector<LinkId> back;
};

/// Of each machine the GPUs that are nearest to a switch; nothing where a machine has none.
std::vector<std::vector<Head>> heads_beside(const Topology& topology, const RankGroups& machines, NodeId node) {
  const auto there = ways_beside(topology, node, false), back = ways_beside(topology, node, true);
  std::vector<std::vector<Head>> heads;
  for (const std::vector<Rank>& ranks : machines.groups) {
    std::vector<Head> of_machine;
    for (const Rank rank : ranks) {
      const std::uint32_t place = topology.node_of(rank).value();
      if (!there.contains(place) || !back.contains(place) || !topology.may_relay(rank)) continue;
      // A switch of the fabric is NVLS's.
      if (kind_of(topology, there.at(place).back()) != LinkKind::network) continue;
      of_machine.push_back({rank, there.at(place), back.at(place)});
    }
    if (of_machine.empty()) return {};
    const auto nearest = std::ranges::min(of_machine, {}, [](const Head& head) { return head.there.size(); });
    std::erase_if(of_machine, [&](const Head& head) { return head.there.size() > nearest.there.size(); });
    heads.push_back(std::move(of_machine));
  }
  return heads;
}

Result<Schedule> plan_collnet(const Topology& topology, const Collective& collective, bool is_chain) {
  const std::string name = is_chain ? "nccl/collnet_chain" : "nccl/collnet_direct";
  const RankGroups machines = group_domains(topology);
  if (collective.kind != CollectiveKind::all_reduce || machines.groups.size() < 2) {
    return tl::unexpected(no_collnet("NCCL's CollNet is for all_reduce on several machines"));
  }
  const LogicalGraph graph(topology, message_of_collnet, routes_of_collnet);
  const TreeDemand demand{topology, machines, graph, Rank()};
  BranchMaker maker(demand);
  Forest forest;
  for (std::size_t i = 0; i < topology.node_count(); ++i) {
    const Node& node = topology.node(NodeId(i));
    if (node.kind != NodeKind::switch_node || !node.multicast || !node.reduction) continue;
    const std::vector<std::vector<Head>> heads = heads_beside(topology, machines, NodeId(i));
    if (heads.empty()) continue;
    const Rank relay(topology.rank_count() + forest.relays.size());
    forest.relays.push_back(NodeId(i));
    const auto fewest = std::ranges::min(heads, {}, [](const auto& of_machine) { return of_machine.size(); }).size();
    for (std::size_t tree_number = 0; tree_number < fewest; ++tree_number) {
      SpanningTree tree;
      tree.centre = relay;
      for (std::size_t machine = 0; machine < heads.size(); ++machine) {
        const Head& head = heads[machine][tree_number];
        tree.branches.push_back({relay, head.rank, head.back, head.there});
        const std::vector<Rank>& ranks = machines.groups[machine];
        const auto first = std::ranges::find(ranks, head.rank) - ranks.begin();
        Rank before = head.rank;
        for (std::size_t step = 1; step < ranks.size(); ++step) {
          const Rank next = ranks[(static_cast<std::size_t>(first) + step) % ranks.size()];
          if (!maker.add(tree, is_chain ? before : head.rank, next)) {
            return tl::unexpected(no_collnet("neighbours in NCCL's CollNet have no route to each other here"));
          }
          before = next;
        }
      }
      forest.in_trees.push_back(orient(tree, relay, false));
      forest.out_trees.push_back(orient(tree, relay, true));
    }
  }
  if (forest.relays.empty()) {
    return tl::unexpected(no_collnet("no switch with multicast and reduction is beside a GPU of every machine"));
  }
  return schedule_from_trees(collective, topology, name, forest);
}

}  // namespace

Result<Schedule> plan_collnet_direct(const Topology& topology, const Collective& collective) {
  return plan_collnet(topology, collective, false);
}

Result<Schedule> plan_collnet_chain(const Topology& topology, const Collective& collective) {
  return plan_collnet(topology, collective, true);
}

}  // namespace espalier::planners
