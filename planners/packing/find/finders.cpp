#include "planners/packing/find/finders.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <utility>

#include "base/check.h"
#include "planners/lp/trees/even_trees.h"
#include "planners/lp/trees/program_forest.h"
#include "planners/packing/find/route_trees.h"
#include "planners/packing/find/shallow_tree_search.h"
#include "planners/packing/find/tree_program.h"
#include "planners/packing/realize_trees.h"
#include "planners/packing/reduce/machine_quotient.h"
#include "planners/packing/reduce/parallel_switches.h"
#include "planners/packing/reduce/root_network.h"
#include "planners/packing/select.h"
#include "planners/packing/split/pack_trees.h"
#include "planners/packing/split/split_switches.h"
#include "planners/ring/ring.h"
#include "planners/ring/ring_forest.h"

namespace espalier::planners {

namespace {

/// What splitting may cost in arcs that flows pass: some ten seconds.
constexpr std::int64_t max_arcs_passed = std::int64_t{1} << 31U;
/// With so many routed trees of a root no others are looked for.
constexpr std::size_t few_routed_trees = 8;

tl::unexpected<Error> nothing(const char* why) { return fail(ErrorCode::unsupported, why, ""); }

template <class Found>
Result<Found> or_nothing(std::optional<Found> found, const char* why) {
  if (!found) return nothing(why);
  return *std::move(found);
}

/// The steps of a finder that sees every link and takes trees as they are found.
struct OnLinks {
  struct Links {};
  static Result<Links> reduce(const PackingProblem& /*problem*/) { return Links{}; }
  template <class Reduced, class Found>
  static void improve(const Reduced& /*reduced*/, const Found& /*found*/) {}
  static Result<Trees> lift(const PackingProblem& /*problem*/, Links /*reduced*/, Trees& found) {
    return std::move(found);
  }
};

/// Routes may lead on from ranks that must not relay, where these have children only in trees of their own.
Result<Trees> along_routes(const PackingProblem& problem, std::optional<Trees> trees) {
  const auto relays = [&](const Arborescence& tree) {
    return std::ranges::any_of(tree.edges, [&](const TreeEdge& edge) {
      return edge.parent != tree.root && !problem.topology().may_relay(edge.parent);
    });
  };
  if (trees && !problem.all_relay() && std::ranges::any_of(*trees, relays)) trees.reset();
  return or_nothing(std::move(trees), "no trees along the shortest routes fit");
}

bool wants_routes(const PackingProblem& problem, const BestTrees& best) {
  return problem.all_roots() && problem.scaled && !best;
}

struct Routes : OnLinks {
  static Result<Trees> find(const PackingProblem& problem, Links /*reduced*/, const BestTrees& /*best*/) {
    const ScaledNetwork& scaled = *problem.scaled;
    return along_routes(problem, route_trees(problem.topology(), problem.direction, scaled.capacities, scaled.demands));
  }
};

/// Trees along routes that are wider than a link, where switches have parallel ones to share them with.
struct Planes : OnLinks {
  static Result<ParallelSwitches> reduce(const PackingProblem& problem) {
    ParallelSwitches parallel(problem.topology());
    const bool fits = !parallel.empty() && problem.scaled->capacities.size() == problem.topology().link_count();
    return or_nothing(fits ? std::optional(std::move(parallel)) : std::nullopt, "no switches have parallel ones");
  }
  static Result<Trees> find(const PackingProblem& problem, const ParallelSwitches& parallel,
                            const BestTrees& /*best*/) {
    std::vector<std::int64_t> wide = problem.scaled->capacities;
    for (std::size_t link = 0; link < wide.size(); ++link) {
      wide[link] *= static_cast<std::int64_t>(parallel.planes(LinkId(link)));
    }
    return along_routes(problem, route_trees(problem.topology(), problem.direction, wide, problem.scaled->demands));
  }
  static Result<Trees> lift(const PackingProblem& problem, const ParallelSwitches& parallel, const Trees& found) {
    constexpr std::size_t max_dealt = 4;
    std::int64_t unit = 0;
    for (const Arborescence& tree : found) unit = std::gcd(unit, tree.weight);
    auto dealt = parallel.lift(problem.scaled->capacities, found, unit);
    if (dealt && max_routed_trees(*dealt) > max_dealt) dealt.reset();
    return or_nothing(std::move(dealt), "trees along the shortest routes are not dealt to few planes");
  }
};

bool wants_one_root(const PackingProblem& problem, const BestTrees& /*best*/) { return !problem.all_roots(); }

/// Trees of one root that grow side by side. What they grow in has the same address until they are lifted.
struct SideBySide {
  using Search = std::unique_ptr<ShallowTreeSearch>;
  template <class Reduced>
  static Result<Search> find(const PackingProblem& /*problem*/, const Reduced& reduced, const BestTrees& /*best*/) {
    auto search = std::make_unique<ShallowTreeSearch>(reduced.network(), reduced.searches());
    if (!search->grow()) return nothing("trees that grow get stuck");
    return search;
  }
  template <class Reduced>
  static void improve(const Reduced& /*reduced*/, const Search& search) {
    search->exchange();
  }
};

template <bool is_wide>
struct Grown : SideBySide {
  struct Reduced {
    ParallelSwitches switches;
    RootNetwork over_links;

    [[nodiscard]] const RootNetwork& network() const { return over_links; }
    /// Where switches are parallel both kinds share the work.
    [[nodiscard]] std::int64_t searches() const { return switches.empty() ? 1 : 2; }
  };
  static Result<Reduced> reduce(const PackingProblem& problem) {
    ParallelSwitches switches(problem.topology());
    auto network = root_network(problem, is_wide ? &switches : nullptr);
    if (!network) return nothing("too many ranks, backplanes, or no switches have parallel ones");
    return Reduced{std::move(switches), *std::move(network)};
  }
  static Result<Trees> lift(const PackingProblem& problem, const Reduced& reduced, const Search& search) {
    const ParallelSwitches* parallel = is_wide ? &reduced.switches : nullptr;
    return or_nothing(planners::lift(problem, reduced.over_links, parallel, search->best()), "planes do not fit");
  }
};

struct Machines : SideBySide {
  struct Reduced : MachineQuotient {
    [[nodiscard]] static std::int64_t searches() { return 1; }
  };
  static Result<Reduced> reduce(const PackingProblem& problem) {
    auto machines = MachineQuotient::make(problem);
    if (!machines) return nothing("no machines to see as one, or too many");
    return Reduced{*std::move(machines)};
  }
  static Result<Trees> lift(const PackingProblem& /*problem*/, const Reduced& machines, const Search& search) {
    return or_nothing(machines.lift(search->best()), "trees over machines do not fit");
  }
};

/// What the cut allows may be out of reach where switches give nothing back or unlike rates, and where ranks have
/// backplanes. Only the program knows the best rate there.
bool may_miss_cut(const PackingProblem& problem) { return !trees_reach_cuts(*problem.planning); }

bool reaches_cut(const PackingProblem& problem, const Trees& trees) {
  const BigInteger rate = BigInteger(problem.cut.capacity) * problem.network.capacity_unit();
  const std::int64_t parts = problem.all_roots() && !problem.shares.empty()
                                 ? std::accumulate(problem.shares.begin(), problem.shares.end(), std::int64_t{0})
                                 : static_cast<std::int64_t>(problem.all_roots() ? problem.rank_count() : 1);
  return load_of(problem.topology(), trees) * parts * Rational(rate) <= Rational(BigInteger(problem.cut.parts));
}

bool wants_program(const PackingProblem& problem, const BestTrees& best) {
  if (!problem.scaled) return false;
  if (best) return may_miss_cut(problem) && !reaches_cut(problem, *best);
  return problem.all_roots() || may_miss_cut(problem);
}

/// The program on orbits may need many trees where automorphisms fix ranks.
bool wants_free_program(const PackingProblem& problem, const BestTrees& best) {
  constexpr std::size_t max_ranks_twice = 64;
  return problem.all_roots() && problem.all_relay() && best && max_routed_trees(*best) > few_routed_trees &&
         problem.rank_count() <= max_ranks_twice;
}

/// The linear program on orbits; the trees that are known begin it.
template <Symmetry symmetry>
struct Program {
  static Result<TreeProgram> reduce(const PackingProblem& problem) {
    auto program = TreeProgram::make(*problem.planning, problem.direction, problem.root, symmetry, problem.shares,
                                     *problem.context);
    if (program) return *std::move(program);
    return fail(ErrorCode::too_large,
                fmt::format("trees over {} ranks and {} links with so little symmetry are more than this planner packs",
                            problem.rank_count(), problem.topology().link_count()),
                "use the planner flat");
  }
  static Result<ColumnSolution> find(const PackingProblem& /*problem*/, const TreeProgram& program,
                                     const BestTrees& best) {
    ColumnSolution solution =
        program.solve(0, best ? std::span<const Arborescence>(*best) : std::span<const Arborescence>());
    if (!solution.attained) return nothing("the program is too large");
    return solution;
  }
  static void improve(const TreeProgram& program, ColumnSolution& solution) {
    solution = program.with_fewer_trees(solution);
  }
  static Result<Trees> lift(const PackingProblem& /*problem*/, const TreeProgram& program,
                            const ColumnSolution& solution) {
    return program.lift(solution);
  }
};

/// Past so many ranks splitting takes too long on most networks.
bool wants_rings(const PackingProblem& problem, const BestTrees& best) {
  constexpr std::size_t max_split_ranks = 512;
  return !best && !problem.all_roots() && problem.all_relay() && problem.rank_count() > max_split_ranks;
}

/// Rings cut open at the root: few trees at the bound, if the deepest there are.
struct Rings : OnLinks {
  static Result<Trees> find(const PackingProblem& problem, Links /*reduced*/, const BestTrees& /*best*/) {
    const RingSet rings = find_rings(*problem.planning);
    const Rational rate(BigInteger(problem.cut.capacity) * problem.network.capacity_unit());
    if (rings.rings.empty() || rings.rate() < rate) return nothing("rings do not reach the bound");
    const CollectiveKind kind = problem.inward() ? CollectiveKind::reduce : CollectiveKind::broadcast;
    Forest forest = forest_of_rings(rings, {kind, static_cast<std::uint32_t>(problem.rank_count()), problem.root});
    return problem.inward() ? std::move(forest.in_trees) : std::move(forest.out_trees);
  }
};

bool wants_splitting(const PackingProblem& problem, const BestTrees& best) {
  return !best && (!problem.all_roots() || problem.all_relay() || !problem.scaled);
}

/// Trees between ranks alone, on a graph that has lost its switches.
struct Splitting : OnLinks {
  struct Reduced {
    CapacityGraph graph;
    std::vector<std::int64_t> demands;
    WorkBudget budget;
  };
  static Result<Reduced> reduce(const PackingProblem& problem) {
    if (!problem.scaled) return tl::unexpected(problem.scaled.error());
    WorkBudget budget(max_arcs_passed);
    auto scaled = balanced(problem, budget);
    if (!scaled) return tl::unexpected(scaled.error());
    CapacityGraph graph(problem.network, scaled->capacities);
    if (!split_switches(graph, problem.network, scaled->demands, budget)) return too_much_work(problem, budget);
    return Reduced{std::move(graph), std::move(scaled->demands), budget};
  }
  static Result<Trees> find(const PackingProblem& problem, Reduced& reduced, const BestTrees& /*best*/) {
    auto trees = pack_trees(rank_edges(problem.network, reduced.graph), reduced.demands, reduced.budget);
    if (!trees) return too_much_work(problem, reduced.budget);
    return *std::move(trees);
  }
  static Result<Trees> lift(const PackingProblem& problem, Reduced& reduced, const Trees& found) {
    return realize_trees(problem.network, reduced.graph, found);
  }

 private:
  static tl::unexpected<Error> too_much_work(const PackingProblem& problem, const WorkBudget& budget) {
    ESPALIER_CHECK(budget.is_spent(), "a packing within the budget is found");
    return fail(ErrorCode::too_large,
                fmt::format("an exact packing for {} ranks and {} links is more work than this planner does",
                            problem.rank_count(), problem.topology().link_count()),
                "use the planner ring or tree");
  }
};

/// An answer that is near the bound where no exact one is found; schedules of more ranks get long.
bool wants_even_trees(const PackingProblem& problem, const BestTrees& best) {
  constexpr std::size_t max_ranks = 512;
  return !best && problem.all_roots() && problem.shares.empty() && problem.all_relay() &&
         problem.rank_count() <= max_ranks;
}

/// One tree per root, all of equal weight.
struct EvenRoots {
  using Orbits = std::shared_ptr<const OrbitGraph>;
  static Result<Orbits> reduce(const PackingProblem& problem) {
    return problem.planning->orbit_graph(false, Symmetry::none);
  }
  static Result<EvenTrees> find(const PackingProblem& problem, const Orbits& orbits, const BestTrees& /*best*/) {
    const Rational rate(BigInteger(problem.cut.capacity) * problem.network.capacity_unit(),
                        BigInteger(problem.cut.parts));
    const Rational limit = rate * static_cast<std::int64_t>(problem.rank_count()) / orbits->graph.unit;
    return find_even_trees_of_all(orbits->graph, problem.inward(), limit.convert_to<double>());
  }
  static void improve(const Orbits& /*orbits*/, const EvenTrees& /*found*/) {}
  static Result<Trees> lift(const PackingProblem& problem, const Orbits& orbits, const EvenTrees& found) {
    const ResourceGraph& graph = orbits->graph;
    std::vector<ProgramTree> trees;
    std::vector<std::int64_t> passes(graph.capacity.size(), 0);
    for (const auto& edges : problem.inward() ? found.in_trees : found.out_trees) {
      trees.push_back({static_cast<std::uint32_t>(trees.size()), problem.inward(), Rational(1), edges, {}});
      for (const std::uint32_t edge : edges) {
        for (const std::uint32_t resource : graph.edges[edge].resources) ++passes[resource];
      }
    }
    Rational time = 0;
    for (std::size_t r = 0; r < passes.size(); ++r) {
      time = std::max(time, Rational(BigInteger(passes[r]), graph.capacity[r] * graph.unit));
    }
    Forest forest = whole_forest(problem.topology(), graph, trees, time);
    return problem.inward() ? std::move(forest.in_trees) : std::move(forest.out_trees);
  }
};

constexpr Finder table[] = {
    {"routes", wants_routes, propose<Routes>},                               // all roots, one or two hops
    {"planes", wants_routes, propose<Planes>},                               // the same, wider than a link
    {"grown", wants_one_root, propose<Grown<false>>},                        // one root, over ranks
    {"grown planes", wants_one_root, propose<Grown<true>>},                  // the same, wider than a link
    {"machines", wants_one_root, propose<Machines>},                         // one root, over whole machines
    {"program", wants_program, propose<Program<Symmetry::any>>},             // symmetric and small networks
    {"free program", wants_free_program, propose<Program<Symmetry::free>>},  // where that makes many trees
    {"rings", wants_rings, propose<Rings>},                                  // one root of very many ranks
    {"splitting", wants_splitting, propose<Splitting>},                      // any network within the budget
    {"even", wants_even_trees, propose<EvenRoots>},                          // all roots, near the bound
};

}  // namespace

std::span<const Finder> finders() { return table; }

}  // namespace espalier::planners
