#include "planners/nccl/nccl_sends.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "planners/classic/classic.h"
#include "planners/classic/partners.h"
#include "planners/graph/logical_graph.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {
namespace {

constexpr std::size_t max_sending_ranks = 1024;
constexpr std::size_t max_pieces = std::size_t{1} << 20U;  ///< Of all blocks together.

std::uint32_t variants_for(std::size_t ranks) {
  constexpr std::size_t few = 64, many = 512;
  return ranks <= few ? 8 : ranks <= many ? 4 : 1;
}

double rate_of(const Topology& topology, LinkId link) {
  return static_cast<double>(topology.link(link).bandwidth().bytes_per_second);
}

/// The routes that none is cheaper than.
std::vector<const Hop*> cheapest(std::span<const Hop> hops) {
  std::int64_t least = std::numeric_limits<std::int64_t>::max();
  for (const Hop& hop : hops) least = std::min(least, hop.cost);
  std::vector<const Hop*> found;
  for (const Hop& hop : hops) {
    if (hop.cost == least) found.push_back(&hop);
  }
  return found;
}

/// How many of the cheapest routes from rank to rank have narrowest links of their own.
std::uint32_t count_parallel(const Topology& topology, std::span<const Hop> hops) {
  std::set<LinkId> taken;
  std::uint32_t count = 0;
  for (const Hop* hop : cheapest(hops)) {
    const auto rate = [&](LinkId link) { return rate_of(topology, link); };
    const double least = rate(*std::ranges::min_element(hop->links, {}, rate));
    std::vector<LinkId> narrow;
    std::ranges::copy_if(hop->links, std::back_inserter(narrow), [&](LinkId link) { return rate(link) == least; });
    if (std::ranges::any_of(narrow, [&](LinkId link) { return taken.contains(link); })) continue;
    taken.insert(narrow.begin(), narrow.end());
    ++count;
  }
  return count;
}

/// Makes the trees of blocks, stars around their roots, along the least loaded of the cheapest routes.
class SendTrees {
 public:
  SendTrees(const LogicalGraph& graph, bool inwards)
      : graph_(graph), inwards_(inwards), loads_(graph.topology().link_count(), 0.0) {}

  /// The most parallel routes that any two ranks have; 1 where a rank in between is needed for some that have to talk,
  /// 0 where one is not enough.
  [[nodiscard]] std::uint32_t max_parallel(std::span<const Rank> roots) const {
    std::uint32_t most = 1;
    bool relays = false;
    for (const Rank root : roots) {
      for (std::size_t i = 0; i < graph_.rank_count(); ++i) {
        if (Rank(i) == root) continue;
        const std::span<const Hop> hops = hops_between(root, Rank(i));
        if (hops.empty() && relays_between(root, Rank(i)).empty()) return 0;
        relays = relays || hops.empty();
        if (hops.size() > most) most = std::max(most, count_parallel(graph_.topology(), hops));
      }
    }
    return relays ? 1 : most;
  }

  /// The root's neighbours in a circle from it on, so that not all begin with the same one; then those that it reaches
  /// through one of these, as NCCL does over NVLink (PATH_NVB in src/graph/paths.cc).
  Arborescence make(Rank root) {
    Arborescence tree{root, 1, {}};
    std::vector<Rank> far;
    for (std::size_t i = 1; i < graph_.rank_count(); ++i) {
      const Rank other((root.index() + i) % graph_.rank_count());
      if (hops_between(root, other).empty()) {
        far.push_back(other);
        continue;
      }
      tree.edges.push_back({root, other, min_loaded(root, other).links});
      count(tree.edges.back().links, 1);
    }
    for (const Rank other : far) {
      tree.edges.push_back({relays_between(root, other).front(), other, {}});
      choose_relay(tree, tree.edges.back());
    }
    return tree;
  }

  /// Sends what goes over the fullest links over others again, knowing of all, while that helps: a network with a link
  /// more is not to be fuller for the order in which blocks took their routes.
  void spread(std::vector<Arborescence>& trees) {
    constexpr std::size_t max_looks = std::size_t{1} << 18U;
    std::size_t looks = 0;
    for (bool has_moved = true; has_moved && looks < max_looks;) {
      has_moved = false;
      for (Arborescence& tree : trees) {
        const bool relays = !tree.edges.empty() && tree.edges.back().parent != tree.root;
        for (TreeEdge& edge : tree.edges) {
          if (edge.parent != tree.root) {
            has_moved = move_relay(tree, edge) || has_moved;
          } else if (!relays) {
            has_moved = move(edge) || has_moved;
          }
        }
        looks += tree.edges.size();
      }
    }
  }

 private:
  struct Fullness {
    double fullest = 0;  ///< Of the route's links, with one piece more.
    double sum = 0;      ///< Of what all its links then take.
    friend auto operator<=>(const Fullness&, const Fullness&) = default;
  };

  /// From the end that is nearer to a tree's root to the other one, or back.
  [[nodiscard]] std::span<const Hop> hops_between(Rank near, Rank far) const {
    return inwards_ ? graph_.hops(far, near) : graph_.hops(near, far);
  }

  [[nodiscard]] std::vector<Rank> relays_between(Rank root, Rank far) const {
    std::vector<Rank> found;
    for (std::size_t i = 0; i < graph_.rank_count(); ++i) {
      const Rank relay(i);
      if (relay == root || relay == far || !graph_.topology().may_relay(relay)) continue;
      if (!hops_between(root, relay).empty() && !hops_between(relay, far).empty()) found.push_back(relay);
    }
    return found;
  }

  [[nodiscard]] Fullness fullness_of(std::span<const LinkId> links) const {
    Fullness found;
    for (const LinkId link : links) {
      const double load = (loads_[link.index()] + 1) / rate_of(graph_.topology(), link);
      found.fullest = std::max(found.fullest, load);
      found.sum += load;
    }
    return found;
  }

  [[nodiscard]] const Hop& min_loaded(Rank near, Rank far) const {
    const std::vector<const Hop*> hops = cheapest(hops_between(near, far));
    return **std::ranges::min_element(hops, {}, [&](const Hop* hop) { return fullness_of(hop->links).fullest; });
  }

  void count(std::span<const LinkId> links, double pieces) {
    for (const LinkId link : links) loads_[link.index()] += pieces;
  }

  /// What a block takes on its way to its relay.
  static const std::vector<LinkId>& links_to(const Arborescence& tree, Rank relay) {
    return std::ranges::find(tree.edges, relay, &TreeEdge::child)->links;
  }

  /// Counts what the block takes by the relay that is least full.
  Fullness choose_relay(const Arborescence& tree, TreeEdge& edge) {
    std::optional<Fullness> least;
    for (const Rank relay : relays_between(tree.root, edge.child)) {
      const Hop& hop = min_loaded(relay, edge.child);
      const Fullness to = fullness_of(links_to(tree, relay)), from = fullness_of(hop.links);
      const Fullness both{std::max(to.fullest, from.fullest), to.sum + from.sum};
      if (least && !(both < *least)) continue;
      least = both;
      edge.parent = relay;
      edge.links = hop.links;
    }
    count(edge.links, 1);
    count(links_to(tree, edge.parent), 1);
    return *least;
  }

  /// True where another relay is less full.
  bool move_relay(const Arborescence& tree, TreeEdge& edge) {
    const std::vector<LinkId>& before = links_to(tree, edge.parent);
    count(edge.links, -1);
    count(before, -1);
    const Fullness to = fullness_of(before), from = fullness_of(edge.links);
    const Fullness was{std::max(to.fullest, from.fullest), to.sum + from.sum};
    return choose_relay(tree, edge) < was;
  }

  /// True where another route is less full. Requires: nothing is relayed behind the edge.
  bool move(TreeEdge& edge) {
    const std::span<const Hop> hops = hops_between(edge.parent, edge.child);
    if (hops.size() < 2) return false;
    count(edge.links, -1);
    Fullness least = fullness_of(edge.links);
    bool has_moved = false;
    for (const Hop* hop : cheapest(hops)) {
      const Fullness fullness = fullness_of(hop->links);
      if (!(fullness < least)) continue;
      least = fullness;
      edge.links = hop->links;
      has_moved = true;
    }
    count(edge.links, 1);
    return has_moved;
  }

  const LogicalGraph& graph_;
  bool inwards_;
  std::vector<double> loads_;  ///< By link, in pieces.
};

}  // namespace

Result<Schedule> plan_sends(const PlanningProblem& problem, const Collective& collective) {
  const CollectiveKind kind = collective.kind;
  const std::size_t n = collective.rank_count;
  const bool is_gather = kind == CollectiveKind::gather;
  if (!is_gather && kind != CollectiveKind::scatter && !slices_have_destination(kind)) {
    return fail(ErrorCode::unsupported, "NCCL has algorithms of its own for " + std::string(to_string(kind)),
                "use nccl/ring");
  }
  if (!has_root(kind) && n > max_sending_ranks) {
    return fail(ErrorCode::too_large, "sends between more than " + std::to_string(max_sending_ranks) + " ranks",
                "use pairwise");
  }
  std::vector<Rank> roots;
  for (std::size_t i = 0; i < n; ++i) {
    if (collective.root.is_none() || collective.root == Rank(i)) roots.emplace_back(i);
  }
  SendTrees trees(problem.logical_graph(Direction::forward, small_message, variants_for(n)), is_gather);
  const std::uint32_t parallel = trees.max_parallel(roots);
  if (parallel == 0) return plan_flat(problem, collective);
  const std::size_t strands = std::clamp<std::size_t>(max_pieces / (n * roots.size()), 1, parallel);
  Forest forest;
  std::vector<Arborescence>& made = is_gather ? forest.in_trees : forest.out_trees;
  for (const Rank root : roots) {
    for (std::size_t strand = 0; strand < strands; ++strand) made.push_back(trees.make(root));
  }
  trees.spread(made);
  const Result<Forest> dealt = in_proportion(std::move(forest), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, problem.topology(), "nccl/p2p", *dealt);
}

}  // namespace espalier::planners
