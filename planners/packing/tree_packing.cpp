#include "planners/packing/tree_packing.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

#include "base/check.h"
#include "planners/bounds/cut_rate.h"
#include "planners/lp/tree_memory.h"
#include "planners/packing/balance_switches.h"
#include "planners/packing/capacity_graph.h"
#include "planners/packing/deal_lanes.h"
#include "planners/packing/few_root_trees.h"
#include "planners/packing/pack_trees.h"
#include "planners/packing/program_trees.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/root_packings.h"
#include "planners/packing/route_trees.h"
#include "planners/packing/split_switches.h"
#include "planners/packing/twin_switches.h"

namespace espalier {
namespace {

/// The sum of capacities and of demands stays below this, so that flows fit 64 bits.
constexpr __int128 most_capacity = std::int64_t{1} << 60U;
/// With so many trees per root nothing is done to find fewer.
constexpr std::size_t few_trees = 8;
/// Past so many ranks trees of equal weight are found sooner.
constexpr std::size_t most_grown_ranks = 80;
/// Capacities are refined up to this much below, which leaves room for scaling them to their rate.
constexpr __int128 most_refined_rate = std::int64_t{1} << 24U;

tl::unexpected<Error> numbers_too_large() {
  return fail(ErrorCode::too_large, "the link rates have so fine a common divisor that the trees' weights pass 2^60",
              "round the rates, or use the planner ring or tree");
}

__int128 greatest_common_divisor(__int128 a, __int128 b) {
  while (b != 0) {
    a %= b;
    std::swap(a, b);
  }
  return a;
}

/// Whole capacities and demands that stand in the ratio of the best rate.
struct Problem {
  std::vector<std::int64_t> capacities;  ///< Per arc.
  std::vector<std::int64_t> demands;     ///< Per rank.
};

/// Which roots the trees have: all ranks, equally or by shares, or one.
struct Roots {
  Rank single;
  std::span<const std::int64_t> shares;  ///< Empty: equal.

  [[nodiscard]] CutRate cut(const FlowNetwork& network) const {
    return single.is_none() ? all_gather_cut(network, shares) : broadcast_cut(network, single);
  }
  [[nodiscard]] std::int64_t share(std::size_t rank) const {
    if (!single.is_none()) return single == Rank(rank) ? 1 : 0;
    return shares.empty() ? 1 : shares[rank];
  }
};

/// Whether ranks that must not relay have no children in trees of other ranks.
bool keeps_relays(const Topology& topology, const std::vector<Arborescence>& trees) {
  return std::ranges::all_of(trees, [&](const Arborescence& tree) {
    return std::ranges::all_of(
        tree.edges, [&](const TreeEdge& edge) { return edge.parent == tree.root || topology.may_relay(edge.parent); });
  });
}

/// Scales the network so that at the rate of its tightest cut every root's demand is a whole number, as small as it can
/// be.
Result<Problem> scale_to_rate(const FlowNetwork& network, const Roots& roots) {
  const CutRate rate = roots.cut(network);
  const __int128 common = greatest_common_divisor(rate.parts, rate.capacity);
  const __int128 factor = rate.parts / common;
  __int128 unit = rate.capacity / common;
  for (const FlowArc& arc : network.arcs()) unit = greatest_common_divisor(unit, arc.capacity);
  const __int128 demand = rate.capacity / common / unit;
  __int128 sum = 0;
  for (const FlowArc& arc : network.arcs()) sum += arc.capacity / unit * factor;
  __int128 shares = 0;
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) shares += roots.share(rank);
  if (sum >= most_capacity || demand >= most_capacity / shares) return numbers_too_large();
  Problem problem;
  for (const FlowArc& arc : network.arcs()) {
    problem.capacities.push_back(static_cast<std::int64_t>(arc.capacity / unit * factor));
  }
  for (std::size_t rank = 0; rank < network.rank_count(); ++rank) {
    problem.demands.push_back(static_cast<std::int64_t>(demand) * roots.share(rank));
  }
  return problem;
}

/// Multiplies capacities by a power of two where they fit, so that they can shrink in proportion.
void refine(std::vector<std::int64_t>& capacities) {
  constexpr int most_doublings = 16;
  __int128 sum = std::accumulate(capacities.begin(), capacities.end(), static_cast<__int128>(0));
  for (int doubling = 0; doubling < most_doublings && sum * 2 < most_capacity / most_refined_rate; ++doubling) {
    for (std::int64_t& capacity : capacities) capacity *= 2;
    sum *= 2;
  }
}

/// A problem with balanced switches: at the full rate where trimming what no rank needs is enough, else at the best
/// rate of the network with its switches shrunk to balance.
Result<Problem> balanced(const FlowNetwork& network, Problem problem, const Roots& roots, WorkBudget& budget) {
  if (switches_are_balanced(network, problem.capacities)) return problem;
  if (auto trimmed = trim_to_balance(network, problem.capacities, problem.demands, budget)) {
    problem.capacities = *std::move(trimmed);
    return problem;
  }
  refine(problem.capacities);
  const FlowNetwork shrunk = network.with_capacities(shrink_to_balance(network, problem.capacities));
  const bool all = roots.single.is_none();
  const std::uint32_t start = network.vertex_of(all ? Rank(0) : roots.single);
  if (!reaches_all_ranks(shrunk, start, true) || (all && !reaches_all_ranks(shrunk, start, false))) {
    return fail(ErrorCode::unsupported, "a switch takes in and gives out so differently that no packing is known",
                "use the planner ring or tree");
  }
  return scale_to_rate(shrunk, roots);
}

/// Packs any network within the budget.
std::optional<std::vector<Arborescence>> pack_exactly(const FlowNetwork& network, const Problem& problem,
                                                      WorkBudget& budget) {
  CapacityGraph graph(network, problem.capacities);
  if (!split_switches(graph, network.rank_vertices(), problem.demands, budget)) return std::nullopt;
  const auto trees = pack_trees(rank_edges(network, graph), problem.demands, budget);
  return trees ? std::optional(realize_trees(network, graph, *trees)) : std::nullopt;
}

std::size_t most_trees_of_a_root(const std::vector<Arborescence>& trees) {
  std::map<Rank, std::size_t> count;
  std::size_t most = 0;
  for (const Arborescence& tree : trees) most = std::max(most, ++count[tree.root]);
  return most;
}

/// Trees along routes that are wider than a link, where switches have twins to share them with; nothing where that does
/// not give few.
std::optional<std::vector<Arborescence>> dealt_routes(const Topology& topology, Direction direction,
                                                      const Problem& problem) {
  constexpr std::size_t most_dealt_trees = 4;
  const TwinSwitches twins(topology);
  if (twins.empty() || problem.capacities.size() != topology.link_count()) return std::nullopt;
  std::vector<std::int64_t> wide = problem.capacities;
  for (std::size_t link = 0; link < wide.size(); ++link) {
    wide[link] *= static_cast<std::int64_t>(twins.lanes(LinkId(link)));
  }
  const auto trees = route_trees(topology, direction, wide, problem.demands);
  if (!trees || !keeps_relays(topology, *trees)) return std::nullopt;
  std::int64_t unit = 0;
  for (const Arborescence& tree : *trees) unit = std::gcd(unit, tree.weight);
  auto dealt = deal_lanes(topology, twins, problem.capacities, *trees, unit);
  return dealt && most_trees_of_a_root(*dealt) <= most_dealt_trees ? std::move(dealt) : std::nullopt;
}

/// Trees from all ranks by the ways that give few and shallow ones; nothing where none of them does. The linear program
/// may need many trees where renamings fix ranks or switches run side by side; then what else may need fewer is tried.
std::optional<std::vector<Arborescence>> pack_elegantly(const Topology& topology, Direction direction, const Problem& problem, const Roots& roots,
                                                        const PlanContext& context) {
  constexpr std::size_t most_ranks_twice = 64;
  if (auto trees = route_trees(topology, direction, problem.capacities, problem.demands);
      trees && keeps_relays(topology, *trees)) {
    if (context.memory != nullptr) context.memory->keep(topology, direction == Direction::reversed, *trees);
    return trees;
  }
  if (auto trees = dealt_routes(topology, direction, problem)) {
    if (context.memory != nullptr) context.memory->keep(topology, direction == Direction::reversed, *trees);
    return trees;
  }
  auto trees = program_trees(topology, direction, Symmetry::any, roots.shares, context);
  if (!topology.first_not_relaying().is_none()) return trees;
  if (!trees || most_trees_of_a_root(*trees) <= few_trees) return trees;
  if (topology.rank_count() <= most_ranks_twice) {
    // No images of a tree for one root; the trees that are known are as good, if many.
    auto single = program_trees(topology, direction, Symmetry::free, roots.shares, context, *trees);
    if (single && most_trees_of_a_root(*single) < most_trees_of_a_root(*trees)) trees = std::move(single);
  }
  return trees;
}

Result<std::vector<Arborescence>> pack(const Topology& topology, Direction direction, const Roots& roots,
                                       const PlanContext& context) {
  const FlowNetwork network = network_of(topology, direction, roots.single);
  Result<Problem> problem = scale_to_rate(network, roots);
  if (!problem) return tl::unexpected(problem.error());
  if (roots.single.is_none()) {
    if (auto trees = pack_elegantly(topology, direction, *problem, roots, context)) return *std::move(trees);
  }
  if (!topology.first_not_relaying().is_none()) {
    if (!roots.single.is_none()) {
      // Where a rank gives nothing back to its switch only the program knows the best rate.
      if (auto trees = program_root_trees(topology, direction, roots.single, context)) return *std::move(trees);
    } else {
      return fail(ErrorCode::too_large,
                  fmt::format("trees over {} ranks and {} links with so little symmetry, some of whose ranks must not "
                              "relay, are more than this planner packs",
                              topology.rank_count(), topology.link_count()),
                  "use the planner flat");
    }
  }
  WorkBudget budget(most_arcs_passed);
  problem = balanced(network, *std::move(problem), roots, budget);
  if (!problem) return tl::unexpected(problem.error());
  if (auto trees = pack_exactly(network, *problem, budget)) return *std::move(trees);
  ESPALIER_CHECK(budget.is_spent(), "a packing within the budget is found");
  return fail(ErrorCode::too_large,
              fmt::format("an exact packing for {} ranks and {} links is more work than this planner does",
                          topology.rank_count(), topology.link_count()),
              "use the planner ring or tree");
}

}  // namespace

Result<std::vector<Arborescence>> pack_all_roots(const Topology& topology, Direction direction,
                                                 std::span<const std::int64_t> shares, const PlanContext& context) {
  return pack(topology, direction, Roots{Rank(), shares}, context);
}

Result<std::vector<Arborescence>> pack_one_root(const Topology& topology, Direction direction, Rank root,
                                                const Rational& gap, const PlanContext& context) {
  if (auto low = lowest_trees(topology, direction, root)) return *std::move(low);
  Result<std::vector<Arborescence>> trees = pack(topology, direction, Roots{root, {}}, context);
  if (!trees) return trees;
  std::size_t count = count_trees(*trees);
  const auto improve = [&](std::optional<std::vector<Arborescence>> fewer) {
    if (!fewer || count_trees(*fewer) >= count) return;
    trees = *std::move(fewer);
    count = count_trees(*trees);
  };
  if (count > few_trees) improve(few_root_trees(topology, direction, root, *trees));
  if (count <= enough_trees) return trees;
  // Grown one by one trees are lower than trees of equal weight, where there are few of both.
  if (topology.rank_count() <= most_grown_ranks) {
    improve(program_root_trees(topology, direction, root, context));
    if (count > enough_trees && gap != 0) improve(few_root_trees(topology, direction, root, *trees, gap));
  }
  if (count > enough_trees) improve(equal_trees(topology, direction, root, gap));
  return trees;
}

}  // namespace espalier
