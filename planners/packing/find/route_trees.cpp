#include "planners/packing/find/route_trees.h"

#include <algorithm>

#include "planners/graph/rank_groups.h"
#include "topology/routes.h"

namespace espalier::planners {
namespace {

constexpr std::size_t max_routed_ranks = 4096;

using RanksByGroup = std::vector<std::vector<Rank>>;

/// The ranks by the first node that they are joined to by their fastest link and that forwards.
RanksByGroup groups_by_switch(const Topology& topology) {
  RanksByGroup groups;
  std::vector<std::size_t> group_of(topology.node_count(), topology.rank_count());
  for (std::size_t i = 0; i < topology.rank_count(); ++i) {
    const NodeId node = topology.node_of(Rank(i));
    NodeId nearest;
    std::int64_t fastest = 0;
    for (const LinkId id : topology.out_links(node)) {
      const Link& link = topology.link(id);
      if (!topology.rank_of(link.head).is_none() || link.bandwidth().bytes_per_second <= fastest) continue;
      nearest = link.head;
      fastest = link.bandwidth().bytes_per_second;
    }
    if (nearest.is_none()) return {};
    std::size_t& group = group_of[nearest.index()];
    if (group == topology.rank_count()) {
      group = groups.size();
      groups.emplace_back();
    }
    groups[group].push_back(Rank(i));
  }
  return groups;
}

RanksByGroup groups_of_one(const Topology& topology) {
  RanksByGroup groups;
  for (std::size_t i = 0; i < topology.rank_count(); ++i) groups.push_back({Rank(i)});
  return groups;
}

/// Where a message of the data goes between two ranks, and how much of it.
struct Leg {
  Rank from, to;  ///< In the direction of the data.
  std::int64_t amount = 0;
};

/// The trees over some groups: from a root to the rank in its place in every other group, and from there, and from the
/// root, to the rest of the group.
class TwoLevels {
 public:
  TwoLevels(const Topology& topology, Direction direction, std::span<const std::int64_t> demands, RanksByGroup groups)
      : topology_(topology),
        inwards_(direction == Direction::reversed),
        demands_(demands),
        groups_(std::move(groups)),
        group_of_(topology.rank_count()),
        links_(topology.rank_count()) {
    for (std::uint32_t group = 0; group < groups_.size(); ++group) {
      for (const Rank rank : groups_[group]) group_of_[rank.index()] = group;
    }
  }

  /// Finds the routes; false when a rank has none that it needs or a link gets more than its capacity.
  bool find_routes(std::span<const std::int64_t> capacities) {
    const std::vector<Leg> legs = count_legs();
    std::vector<std::int64_t> load(topology_.link_count(), 0);
    std::vector<std::optional<FoundRoute>> routes;
    Rank routed;
    for (const Leg& leg : legs) {
      if (leg.from != routed) routes = routes_from(topology_, leg.from);
      routed = leg.from;
      std::optional<FoundRoute>& route = routes[leg.to.index()];
      if (!route) return false;
      for (const LinkId link : route->links) {
        load[link.index()] += leg.amount;
        if (load[link.index()] > capacities[link.index()]) return false;
      }
      links_[leg.from.index()].emplace_back(leg.to, std::move(route->links));
    }
    return true;
  }

  [[nodiscard]] std::vector<Arborescence> trees() const {
    std::vector<Arborescence> trees;
    for (std::size_t i = 0; i < topology_.rank_count(); ++i) {
      if (demands_[i] == 0) continue;
      Arborescence tree{Rank(i), demands_[i], {}};
      const std::vector<Rank> heads = heads_of(Rank(i));
      for (const Rank head : heads) {
        if (head != tree.root) add_edge(tree, tree.root, head);
      }
      for (const Rank head : heads) {
        for (const Rank member : groups_[group_of_[head.index()]]) {
          if (member != head) add_edge(tree, head, member);
        }
      }
      trees.push_back(std::move(tree));
    }
    return trees;
  }

 private:
  /// The rank of every group that gets a root's data first; of the root's own group the root.
  [[nodiscard]] std::vector<Rank> heads_of(Rank root) const {
    const std::vector<Rank>& own = groups_[group_of_[root.index()]];
    const auto place = static_cast<std::size_t>(std::find(own.begin(), own.end(), root) - own.begin());
    std::vector<Rank> heads;
    for (const std::vector<Rank>& group : groups_) heads.push_back(&group == &own ? root : group[place % group.size()]);
    return heads;
  }

  /// All legs, by the rank that sends and then the one that receives.
  [[nodiscard]] std::vector<Leg> count_legs() const {
    std::vector<Leg> legs;
    std::vector<std::int64_t> served(topology_.rank_count(), 0);  // what a rank serves its group
    for (std::size_t i = 0; i < topology_.rank_count(); ++i) {
      if (demands_[i] == 0) continue;
      for (const Rank head : heads_of(Rank(i))) {
        served[head.index()] += demands_[i];
        if (head != Rank(i)) legs.push_back({Rank(i), head, demands_[i]});
      }
    }
    for (std::size_t i = 0; i < topology_.rank_count(); ++i) {
      if (served[i] == 0) continue;
      for (const Rank member : groups_[group_of_[i]]) {
        if (member != Rank(i)) legs.push_back({Rank(i), member, served[i]});
      }
    }
    if (inwards_) {
      for (Leg& leg : legs) std::swap(leg.from, leg.to);
    }
    std::sort(legs.begin(), legs.end(),
              [](const Leg& a, const Leg& b) { return std::pair(a.from, a.to) < std::pair(b.from, b.to); });
    return legs;
  }

  void add_edge(Arborescence& tree, Rank parent, Rank child) const {
    const Rank from = inwards_ ? child : parent;
    const Rank to = inwards_ ? parent : child;
    const auto& sent = links_[from.index()];
    const auto found =
        std::lower_bound(sent.begin(), sent.end(), to, [](const auto& entry, Rank rank) { return entry.first < rank; });
    tree.edges.push_back({parent, child, found->second});
  }

  const Topology& topology_;
  bool inwards_;
  std::span<const std::int64_t> demands_;
  RanksByGroup groups_;
  std::vector<std::uint32_t> group_of_;
  std::vector<std::vector<std::pair<Rank, std::vector<LinkId>>>> links_;  ///< By sender, then in order of receivers.
};

}  // namespace

std::optional<std::vector<Arborescence>> route_trees(const Topology& topology, Direction direction,
                                                     std::span<const std::int64_t> capacities,
                                                     std::span<const std::int64_t> demands) {
  if (topology.rank_count() > max_routed_ranks || capacities.size() != topology.link_count()) return std::nullopt;
  for (RanksByGroup groups : {groups_of_one(topology), group_ranks(topology).groups, groups_by_switch(topology)}) {
    if (groups.empty()) continue;
    TwoLevels levels(topology, direction, demands, std::move(groups));
    if (levels.find_routes(capacities)) return levels.trees();
  }
  return std::nullopt;
}

}  // namespace espalier::planners
