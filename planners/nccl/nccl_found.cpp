#include "planners/nccl/nccl_found.h"

#include <algorithm>
#include <tuple>

#include "planners/nccl/nccl_relabel.h"
#include "planners/nccl/search/nccl_communicator.h"
#include "planners/tree/branch_maker.h"
#include "topology/link_kind.h"

namespace espalier::planners {
namespace {

constexpr Bytes medium_message{1 << 18};
constexpr std::uint32_t routes_kept = 8;

/// By the order of ranks alone: plans do not go by names (planners/symmetry/canonical_network.h).
std::optional<NcclCommunicator> find_channels(const Topology& machine, NcclEra era) {
  era.numbers_by_name = false;
  auto made = make_communicator(machine, era);
  if (made && !made->is_held()) made.reset();
  return made;
}

/// Those with this channel among what NCCL sets up.
template <class Kind>
const Kind& of_channel(const std::vector<Kind>& all, std::uint32_t channel) {
  return *std::ranges::find_if(
      all, [&](const Kind& one) { return std::ranges::find(one.channels, channel) != one.channels.end(); });
}

/// Hops from each to the next and back to the first; none where one has no route.
std::vector<Path> hops_round(BranchMaker& maker, const std::vector<Rank>& order) {
  std::vector<Path> hops;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const Path* const hop = maker.take_hop(order[i], order[(i + 1) % order.size()]);
    if (hop == nullptr) return {};
    hops.push_back(*hop);
  }
  return hops;
}

/// How many ports the NICs have, at most: NCCL makes the ports of one NIC a device, which sends by all of them.
std::uint32_t most_ports(const Topology& topology) {
  std::uint32_t most = 1;
  for (std::size_t node = 0; node < topology.node_count(); ++node) {
    const NodeKind kind = topology.node(NodeId(node)).kind;
    if (kind != NodeKind::nic && kind != NodeKind::gpu) continue;
    const auto ports = std::ranges::count_if(topology.out_links(NodeId(node)),
                                             [&](LinkId link) { return kind_of(topology, link) == LinkKind::network; });
    most = std::max(most, static_cast<std::uint32_t>(ports));
  }
  return most;
}

/// The same order, but of GPUs that have routes; empty where no exchange gives them.
std::vector<Rank> with_routes(const std::vector<Rank>& order, RouteRelabelling& relabelling) {
  Neighbours neighbours;
  for (std::size_t i = 0; i < order.size(); ++i) neighbours.emplace_back(order[i], order[(i + 1) % order.size()]);
  const auto places = relabelling.places(neighbours, false);
  if (!places) return {};
  std::vector<Rank> placed;
  for (const Rank place : order) placed.push_back((*places)[place.index()]);
  std::ranges::rotate(placed, std::ranges::find(placed, Rank(0)));
  return placed;
}

/// Parents by rank, the same.
std::vector<Rank> parents_with_routes(const std::vector<Rank>& parent, RouteRelabelling& relabelling) {
  Neighbours neighbours;
  for (std::size_t rank = 0; rank < parent.size(); ++rank) {
    if (!parent[rank].is_none()) neighbours.emplace_back(parent[rank], Rank(rank));
  }
  const auto places = relabelling.places(neighbours, true);
  if (!places) return {};
  std::vector<Rank> placed(parent.size());
  for (std::size_t rank = 0; rank < parent.size(); ++rank) {
    const Rank above = parent[rank];
    placed[(*places)[rank].index()] = above.is_none() ? above : (*places)[above.index()];
  }
  return placed;
}

/// From the root down, so that a branch follows the one that enters its parent.
bool add_children(BranchMaker& maker, const std::vector<Rank>& parent, SpanningTree& tree) {
  std::vector<std::vector<Rank>> children(parent.size());
  for (std::size_t rank = 0; rank < parent.size(); ++rank) {
    if (parent[rank].is_none()) {
      tree.centre = Rank(rank);
    } else {
      children[parent[rank].index()].emplace_back(rank);
    }
  }
  std::vector<Rank> inside{tree.centre};
  for (std::size_t i = 0; i < inside.size(); ++i) {
    for (const Rank child : children[inside[i].index()]) {
      if (!maker.add(tree, inside[i], child)) return false;
      inside.push_back(child);
    }
  }
  return inside.size() == parent.size();
}

bool are_same(const SpanningTree& one, const SpanningTree& two) {
  const auto ends = [](const Branch& branch) { return std::tie(branch.a, branch.b, branch.there, branch.back); };
  return one.centre == two.centre && std::ranges::equal(one.branches, two.branches, {}, ends, ends);
}

}  // namespace

RingSet found_rings(const PlanningProblem& problem, const NcclEra& era) {
  const auto made = find_channels(problem.machine(), era);
  if (!made) return {};
  const Topology& topology = problem.topology();
  const RankGroups groups = group_domains(topology);
  const LogicalGraph graph(topology, medium_message, routes_kept);
  BranchMaker maker({topology, groups, graph, Rank()});
  RouteRelabelling relabelling(groups, graph);
  RingSet set;
  // Channels that NCCL opens beyond those it found are the same again.
  const std::uint32_t channels = std::min(made->channels, static_cast<std::uint32_t>(made->ring.channels));
  const std::uint32_t ports = most_ports(topology);
  for (std::uint32_t i = 0; i < channels * ports; ++i) {
    const std::vector<Rank> order = with_routes(of_channel(made->rings, i % channels).order, relabelling);
    if (order.empty()) return {};
    Ring ring{order, hops_round(maker, order), 1};
    if (ring.hops.empty()) return {};
    const auto same = std::ranges::find_if(
        set.rings, [&](const Ring& known) { return known.order == ring.order && known.hops == ring.hops; });
    if (same == set.rings.end()) {
      set.rings.push_back(std::move(ring));
    } else {
      ++same->rate;
    }
  }
  return set;
}

SpanningTrees found_trees(const Topology& machine, const NcclEra& era, const TreeDemand& demand) {
  const auto made = find_channels(machine, era);
  if (!made) return {};
  BranchMaker maker(demand);
  RouteRelabelling relabelling(demand.groups, demand.graph);
  SpanningTrees trees;
  const std::uint32_t channels = std::min(made->channels, 2 * static_cast<std::uint32_t>(made->ring.channels));
  const std::uint32_t ports = most_ports(demand.topology);
  for (std::uint32_t i = 0; i < channels * ports; ++i) {
    SpanningTree tree;
    const std::vector<Rank> parent = parents_with_routes(of_channel(made->trees, i % channels).parent, relabelling);
    if (parent.empty() || !add_children(maker, parent, tree)) return {};
    const auto same = std::ranges::find_if(trees, [&](const SpanningTree& known) { return are_same(known, tree); });
    if (same == trees.end()) {
      trees.push_back(std::move(tree));
    } else {
      ++same->weight;
    }
  }
  return trees;
}

}  // namespace espalier::planners
