#include "planners/nccl/nccl_pxn.h"

#include <algorithm>
#include <limits>
#include <string>

#include "planners/graph/logical_graph.h"
#include "planners/graph/rank_groups.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {
namespace {

constexpr Bytes message_of_pxn{1 << 18};
constexpr std::uint32_t routes_of_pxn = 4;

/// Makes the trees of blocks: what each rank sends, or what one rank gets.
class PxnTrees {
 public:
  explicit PxnTrees(const PlanningProblem& problem)
      : topology_(problem.topology()),
        machines_(group_domains(topology_)),
        graph_(problem.logical_graph(Direction::forward, message_of_pxn, routes_of_pxn)),
        loads_(topology_.link_count(), 0),
        relayed_(topology_.rank_count(), 0) {}

  /// Empty edges where a route is missing.
  Arborescence out_of(Rank root) {
    Arborescence tree{root, 1, {}};
    std::vector<Rank> relays;
    for_others(root, [&](Rank dst) { relays.push_back(relay(root, dst)); });
    std::size_t next = 0;
    std::vector<TreeEdge> behind;
    for_others(root, [&](Rank dst) {
      const Rank by = relays[next++];
      (by == root ? tree.edges : behind).push_back(edge(by, dst, by, dst));
    });
    tree.edges.insert(tree.edges.end(), behind.begin(), behind.end());
    return tree;
  }

  Arborescence into(Rank root) {
    Arborescence tree{root, 1, {}};
    std::vector<TreeEdge> behind;
    for_others(root, [&](Rank src) {
      const Rank by = relay(src, root);
      if (by == src) {
        tree.edges.push_back(edge(root, src, src, root));
      } else {
        behind.push_back(edge(by, src, src, by));
      }
    });
    tree.edges.insert(tree.edges.end(), behind.begin(), behind.end());
    return tree;
  }

  [[nodiscard]] bool has_relays() const { return has_relays_; }
  [[nodiscard]] bool lacks_routes() const { return lacks_routes_; }

 private:
  template <class Call>
  void for_others(Rank root, const Call& call) const {
    for (std::size_t i = 0; i < topology_.rank_count(); ++i) {
      if (Rank(i) != root) call(Rank(i));
    }
  }

  /// How many links it is from rank to rank.
  [[nodiscard]] std::size_t distance(Rank src, Rank dst) const {
    std::size_t least = std::numeric_limits<std::size_t>::max();
    for (const Hop& hop : graph_.hops(src, dst)) least = std::min(least, hop.links.size());
    return least;
  }

  /// Who sends to `dst` what `src` has for it: `src` itself, or a GPU of its machine that is nearer.
  Rank relay(Rank src, Rank dst) {
    const auto machine = machines_.group_of[src.index()];
    if (machine == machines_.group_of[dst.index()]) return src;
    Rank best = src;
    std::size_t nearest = distance(src, dst);
    for (const Rank other : machines_.groups[machine]) {
      const std::size_t links = distance(other, dst);
      const bool is_nearer = links < nearest;
      const bool is_idler = best != src && links == nearest && relayed_[other.index()] < relayed_[best.index()];
      if ((!is_nearer && !is_idler) || !topology_.may_relay(other)) continue;
      best = other;
      nearest = links;
    }
    if (best == src) return src;
    has_relays_ = true;
    ++relayed_[best.index()];
    return best;
  }

  TreeEdge edge(Rank parent, Rank child, Rank src, Rank dst) {
    const Hop* best = nullptr;
    std::pair<std::size_t, double> least{std::numeric_limits<std::size_t>::max(), 0};
    for (const Hop& hop : graph_.hops(src, dst)) {
      double load = 0;
      for (const LinkId link : hop.links) {
        const auto rate = static_cast<double>(topology_.link(link).bandwidth().bytes_per_second);
        load = std::max(load, static_cast<double>(loads_[link.index()] + 1) / rate);
      }
      if (const std::pair cost{hop.links.size(), load}; best == nullptr || cost < least) {
        best = &hop;
        least = cost;
      }
    }
    if (best == nullptr) {
      lacks_routes_ = true;
      return {parent, child, {}};
    }
    for (const LinkId link : best->links) ++loads_[link.index()];
    return {parent, child, best->links};
  }

  const Topology& topology_;
  RankGroups machines_;
  const LogicalGraph& graph_;
  LinkLoads loads_;
  std::vector<std::uint32_t> relayed_;  ///< By rank: destinations that it sends others' blocks to.
  bool has_relays_ = false;
  bool lacks_routes_ = false;
};

}  // namespace

Result<Schedule> plan_pxn(const PlanningProblem& problem, const Collective& collective) {
  const CollectiveKind kind = collective.kind;
  const bool is_gather = kind == CollectiveKind::gather;
  if (!is_gather && kind != CollectiveKind::scatter && !slices_have_destination(kind)) {
    return fail(ErrorCode::unsupported, "NCCL's PXN is for all_to_all, send_recv, gather and scatter", "use nccl/ring");
  }
  PxnTrees trees(problem);
  Forest forest;
  for (std::uint32_t i = 0; i < collective.rank_count; ++i) {
    if (!collective.root.is_none() && collective.root != Rank(i)) continue;
    if (is_gather) {
      forest.in_trees.push_back(trees.into(Rank(i)));
    } else {
      forest.out_trees.push_back(trees.out_of(Rank(i)));
    }
  }
  if (trees.lacks_routes() || !trees.has_relays()) {
    return fail(ErrorCode::unsupported,
                trees.lacks_routes() ? "two ranks that have to talk have no route to each other"
                                     : "every rank is as near to others' machines as the ranks beside it",
                "use nccl/p2p");
  }
  const Result<Forest> dealt = in_proportion(std::move(forest), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, problem.topology(), "nccl/pxn", *dealt);
}

}  // namespace espalier::planners
