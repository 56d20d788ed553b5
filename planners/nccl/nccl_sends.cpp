#include "planners/nccl/nccl_sends.h"

#include <algorithm>
#include <iterator>
#include <limits>
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

  /// The most parallel routes that any two ranks have; 0 where two that have to talk have none.
  [[nodiscard]] std::uint32_t max_parallel(std::span<const Rank> roots) const {
    std::uint32_t most = 1;
    for (const Rank root : roots) {
      for (std::size_t i = 0; i < graph_.rank_count(); ++i) {
        if (Rank(i) == root) continue;
        const std::span<const Hop> hops = inwards_ ? graph_.hops(Rank(i), root) : graph_.hops(root, Rank(i));
        if (hops.empty()) return 0;
        if (hops.size() > most) most = std::max(most, count_parallel(graph_.topology(), hops));
      }
    }
    return most;
  }

  /// The root's neighbours in a circle from it on, so that not all begin with the same one.
  Arborescence make(Rank root) {
    Arborescence tree{root, 1, {}};
    for (std::size_t i = 1; i < graph_.rank_count(); ++i) {
      const Rank other((root.index() + i) % graph_.rank_count());
      tree.edges.push_back({root, other, inwards_ ? route(other, root) : route(root, other)});
    }
    return tree;
  }

 private:
  std::vector<LinkId> route(Rank from, Rank to) {
    const Hop* best = nullptr;
    double least = 0;
    for (const Hop* hop : cheapest(graph_.hops(from, to))) {
      double load = 0;
      for (const LinkId link : hop->links) {
        load = std::max(load, (loads_[link.index()] + 1) / rate_of(graph_.topology(), link));
      }
      if (best != nullptr && load >= least) continue;
      best = hop;
      least = load;
    }
    for (const LinkId link : best->links) loads_[link.index()] += 1;
    return best->links;
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
  for (const Rank root : roots) {
    for (std::size_t strand = 0; strand < strands; ++strand) {
      (is_gather ? forest.in_trees : forest.out_trees).push_back(trees.make(root));
    }
  }
  const Result<Forest> dealt = in_proportion(std::move(forest), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, problem.topology(), "nccl/p2p", *dealt);
}

}  // namespace espalier::planners
