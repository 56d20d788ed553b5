#include "planners/packing/find/finders.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "planners/packing/find/machine_trees.h"
#include "planners/packing/find/program_trees.h"
#include "planners/packing/find/route_trees.h"
#include "planners/packing/find/shallow_root_trees.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/reduce/parallel_switches.h"
#include "planners/packing/select.h"
#include "planners/packing/split/pack_trees.h"
#include "planners/packing/split/split_switches.h"
#include "planners/ring/ring.h"
#include "planners/ring/ring_forest.h"

namespace espalier::planners {

namespace {

using Trees = std::vector<Arborescence>;

/// What splitting may cost in arcs that flows pass: some ten seconds.
constexpr std::int64_t most_arcs_passed = std::int64_t{1} << 31U;
/// With so many routed trees of a root no others are looked for.
constexpr std::size_t few_routed_trees = 8;

Result<Trees> proposed(std::optional<Trees> trees, const char* what) {
  if (!trees) return fail(ErrorCode::unsupported, what, "");
  return *std::move(trees);
}

/// Routes may lead on from ranks that must not relay, where these have children only in trees of their own.
Result<Trees> along_routes(const PackingProblem& problem, std::optional<Trees> trees) {
  const auto relays = [&](const Arborescence& tree) {
    return std::ranges::any_of(tree.edges, [&](const TreeEdge& edge) {
      return edge.parent != tree.root && !problem.topology().may_relay(edge.parent);
    });
  };
  if (trees && !problem.all_relay() && std::ranges::any_of(*trees, relays)) trees.reset();
  return proposed(std::move(trees), "no trees along the shortest routes fit");
}

bool wants_routes(const PackingProblem& problem, const BestTrees& best) {
  return problem.all_roots() && problem.scaled && !best;
}

Result<Trees> propose_routes(const PackingProblem& problem, const BestTrees& /*best*/) {
  const ScaledNetwork& scaled = *problem.scaled;
  return along_routes(problem, route_trees(problem.topology(), problem.direction, scaled.capacities, scaled.demands));
}

/// Trees along routes that are wider than a link, where switches have parallel ones to share them with.
Result<Trees> propose_planes(const PackingProblem& problem, const BestTrees& /*best*/) {
  constexpr std::size_t most_dealt = 4;
  const Topology& topology = problem.topology();
  const std::vector<std::int64_t>& capacities = problem.scaled->capacities;
  const ParallelSwitches parallel(topology);
  if (parallel.empty() || capacities.size() != topology.link_count())
    return proposed({}, "no switches have parallel ones");
  std::vector<std::int64_t> wide = capacities;
  for (std::size_t link = 0; link < wide.size(); ++link) {
    wide[link] *= static_cast<std::int64_t>(parallel.planes(LinkId(link)));
  }
  const auto trees = route_trees(topology, problem.direction, wide, problem.scaled->demands);
  if (!trees) return proposed({}, "no trees along the shortest routes fit");
  std::int64_t unit = 0;
  for (const Arborescence& tree : *trees) unit = std::gcd(unit, tree.weight);
  auto dealt = parallel.lift(capacities, *trees, unit);
  if (dealt && most_routed_trees(*dealt) > most_dealt) dealt.reset();
  return along_routes(problem, std::move(dealt));
}

bool wants_one_root(const PackingProblem& problem, const BestTrees& /*best*/) { return !problem.all_roots(); }

Result<Trees> propose_grown(const PackingProblem& problem, const BestTrees& /*best*/) {
  return proposed(shallow_root_trees(problem, false), "trees that grow get stuck");
}

Result<Trees> propose_grown_planes(const PackingProblem& problem, const BestTrees& /*best*/) {
  return proposed(shallow_root_trees(problem, true), "no switches have parallel ones, or trees that grow get stuck");
}

Result<Trees> propose_machines(const PackingProblem& problem, const BestTrees& /*best*/) {
  return proposed(machine_trees(problem), "trees over machines do not fit");
}

/// For one root only where ranks must not relay: if one gives nothing back to its switch only the program knows the
/// best rate.
bool wants_program(const PackingProblem& problem, const BestTrees& best) {
  return problem.scaled && !best && (problem.all_roots() || !problem.all_relay());
}

Result<Trees> propose_program(const PackingProblem& problem, const BestTrees& /*best*/) {
  auto trees = program_trees(*problem.planning, problem.direction, problem.root, Symmetry::any, problem.shares,
                             *problem.context);
  if (trees) return *std::move(trees);
  return fail(ErrorCode::too_large,
              fmt::format("trees over {} ranks and {} links with so little symmetry, some of whose ranks must not "
                          "relay, are more than this planner packs",
                          problem.rank_count(), problem.topology().link_count()),
              "use the planner flat");
}

/// The program on orbits may need many trees where automorphisms fix ranks.
bool wants_free_program(const PackingProblem& problem, const BestTrees& best) {
  constexpr std::size_t most_ranks_twice = 64;
  return problem.all_roots() && problem.all_relay() && best && most_routed_trees(*best) > few_routed_trees &&
         problem.rank_count() <= most_ranks_twice;
}

/// No images of a tree for one root; the trees that are known begin it.
Result<Trees> propose_free_program(const PackingProblem& problem, const BestTrees& best) {
  return proposed(program_trees(*problem.planning, problem.direction, Rank(), Symmetry::free, problem.shares,
                                *problem.context, *best),
                  "the program is too large");
}

/// Past so many ranks splitting takes too long on most networks.
bool wants_rings(const PackingProblem& problem, const BestTrees& best) {
  constexpr std::size_t most_split_ranks = 512;
  return !best && !problem.all_roots() && problem.all_relay() && problem.rank_count() > most_split_ranks;
}

/// Rings cut open at the root: few trees at the bound, if the deepest there are.
Result<Trees> propose_rings(const PackingProblem& problem, const BestTrees& /*best*/) {
  const RingSet rings = find_rings(*problem.planning);
  const Rational rate(BigInteger(problem.cut.capacity) * problem.network.capacity_unit());
  if (rings.rings.empty() || rings.rate() < rate) return proposed({}, "rings do not reach the bound");
  const CollectiveKind kind = problem.inward() ? CollectiveKind::reduce : CollectiveKind::broadcast;
  Forest forest = forest_of_rings(rings, {kind, static_cast<std::uint32_t>(problem.rank_count()), problem.root});
  return problem.inward() ? std::move(forest.in_trees) : std::move(forest.out_trees);
}

bool wants_splitting(const PackingProblem& problem, const BestTrees& best) {
  return !best && (!problem.all_roots() || problem.all_relay() || !problem.scaled);
}

Result<Trees> propose_splitting(const PackingProblem& problem, const BestTrees& /*best*/) {
  if (!problem.scaled) return tl::unexpected(problem.scaled.error());
  WorkBudget budget(most_arcs_passed);
  const auto scaled = balanced(problem, budget);
  if (!scaled) return tl::unexpected(scaled.error());
  CapacityGraph graph(problem.network, scaled->capacities);
  if (split_switches(graph, problem.network, scaled->demands, budget)) {
    const auto trees = pack_trees(rank_edges(problem.network, graph), scaled->demands, budget);
    if (trees) return realize_trees(problem.network, graph, *trees);
  }
  ESPALIER_CHECK(budget.is_spent(), "a packing within the budget is found");
  return fail(ErrorCode::too_large,
              fmt::format("an exact packing for {} ranks and {} links is more work than this planner does",
                          problem.rank_count(), problem.topology().link_count()),
              "use the planner ring or tree");
}

constexpr Finder table[] = {
    {"routes", wants_routes, propose_routes},                    // all roots, one or two hops
    {"planes", wants_routes, propose_planes},                    // the same, wider than a link
    {"grown", wants_one_root, propose_grown},                    // one root, over ranks
    {"grown planes", wants_one_root, propose_grown_planes},      // the same, wider than a link
    {"machines", wants_one_root, propose_machines},              // one root, over whole machines
    {"program", wants_program, propose_program},                 // symmetric and small networks
    {"free program", wants_free_program, propose_free_program},  // where that makes many trees
    {"rings", wants_rings, propose_rings},                       // one root of very many ranks
    {"splitting", wants_splitting, propose_splitting},           // any network within the budget
};

}  // namespace

std::span<const Finder> finders() { return table; }

}  // namespace espalier::planners
