#include "planners/lp/trees/tree_memory.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <sstream>

#include "planners/lp/trees/tree_repair.h"
#include "planners/planner.h"
#include "schedule/json/schedule_json.h"
#include "schedule/loads.h"
#include "schedule/schedule_shape.h"
#include "tests/support/networks/real_machines.h"
#include "topology/generate/generate.h"
#include "topology/reachable.h"
#include "topology/without.h"

namespace espalier::planners {
namespace {

using test::ring_of;

/// Ranks that a tree's paths reach from its root, each once.
std::size_t reached_from(const ResourceGraph& graph, const std::vector<std::uint32_t>& edges, std::uint32_t root,
                         bool inward) {
  std::vector<std::pair<std::uint32_t, std::uint32_t>> ends;  // parent and child
  std::uint32_t source = ResourceGraph::no_rank;
  for (const std::uint32_t e : edges) {
    if (source == ResourceGraph::no_rank) source = graph.node_ranks[graph.edges[e].tail];
    const std::uint32_t target = graph.node_ranks[graph.edges[e].head];
    if (target == ResourceGraph::no_rank) continue;
    ends.emplace_back(inward ? target : source, inward ? source : target);
    source = ResourceGraph::no_rank;
  }
  std::vector<std::uint32_t> open = {root};
  for (std::size_t at = 0; at < open.size() && open.size() <= graph.rank_count(); ++at) {
    for (const auto& [parent, child] : ends) {
      if (parent == open[at]) open.push_back(child);
    }
  }
  return open.size() == ends.size() + 1 ? open.size() : 0;
}

std::uint32_t edge_between(const ResourceGraph& graph, std::uint32_t tail, std::uint32_t head) {
  for (std::uint32_t e = 0; e < graph.edges.size(); ++e) {
    if (graph.edges[e].tail == tail && graph.edges[e].head == head) return e;
  }
  return gone;
}

TEST(TreeRepair, JoinsWhatHangsInTheAirAtItsTop) {
  // A chain 0-1-2-3 around a ring of four that lost 1-2: what hangs below 2 stays there, and 3 is nearest to 0.
  const ResourceGraph graph = make_resource_graph(ring_of(4), false);
  for (const bool inward : {false, true}) {
    const auto edge = [&](std::uint32_t parent, std::uint32_t child) {
      return inward ? edge_between(graph, child, parent) : edge_between(graph, parent, child);
    };
    const auto path = [&](std::uint32_t parent, std::uint32_t child, std::uint32_t e) {
      return RankPath{inward ? child : parent, inward ? parent : child, {e}};
    };
    const auto repaired =
        repair_tree(graph, {path(0, 1, edge(0, 1)), path(1, 2, gone), path(2, 3, edge(2, 3))}, 0, inward);
    ASSERT_TRUE(repaired);
    EXPECT_EQ(reached_from(graph, *repaired, 0, inward), 4U);
    EXPECT_EQ(repaired->front(), edge(0, 1));  // kept
  }
}

TEST(TreeRepair, TurnsRoundWhatIsOnlyReachedBelowItsTop) {
  // A line 0-1-2: when 2 stood above 1, and 2 is cut off, 1 is joined first and 2 below it.
  const ResourceGraph graph = make_resource_graph(test::line_of(3), false);
  const auto repaired = repair_tree(graph, {{0, 2, {gone}}, {2, 1, {edge_between(graph, 2, 1)}}}, 0, false);
  ASSERT_TRUE(repaired);
  EXPECT_EQ(*repaired, (std::vector<std::uint32_t>{edge_between(graph, 0, 1), edge_between(graph, 1, 2)}));
}

TEST(TreeRepair, GivesUpWhereThereIsNoPath) {
  const Topology one_way = *generate_ring({.ranks = 3, .one_way = true});
  const ResourceGraph graph = make_resource_graph(one_way, false);
  ResourceGraph cut = graph;
  for (auto& edges : cut.out_edges) edges.clear();
  EXPECT_FALSE(repair_tree(cut, {}, 0, false));
}

struct SolvedTrees {
  std::shared_ptr<const OrbitGraph> orbits;
  TreeGroups groups;
  ColumnSolution solution;
  std::vector<ColumnRound> rounds;
};

SolvedTrees solve(const Topology& topology, bool inward, const TreeMemory& memory) {
  SolvedTrees solved{std::make_shared<const OrbitGraph>(make_orbit_graph(topology, false, Symmetry::any)), {}, {}, {}};
  solved.groups = sharded_groups(*solved.orbits, inward);
  const TreeOracle oracle(*solved.orbits, solved.groups);
  const std::vector<Column> seeds = memory.seeds(topology, *solved.orbits, oracle);
  ColumnLimits limits;
  limits.shallow = true;
  limits.seeds = seeds;
  if (!seeds.empty()) limits.warm_rounds = 0;
  limits.on_round = [&](const ColumnRound& round) { solved.rounds.push_back(round); };
  solved.solution = generate_columns(oracle.program(), oracle, limits);
  return solved;
}

TEST(TreeMemory, TheSameNetworkIsSolvedAtOnce) {
  for (const Topology& topology : {*generate_torus({{3, 4}, {}}), test::dgx1v_nvlinks(true)}) {
    for (const bool inward : {false, true}) {
      TreeMemory memory;
      const SolvedTrees first = solve(topology, inward, memory);
      ASSERT_TRUE(first.solution.attained);
      memory.keep(topology, first.orbits, first.groups, first.solution);
      const SolvedTrees again = solve(topology, inward, memory);
      EXPECT_EQ(again.solution.limit, first.solution.limit);
      const double optimum = to_double(first.solution.limit);
      EXPECT_NEAR(again.rounds.front().throughput, optimum, 1e-6 * optimum);
      EXPECT_LT(first.rounds.front().throughput, optimum * 1.000001);
    }
  }
}

TEST(TreeMemory, APlansTreesAreKnown) {
  const Topology topology = test::dgx1v_nvlinks(true);
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::reduce_scatter, CollectiveKind::all_reduce}) {
    const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt);
    const auto schedule = plan_unbounded(topology, collective, *find_planner("packing"));
    ASSERT_TRUE(schedule);
    const Forest forest = spanning_trees(*schedule);
    EXPECT_EQ(forest.in_trees.empty(), kind == CollectiveKind::all_gather);
    EXPECT_EQ(forest.out_trees.empty(), kind == CollectiveKind::reduce_scatter);
    EXPECT_EQ(forest.in_trees.size() + forest.out_trees.size(), measure_shape(*schedule).trees);
    if (kind == CollectiveKind::all_reduce) continue;  // not every rank is a root
    TreeMemory memory;
    memory.keep(topology, *schedule);
    const bool inward = kind == CollectiveKind::reduce_scatter;
    const OrbitGraph orbits = make_orbit_graph(topology, false, Symmetry::any);
    EXPECT_FALSE(memory.seeds(topology, orbits, TreeOracle(orbits, sharded_groups(orbits, inward))).empty());
  }
  // Recursive doubling runs over no trees.
  const Topology whole = test::dgx1v_nvlinks(false);
  const Collective collective = *make_collective(CollectiveKind::all_gather, whole.rank_count(), std::nullopt);
  const auto doubling = plan_unbounded(whole, collective, *find_planner("recursive"));
  ASSERT_TRUE(doubling);
  EXPECT_TRUE(spanning_trees(*doubling).out_trees.empty());
}

TEST(TreeMemory, SeedsSpanWhatAFailureLeaves) {
  const Topology topology = *generate_rail_boxes({});
  TreeMemory memory;
  const SolvedTrees whole = solve(topology, false, memory);
  memory.keep(topology, whole.orbits, whole.groups, whole.solution);
  for (const char* part : {"box0.nic3", "box1.gpu2-box1.nvswitch", "box0.gpu1"}) {
    const auto rest = without(topology, std::vector<std::string>{part});
    if (!rest) continue;  // cut off
    SCOPED_TRACE(part);
    const OrbitGraph orbits = make_orbit_graph(*rest, false, Symmetry::any);
    const TreeOracle oracle(orbits, sharded_groups(orbits, false));
    const std::vector<Column> seeds = memory.seeds(*rest, orbits, oracle);
    ASSERT_FALSE(seeds.empty());
    for (const Column& seed : seeds) {
      const std::uint32_t root = oracle.groups().groups[seed.group].root;
      EXPECT_EQ(reached_from(orbits.graph, seed.edges, root, false), rest->rank_count());
    }
  }
}

TEST(TreeMemory, OtherNetworksGetNothing) {
  TreeMemory memory;
  const Topology ring = ring_of(4);
  const SolvedTrees solved = solve(ring, false, memory);
  memory.keep(ring, solved.orbits, solved.groups, solved.solution);
  const Topology star = *generate_torus({{3, 3}, {}});  // its nodes have other names
  const OrbitGraph orbits = make_orbit_graph(star, false, Symmetry::any);
  const bool shares_names = !ring.find_node(star.node(NodeId(0)).id).is_none();
  const std::vector<Column> seeds = memory.seeds(star, orbits, TreeOracle(orbits, sharded_groups(orbits, false)));
  EXPECT_EQ(seeds.empty(), !shares_names);
  EXPECT_TRUE(
      memory.seeds(ring, *solved.orbits, TreeOracle(*solved.orbits, sharded_groups(*solved.orbits, true))).empty());
}

TEST(PlanContext, TellsEveryRoundUntilTheGapIsClosed) {
  const Topology topology = test::dgx1v_nvlinks(true);
  for (const CollectiveKind kind :
       {CollectiveKind::all_gather, CollectiveKind::all_reduce, CollectiveKind::all_to_all}) {
    const Collective collective = *make_collective(kind, topology.rank_count(), std::nullopt);
    const Planner planner = *find_planner(kind == CollectiveKind::all_gather ? "packing" : "lp");
    std::vector<ProgramRound> rounds;
    PlanContext context;
    context.on_round = [&](const ProgramRound& round) { rounds.push_back(round); };
    const auto told = plan_unbounded(topology, collective, planner, context);
    const auto untold = plan_unbounded(topology, collective, planner);
    ASSERT_TRUE(told && untold);
    std::ostringstream a, b;
    ASSERT_TRUE(write_schedule(a, *told, topology, WriteOptions{}) &&
                write_schedule(b, *untold, topology, WriteOptions{}));
    EXPECT_EQ(a.str(), b.str());  // listening changes nothing
    ASSERT_FALSE(rounds.empty());
    for (std::size_t i = 0; i < rounds.size(); ++i) {
      EXPECT_EQ(rounds[i].program, to_string(kind));
      EXPECT_GT(rounds[i].gap(), -1e-6);
      if (rounds[i].round == 1) continue;
      EXPECT_EQ(rounds[i].round, rounds[i - 1].round + 1);
      EXPECT_LE(rounds[i].limit, rounds[i - 1].limit);
      EXPECT_GE(rounds[i].reached, rounds[i - 1].reached * (1 - 1e-6));
    }
    EXPECT_LT(rounds.back().gap(), 1e-6);
  }
}

/// The bound of an all_reduce and its trees are one program's, which is solved once for both.
TEST(PlanContext, BoundAndPlanShareAProgram) {
  const Topology topology = test::dgx1v_nvlinks(true);
  const Collective collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
  int programs = 0;
  PlanContext context;
  context.on_round = [&](const ProgramRound& round) {
    if (round.program == "all_reduce" && round.round == 1) ++programs;
  };
  const auto schedule = plan(topology, collective, *find_planner("lp"), context);
  ASSERT_TRUE(schedule);
  EXPECT_EQ(programs, 1);
  EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte, schedule->bound->time_per_byte);
}

}  // namespace
}  // namespace espalier::planners
