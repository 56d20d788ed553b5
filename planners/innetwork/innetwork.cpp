#include "planners/innetwork/innetwork.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "planners/innetwork/relay_program.h"
#include "schedule/trees/tree_schedule.h"
#include "topology/reachable.h"

namespace espalier::planners {
namespace {

constexpr std::size_t max_switch_ranks = 4096;
constexpr std::size_t max_roots = 1024;

/// What keeps a collective from being planned here, or nothing.
Result<void> check_kind(const Topology& topology, const Collective& collective) {
  const auto has = [&](bool Node::*flag) { return std::ranges::any_of(topology.nodes(), flag); };
  const bool copies = has(&Node::multicast);
  const bool adds = has(&Node::reduction);
  const std::string kind(to_string(collective.kind));
  const auto refuse = [&](const std::string& what, const std::string& flags) -> Result<void> {
    return fail(ErrorCode::unsupported, fmt::format("no switch of {} {}, for {}", topology.name(), what, kind),
                "declare the switches that do with " + flags + ", or use the planner packing");
  };
  switch (collective.kind) {
    case CollectiveKind::broadcast:
    case CollectiveKind::all_gather:
      if (!copies) return refuse("copies", "multicast: true");
      return {};
    case CollectiveKind::reduce:
    case CollectiveKind::reduce_scatter:
      if (!adds) return refuse("adds", "reduction: true");
      return {};
    case CollectiveKind::all_reduce:
      if (!copies && !adds) return refuse("copies or adds", "multicast: true and reduction: true");
      return {};
    default: break;
  }
  return fail(ErrorCode::unsupported,
              fmt::format("innetwork plans no {}: it has nothing to copy or add on the way", kind),
              collective.kind == CollectiveKind::gather || collective.kind == CollectiveKind::scatter
                  ? "use the planner packing"
                  : "use the planner pairwise");
}

/// Turns trees over nodes into trees over ranks and relays.
class ForestMaker {
 public:
  explicit ForestMaker(const Topology& topology) : topology_(topology) {}

  Forest make(const std::vector<WeightedRelayTrees>& trees) {
    for (const WeightedRelayTrees& each : trees) {
      if (each.in) forest_.in_trees.push_back(convert(*each.in, each.weight));
      if (each.out) forest_.out_trees.push_back(convert(*each.out, each.weight));
    }
    return std::move(forest_);
  }

 private:
  Rank end_of(NodeId node) {
    if (topology_.node(node).is_rank) return topology_.rank_of(node);
    const auto [found, is_new] = relays_.try_emplace(node, Rank(topology_.rank_count() + relays_.size()));
    if (is_new) forest_.relays.push_back(node);
    return found->second;
  }

  Arborescence convert(const RelayTree& tree, std::int64_t weight) {
    Arborescence converted{end_of(tree.root), weight, {}};
    for (const RelayHop& hop : tree.hops) converted.edges.push_back({end_of(hop.parent), end_of(hop.child), hop.links});
    return converted;
  }

  const Topology& topology_;
  std::map<NodeId, Rank> relays_;
  Forest forest_;
};

}  // namespace

Result<Schedule> plan_innetwork(const Topology& topology, const Collective& collective) {
  if (auto checked = check_kind(topology, collective); !checked) return tl::unexpected(checked.error());
  if (auto reached = check_reachable(topology); !reached) return tl::unexpected(reached.error());
  const std::size_t ranks = topology.rank_count();
  if (ranks == 1) return schedule_from_trees(collective, topology, "innetwork", {});
  if (const std::size_t most = slices_have_rank(collective.kind) ? max_roots : max_switch_ranks; ranks > most) {
    return fail(ErrorCode::too_large,
                fmt::format("innetwork plans {} on up to {} ranks", to_string(collective.kind), most),
                "use the planner packing");
  }
  const auto adds_and_copies = [](const Node& node) { return node.multicast && node.reduction; };
  if (collective.kind == CollectiveKind::all_reduce && topology.first_relaying().is_none() &&
      std::ranges::none_of(topology.nodes(), adds_and_copies)) {
    return fail(
        ErrorCode::unsupported,
        fmt::format("no rank of {} may relay, and no switch both copies and adds: an all_reduce's trees have no "
                    "root",
                    topology.name()),
        "use packing or oneshot, let one rank relay, or declare a switch with multicast: true and reduction: true");
  }
  const std::vector<WeightedRelayTrees> trees = find_relay_trees(topology, collective);
  if (trees.empty()) {
    return fail(ErrorCode::unsupported, "innetwork finds no trees around the ranks that must not relay",
                "use the planner flat");
  }
  const Result<Forest> dealt = in_proportion(ForestMaker(topology).make(trees), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, topology, "innetwork", *dealt);
}

}  // namespace espalier::planners
