#include "planners/tree/tree.h"

#include <algorithm>
#include <limits>

#include "planners/tree/spanning_tree.h"
#include "schedule/trees/tree_schedule.h"

namespace espalier::planners {

namespace {

constexpr Bytes medium_tree_message{1 << 18};
constexpr std::size_t max_ranks_of_all_roots = 2048;

/// As many routes between two ranks as the first one has ports, within reason.
std::uint32_t route_variants(const Topology& topology) {
  const auto ports = static_cast<std::uint32_t>(topology.out_links(topology.node_of(Rank(0))).size());
  return std::clamp(ports, 8U, 24U);
}

/// All strategies' trees, the most likely first.
std::vector<SpanningTrees> all_candidates(const TreeDemand& demand) {
  std::vector<SpanningTrees> candidates;
  candidates.push_back(disjoint_trees(demand));
  for (const Inside inside : {Inside::star, Inside::binary, Inside::chain, Inside::grown}) {
    candidates.push_back(double_trees(demand, inside));
  }
  constexpr std::size_t max_ranks_in_one_tier = 128;
  if (!demand.groups.two_levels() || demand.topology.rank_count() <= max_ranks_in_one_tier) {
    for (const bool keeps_routes : {false, true}) candidates.push_back(rank_trees(demand, keeps_routes));
  }
  const bool any =
      std::any_of(candidates.begin(), candidates.end(), [](const SpanningTrees& trees) { return !trees.empty(); });
  constexpr std::size_t small_machine = 32;
  if (any && demand.topology.rank_count() > small_machine) return candidates;
  for (const std::size_t count : {1U, 2U, 4U}) candidates.push_back(grown_trees(demand, count));
  return candidates;
}

std::uint32_t tallest(const SpanningTrees& trees, Rank root) {
  std::uint32_t most = 0;
  for (const SpanningTree& tree : trees) most = std::max(most, height(tree, root.is_none() ? tree.centre : root));
  return most;
}

/// The trees whose fullest link is least loaded; within five percent of that the shallowest, of these the fewest.
SpanningTrees best_candidate(const TreeDemand& demand) {
  constexpr double about_equal = 1.05;
  std::vector<SpanningTrees> candidates = all_candidates(demand);
  std::erase_if(candidates, [](const SpanningTrees& trees) { return trees.empty(); });
  std::vector<double> loads;
  for (const SpanningTrees& trees : candidates) loads.push_back(fullest_link(demand.topology, trees, demand.root));
  double least = loads.empty() ? 0 : *std::min_element(loads.begin(), loads.end());
  // One tree that needs less time than all of these by more than what counts as equal.
  SpanningTrees thick = thick_tree(demand, least > 0 ? about_equal / least : 0);
  if (!thick.empty()) {
    candidates.push_back(std::move(thick));
    loads.push_back(fullest_link(demand.topology, candidates.back(), demand.root));
    least = std::min(least > 0 ? least : loads.back(), loads.back());
  }
  std::size_t best = candidates.size();
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (loads[i] > about_equal * least) continue;
    const auto rank_of = [&](std::size_t candidate) {
      return std::pair(tallest(candidates[candidate], demand.root), candidates[candidate].size());
    };
    if (best == candidates.size() || rank_of(i) < rank_of(best)) best = i;
  }
  return best == candidates.size() ? SpanningTrees{} : std::move(candidates[best]);
}

/// Past this many transfers each rank's shard takes one pair of trees only, the ranks taking turns.
constexpr std::size_t many_tree_transfers = std::size_t{1} << 21U;

std::vector<Arborescence> orient_all(const SpanningTrees& trees, const Collective& collective, bool outwards) {
  std::vector<Arborescence> oriented;
  if (!collective.root.is_none()) {
    for (const SpanningTree& tree : trees) oriented.push_back(orient(tree, collective.root, outwards));
    return oriented;
  }
  if (collective.kind == CollectiveKind::all_reduce) {
    for (const SpanningTree& tree : trees) oriented.push_back(orient(tree, tree.centre, outwards));
    return oriented;
  }
  const std::size_t n = collective.rank_count;
  const bool equal = std::ranges::all_of(trees, [&](const SpanningTree& t) { return t.weight == trees[0].weight; });
  const bool pairs = trees.size() % 2 == 0 && equal && n * n * trees.size() > many_tree_transfers;
  for (std::size_t root = 0; root < n; ++root) {
    for (std::size_t i = 0; i < trees.size(); ++i) {
      if (pairs && root % (trees.size() / 2) != i / 2) continue;
      oriented.push_back(orient(trees[i], Rank(root), outwards));
    }
  }
  return oriented;
}

Result<void> check_collective(const Collective& collective) {
  switch (collective.kind) {
    case CollectiveKind::all_reduce:
    case CollectiveKind::broadcast:
    case CollectiveKind::reduce: return {};
    case CollectiveKind::all_gather:
    case CollectiveKind::reduce_scatter:
      if (collective.rank_count <= max_ranks_of_all_roots) return {};
      return fail(ErrorCode::too_large,
                  "tree roots its trees at each of " + std::to_string(collective.rank_count) + " ranks; its limit is " +
                      std::to_string(max_ranks_of_all_roots),
                  "use ring, recursive or bruck");
    case CollectiveKind::gather:
    case CollectiveKind::scatter:
      return fail(ErrorCode::unsupported, "tree does not plan " + std::string(to_string(collective.kind)),
                  "use flat or binomial, which send every rank its own shard");
    default:
      return fail(ErrorCode::unsupported, "tree does not plan " + std::string(to_string(collective.kind)),
                  "use pairwise");
  }
}

}  // namespace

Result<Schedule> plan_tree(const PlanningProblem& problem, const Collective& collective) {
  const Topology& topology = problem.topology();
  if (auto checked = check_collective(collective); !checked) return tl::unexpected(checked.error());
  Forest forest;
  if (collective.rank_count > 1) {
    const RankGroups groups = group_ranks(topology);
    const std::uint32_t variants = collective.rank_count <= 256 ? route_variants(topology) : 1;
    const LogicalGraph& graph = problem.logical_graph(Direction::forward, medium_tree_message, variants);
    const SpanningTrees trees = best_candidate({topology, groups, graph, collective.root});
    if (trees.empty()) {
      return fail(ErrorCode::unsupported,
                  "tree finds no tree that spans " + topology.name() + " with routes both up and down every branch",
                  "use flat or packing, which work with links in one direction");
    }
    if (reduces(collective.kind)) forest.in_trees = orient_all(trees, collective, false);
    const bool outwards = !reduces(collective.kind) || collective.kind == CollectiveKind::all_reduce;
    if (outwards) forest.out_trees = orient_all(trees, collective, true);
  }
  const Result<Forest> dealt = in_proportion(std::move(forest), collective);
  if (!dealt) return tl::unexpected(dealt.error());
  return schedule_from_trees(collective, topology, "tree", *dealt);
}

}  // namespace espalier::planners
