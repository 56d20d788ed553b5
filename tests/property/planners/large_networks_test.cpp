#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <string>
#include <tuple>
#include <vector>

#include "base/random.h"
#include "planners/bounds/all_reduce_bound.h"
#include "planners/bounds/cut_bound.h"
#include "planners/lp/trees/even_trees.h"
#include "planners/packing/packing.h"
#include "planners/planning_problem.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "topology/generate/generate.h"
#include "topology/slow.h"
#include "topology/without.h"

namespace espalier::planners {
namespace {

/// Whether a spanning tree exists whose every edge has room for `rate` there and back, as it grows from a rank: always
/// to the nearest rank, counted in hops from the root, over nodes that are no ranks and links that have room.
bool has_tree(const Topology& topology, Rank root, double rate) {
  std::vector<std::int64_t> room;
  for (const Link& link : topology.links()) {
    room.push_back(static_cast<std::int64_t>(static_cast<double>(link.bandwidth().bytes_per_second) / rate));
  }
  const auto back_of = [&](LinkId link) {
    for (const LinkId back : topology.links_between(topology.link(link).head, topology.link(link).tail)) {
      if (room[back.index()] > 0) return back;
    }
    return LinkId();
  };
  std::vector<std::uint32_t> depth(topology.node_count(), UINT32_MAX);
  depth[topology.node_of(root).index()] = 0;
  for (std::size_t spanned = 1; spanned < topology.rank_count(); ++spanned) {
    using Step = std::tuple<std::uint32_t, std::uint32_t, std::vector<LinkId>>;  // hops, node, links there and back
    std::priority_queue<Step, std::vector<Step>, std::greater<>> open;
    for (std::uint32_t v = 0; v < depth.size(); ++v) {
      if (depth[v] != UINT32_MAX) open.push({depth[v], v, {}});
    }
    std::vector<bool> seen(depth.size(), false);
    std::optional<Step> reached;
    while (!open.empty() && !reached) {
      const Step step = open.top();
      open.pop();
      const auto& [hops, v, links] = step;
      if (seen[v]) continue;
      seen[v] = true;
      if (topology.node(NodeId(v)).is_rank && depth[v] == UINT32_MAX) {
        reached = step;
        break;
      }
      for (const LinkId link : topology.out_links(NodeId(v))) {
        const NodeId head = topology.link(link).head;
        const LinkId back = back_of(link);
        if (room[link.index()] == 0 || back.is_none() || depth[head.index()] != UINT32_MAX) continue;
        std::vector<LinkId> longer = links;
        longer.insert(longer.end(), {link, back});
        open.push({hops + 1, head.value(), std::move(longer)});
      }
    }
    if (!reached) return false;
    const auto& [hops, v, links] = *reached;
    for (const LinkId link : links) --room[link.index()];
    depth[v] = depth[topology.link(links.front()).tail.index()] + 1;
  }
  return true;
}

/// The time per byte of an all_reduce up and down the best such tree of a few roots, in twentieths of the bound's rate.
double one_tree_time(const Topology& topology, double bound) {
  for (int part = 20; part > 0; --part) {
    const double rate = part / 20.0 / bound * (1 - 1e-9);
    for (std::size_t root = 0; root < topology.rank_count(); root += topology.rank_count() / 4) {
      if (has_tree(topology, Rank(root), rate)) return 1 / rate;
    }
  }
  return std::numeric_limits<double>::infinity();
}

/// The network with some of its cables dead and some at half their rate, such that ranks still reach each other.
Topology damaged(const Topology& whole, Random& random, int dead, int slow) {
  const auto cable = [&](const Topology& topology) {
    const Link& link = topology.link(LinkId(random.below(topology.link_count())));
    return topology.node(link.tail).id + "-" + topology.node(link.head).id;
  };
  Topology left = whole;
  for (int i = 0; i < dead; ++i) {
    const std::vector<std::string> names = {cable(left)};
    if (auto next = without(left, names)) left = *std::move(next);
  }
  for (int i = 0; i < slow; ++i) {
    const std::vector<std::string> texts = {cable(left) + "=0.5"};
    if (auto next = slow_down(left, texts)) left = *std::move(next);
  }
  return left;
}

Topology random_network(Random& random, int kind) {
  const std::int64_t ranks = random.between(65, 130);
  switch (kind) {
    case 0: return *generate_random({.ranks = ranks, .switches = ranks / 4, .extra = ranks, .seed = random.next()});
    case 1: return *generate_random({.ranks = ranks, .switches = 0, .extra = 2 * ranks, .seed = random.next()});
    case 2: return damaged(*generate_torus({{4, 4, random.between(5, 8)}, {}}), random, 6, 6);
    case 3: return damaged(*generate_rail_boxes({.boxes = random.between(9, 14)}), random, 6, 6);
    default: return damaged(*generate_leaf_spine({.leaves = random.between(5, 8), .ranks_per_leaf = 16}), random, 3, 8);
  }
}

TEST(LargeNetworks, NoSimpleSchemeForAnAllReduceIsMuchFasterThanThePacking) {
  Random random(44);
  for (int round = 0; round < 15; ++round) {
    const Topology topology = random_network(random, round % 5);
    SCOPED_TRACE(topology.name() + ", " + std::to_string(topology.rank_count()) + " ranks");
    const auto bounds = all_reduce_bounds(topology);
    ASSERT_TRUE(bounds);
    const auto collective = *make_collective(CollectiveKind::all_reduce, topology.rank_count(), std::nullopt);
    PlanContext context;
    context.solution = bounds->program;
    const auto schedule = plan_packing(topology, collective, context);
    ASSERT_TRUE(schedule) << schedule.error().message;
    const VerifyReport report = verify(*schedule, topology, 1);
    ASSERT_TRUE(report.ok()) << report.breaches.front().message;
    const Rational time = compute_loads(*schedule, topology).time_per_byte;
    EXPECT_GE(time, bounds->best.time_per_byte);
    EXPECT_LE(time, bounds->floors.reduce_scatter_all_gather * make_rational(103, 100));
    const double tree = one_tree_time(topology, bounds->best.time_per_byte.convert_to<double>());
    EXPECT_LE(time.convert_to<double>(), 1.03 * tree);
  }
}

/// Where no exact packing is found, one tree per root of equal weight comes near the bound of Lemma 1 in
/// docs/bounds.md.
TEST(LargeNetworks, OneTreePerRootComesNearTheBoundOfAnAllGather) {
  Random random(4500);
  for (int round = 0; round < 10; ++round) {
    const Topology topology = random_network(random, round % 5);
    SCOPED_TRACE(topology.name() + ", " + std::to_string(topology.rank_count()) + " ranks");
    const bool inward = round % 2 == 1;
    const PlanningProblem problem(topology);
    const auto kind = inward ? CollectiveKind::reduce_scatter : CollectiveKind::all_gather;
    const auto collective = *make_collective(kind, topology.rank_count(), std::nullopt);
    const Rational bound = cut_bound(problem, collective)->time_per_byte;
    const auto orbits = problem.orbit_graph(false, Symmetry::none);
    const ResourceGraph& graph = orbits->graph;
    const EvenTrees found = find_even_trees_of_all(graph, inward, (1 / (bound * graph.unit)).convert_to<double>());
    const auto& trees = inward ? found.in_trees : found.out_trees;
    ASSERT_EQ(trees.size(), topology.rank_count());
    std::vector<std::int64_t> passes(graph.capacity.size(), 0);
    for (std::uint32_t root = 0; root < trees.size(); ++root) {
      std::vector<bool> reached(topology.rank_count(), false);
      for (const RankPath& path : split_paths(graph, trees[root])) {
        const std::uint32_t child = inward ? path.from : path.to;
        EXPECT_FALSE(reached[child] || child == root) << "a rank has one parent, the root none";
        reached[child] = true;
        for (const std::uint32_t edge : path.edges) {
          for (const std::uint32_t resource : graph.edges[edge].resources) ++passes[resource];
        }
      }
      EXPECT_EQ(std::ranges::count(reached, true), static_cast<std::ptrdiff_t>(topology.rank_count()) - 1);
    }
    Rational time = 0;  // of a byte of S, of which each tree carries the N-th part
    for (std::size_t r = 0; r < passes.size(); ++r) {
      const BigInteger carried = graph.capacity[r] * graph.unit * topology.rank_count();
      time = std::max(time, Rational(BigInteger(passes[r]), carried));
    }
    EXPECT_GE(time, bound);
    EXPECT_LE(time, bound * make_rational(103, 100));
  }
}

/// Of m boxes 2 (m - 1) messages of S bytes leave one for another (Lemma 9), so that no all_reduce takes less than
/// 2 (m - 1) S over the sum of what all boxes' NICs carry.
TEST(LargeNetworks, TheFloorOfAnAllReduceCountsWhatBoxesSendEachOther) {
  Random random(4600);
  for (int round = 0; round < 4; ++round) {
    const std::int64_t boxes = random.between(9, 14);
    Topology topology = *generate_rail_boxes({.boxes = boxes});
    std::vector<std::string> dead;
    for (std::size_t v = 0; v < topology.node_count(); ++v) {
      if (topology.nodes()[v].kind == NodeKind::nic && random.below(10) == 0) dead.push_back(topology.nodes()[v].id);
    }
    topology = *without(topology, dead);
    BigInteger leaving = 0;
    for (const Link& link : topology.links()) {
      if (topology.node(link.tail).host.empty() == topology.node(link.head).host.empty()) continue;
      if (!topology.node(link.tail).host.empty()) leaving += link.bandwidth().bytes_per_second;
    }
    ASSERT_GT(leaving, 0);
    const auto bounds = all_reduce_bounds(topology);
    ASSERT_TRUE(bounds);
    EXPECT_GE(bounds->best.time_per_byte, Rational(BigInteger(2 * (boxes - 1)), leaving));
  }
}

}  // namespace
}  // namespace espalier::planners
