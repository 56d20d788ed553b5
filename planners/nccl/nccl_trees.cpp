#include "planners/nccl/nccl_trees.h"

#include <algorithm>
#include <string>

#include "planners/nccl/nccl_found.h"
#include "planners/tree/branch_maker.h"
#include "planners/tree/spanning_tree.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {
namespace {

constexpr Bytes medium_message{1 << 18};
constexpr std::uint32_t routes_kept = 8;

/// What trees are made for, and what they are made with.
struct Ground {
  Ground(const Topology& of, std::uint32_t variants)
      : topology(of), groups(group_domains(of)), graph(of, medium_message, variants) {}
  Ground(const Topology& of, const PairRoutes& routes)
      : topology(of), groups(group_domains(of)), graph(of, medium_message, routes) {}

  [[nodiscard]] TreeDemand demand() const { return {topology, groups, graph, Rank()}; }

  const Topology& topology;
  RankGroups groups;
  LogicalGraph graph;
};

Error not_here(const std::string& what) { return {ErrorCode::unsupported, what, "use nccl/ring"}; }

/// Trees that carry all_reduce: up to their centres and down again.
Result<Schedule> all_reduce_by(const Topology& topology, const Collective& collective, std::string name,
                               const SpanningTrees& trees, std::vector<NodeId> relays = {}) {
  Forest forest;
  forest.relays = std::move(relays);
  for (const SpanningTree& tree : trees) {
    forest.in_trees.push_back(orient(tree, tree.centre, false));
    forest.out_trees.push_back(orient(tree, tree.centre, true));
  }
  return schedule_from_trees(collective, topology, std::move(name), forest);
}

/// One chain through all ranks, machine by machine.
SpanningTrees chain(const TreeDemand& demand) {
  const std::vector<Rank> order = order_ranks(demand.groups);
  BranchMaker maker(demand);
  SpanningTree tree;
  tree.centre = order.front();
  for (std::size_t i = 1; i < order.size(); ++i) {
    if (!maker.add(tree, order[i - 1], order[i])) return {};
  }
  return {std::move(tree)};
}

/// The switches that copy and add and have a link to and from every one of these ranks.
std::vector<NodeId> computing_switches(const Topology& topology, const std::vector<Rank>& ranks) {
  std::vector<NodeId> found;
  for (const LinkId link : topology.out_links(topology.node_of(ranks.front()))) {
    const NodeId node = topology.link(link).head;
    const Node& is = topology.node(node);
    const bool computes = is.kind == NodeKind::switch_node && is.multicast && is.reduction;
    if (!computes || std::ranges::find(found, node) != found.end()) continue;
    const auto has_cable = [&](Rank rank) {
      const NodeId end = topology.node_of(rank);
      return !topology.links_between(end, node).empty() && !topology.links_between(node, end).empty();
    };
    if (std::ranges::all_of(ranks, has_cable)) found.push_back(node);
  }
  return found;
}

Branch cable(const Topology& topology, Rank a, NodeId node_a, Rank b, NodeId node_b) {
  return {a, b, {topology.links_between(node_a, node_b).front()}, {topology.links_between(node_b, node_a).front()}};
}

/// All of these ranks around a switch.
void add_star(const Topology& topology, SpanningTree& tree, Rank relay, NodeId node, const std::vector<Rank>& ranks) {
  for (const Rank rank : ranks) tree.branches.push_back(cable(topology, relay, node, rank, topology.node_of(rank)));
}

Result<void> check_all_reduce(const Collective& collective, const char* name) {
  if (collective.kind == CollectiveKind::all_reduce && collective.rank_count > 1) return {};
  return tl::unexpected(not_here(std::string("NCCL's ") + name + " is for all_reduce on two and more ranks"));
}

Error no_computing_switch() {
  return not_here("no switch with multicast and reduction is next to all ranks of a machine");
}

}  // namespace

Result<Schedule> plan_nccl_tree(const PlanningProblem& problem, const Collective& collective,
                                const PlanContext& context) {
  if (const auto is = check_all_reduce(collective, "tree"); !is) return tl::unexpected(is.error());
  const Topology& topology = problem.topology();
  const Ground ground = context.routes ? Ground(topology, context.routes) : Ground(topology, routes_kept);
  SpanningTrees trees;
  if (context.nccl != nullptr) trees = found_trees(problem.machine(), *context.nccl, ground.demand());
  if (!trees.empty()) return all_reduce_by(topology, collective, "nccl/tree", trees);
  if (ground.groups.groups.size() == 1) {
    trees = chain(ground.demand());
  } else if (ground.groups.two_levels()) {
    trees = double_trees(ground.demand(), Inside::chain);
  } else {
    trees = rank_trees(ground.demand(), false);
  }
  if (trees.empty()) return tl::unexpected(not_here("neighbours in NCCL's trees have no route to each other here"));
  return all_reduce_by(topology, collective, "nccl/tree", trees);
}

Result<Schedule> plan_nvls(const Topology& topology, const Collective& collective) {
  const Ground ground(topology, 1);
  const bool has = collective.kind == CollectiveKind::all_reduce || collective.kind == CollectiveKind::all_gather ||
                   collective.kind == CollectiveKind::reduce_scatter;
  if (!has) return tl::unexpected(not_here("NCCL's NVLS is for all_reduce, all_gather and reduce_scatter"));
  if (ground.groups.groups.size() != 1 || collective.rank_count < 2) {
    return tl::unexpected(not_here("NCCL's NVLS is for the ranks of one machine"));
  }
  const std::vector<Rank>& ranks = ground.groups.groups.front();
  const std::vector<NodeId> switches = computing_switches(topology, ranks);
  if (switches.empty()) return tl::unexpected(no_computing_switch());
  Forest forest;
  forest.relays = switches;
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    const std::size_t relay = i % switches.size();
    SpanningTree tree;
    tree.centre = ranks[i];
    // Only one switch is part of a tree, so it is laid out with that one numbered first and renumbered below.
    add_star(topology, tree, Rank(ranks.size()), switches[relay], ranks);
    const auto renumbered = [&](Arborescence oriented) {
      for (TreeEdge& edge : oriented.edges) {
        if (edge.parent.index() == ranks.size()) edge.parent = Rank(ranks.size() + relay);
        if (edge.child.index() == ranks.size()) edge.child = Rank(ranks.size() + relay);
      }
      return oriented;
    };
    const bool adds = reduces(collective.kind);
    if (adds) forest.in_trees.push_back(renumbered(orient(tree, tree.centre, false)));
    if (!adds || collective.kind == CollectiveKind::all_reduce) {
      forest.out_trees.push_back(renumbered(orient(tree, tree.centre, true)));
    }
  }
  const Result<Forest> dealt = in_proportion(std::move(forest), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, topology, "nccl/nvls", *dealt);
}

Result<Schedule> plan_nvls_tree(const Topology& topology, const Collective& collective) {
  if (const auto is = check_all_reduce(collective, "NVLSTree"); !is) return tl::unexpected(is.error());
  const Ground ground(topology, routes_kept);
  if (!ground.groups.two_levels()) return tl::unexpected(not_here("NCCL's NVLSTree is for several machines"));
  std::vector<NodeId> relays;
  for (const std::vector<Rank>& ranks : ground.groups.groups) {
    const std::vector<NodeId> switches = computing_switches(topology, ranks);
    if (switches.empty()) return tl::unexpected(no_computing_switch());
    relays.push_back(switches.front());
  }
  SpanningTrees trees = double_trees(ground.demand(), Inside::chain);
  for (SpanningTree& tree : trees) {
    const auto& group_of = ground.groups.group_of;
    std::erase_if(tree.branches,
                  [&](const Branch& branch) { return group_of[branch.a.index()] == group_of[branch.b.index()]; });
    for (std::size_t i = 0; i < relays.size(); ++i) {
      add_star(topology, tree, Rank(topology.rank_count() + i), relays[i], ground.groups.groups[i]);
    }
  }
  if (trees.empty()) return tl::unexpected(not_here("machines have no ports to each other that differ"));
  return all_reduce_by(topology, collective, "nccl/nvls_tree", trees, std::move(relays));
}

}  // namespace espalier::planners
