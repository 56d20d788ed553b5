#include <gtest/gtest.h>

#include <set>
#include <string>

#include "planners/chooser.h"
#include "planners/planner.h"
#include "planners/ring/ring_walks.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/networks/random_graph.h"
#include "topology/reachable.h"

// Whatever ranks may not relay and whatever switches compute: a planner makes a plan that keeps its promise, or says
// why it makes none.

namespace espalier::planners {
namespace {

/// A random network some, or all, of whose ranks must not relay, and some of whose switches copy or add.
Topology any_network(Random& random, int round) {
  const Topology plain = test::make_topology(test::random_graph(random, {5, 2, 9, round % 2 == 0}));
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  const bool none_relays = round % 4 == 0;
  for (Node& node : nodes) {
    if (node.is_rank) node.relay = !none_relays && random.below(2) == 0;
    if (node.is_rank && random.below(6) == 0) node.bandwidth = {random.between(1, 20) * test::unit};
    node.multicast = !node.is_rank && random.below(2) == 0;
    node.reduction = !node.is_rank && random.below(2) == 0;
  }
  return *Topology::make("any", std::move(nodes), {plain.links().begin(), plain.links().end()});
}

/// Some ranks around one switch that copies and adds, none of which may relay.
Topology silent_star(std::size_t ranks) {
  test::PlainGraph graph{ranks, 1, {}};
  for (std::size_t i = 0; i < ranks; ++i) {
    graph.edges.push_back({i, ranks, 50});
    graph.edges.push_back({ranks, i, 50});
  }
  const Topology plain = test::make_topology(graph);
  std::vector<Node> nodes(plain.nodes().begin(), plain.nodes().end());
  for (Node& node : nodes) {
    node.relay = !node.is_rank;
    node.multicast = node.reduction = !node.is_rank;
  }
  return *Topology::make("silent star", std::move(nodes), {plain.links().begin(), plain.links().end()});
}

Collective any_collective_on(const Topology& topology, CollectiveKind kind, Random& random) {
  const std::size_t ranks = topology.rank_count();
  const auto root = has_root(kind) ? std::optional(Rank(random.below(ranks))) : std::nullopt;
  Collective collective = *make_collective(kind, ranks, root);
  const bool may_have_shares = kind == CollectiveKind::all_gather || kind == CollectiveKind::reduce_scatter ||
                               kind == CollectiveKind::gather || kind == CollectiveKind::scatter;
  if (!may_have_shares || random.below(3) != 0) return collective;
  std::vector<std::int64_t> shares;
  for (std::size_t i = 0; i < ranks; ++i) shares.push_back(random.between(0, 2));
  auto with = make_collective(kind, ranks, root, std::move(shares));
  return with ? *std::move(with) : collective;  // all of them may be zero
}

/// Plans with every planner and, of packing, all variants; counts what was made and what was refused.
void expect_plan_or_reason(const Topology& topology, const Collective& collective, int& made, int& refused) {
  const auto candidates = make_candidates(topology, collective, all_planners(), {.for_choice = true, .named = {"lp"}});
  if (!candidates) {
    EXPECT_FALSE(candidates.error().message.empty());
    ++refused;
    return;
  }
  for (const Candidate& candidate : candidates->made) {
    EXPECT_TRUE(verify(candidate.schedule, topology, 1).ok()) << candidate.planner;
  }
  for (const Refusal& refusal : candidates->refused) {
    EXPECT_FALSE(refusal.error.message.empty()) << refusal.planner;
    EXPECT_FALSE(refusal.error.help.empty()) << refusal.planner << ": " << refusal.error.message;
  }
  made += static_cast<int>(candidates->made.size());
  refused += static_cast<int>(candidates->refused.size());
}

TEST(AnyNetwork, IsPlannedOrRefusedWithAReason) {
  Random random(77);
  int made = 0;
  int refused = 0;
  for (int round = 0; round < 240; ++round) {
    const Topology topology = any_network(random, round);
    for (const CollectiveKind kind : all_collective_kinds) {
      SCOPED_TRACE(std::to_string(round) + " " + std::string(to_string(kind)));
      expect_plan_or_reason(topology, any_collective_on(topology, kind, random), made, refused);
    }
    if (!find_unreachable(topology)) {
      const auto walks =
          plan_ring_walks(topology, *make_collective(CollectiveKind::all_reduce, topology.rank_count(), {}));
      EXPECT_TRUE(walks || !walks.error().message.empty());
    }
  }
  EXPECT_GT(made, 1'000);
  EXPECT_GT(refused, 1'000);
}

// Nobody may root the halves of an all_reduce here, so the shares of all roots are zero: packing once divided by their
// sum. It has all send each other their inputs, N-1 times S over a link of 50; a switch that adds and copies needs S.
TEST(AnyNetwork, WithoutARankThatRelaysPackingExchangesInputs) {
  for (const std::size_t ranks : {2U, 3U, 5U}) {
    const Topology star = silent_star(ranks);
    const Collective all_reduce = *make_collective(CollectiveKind::all_reduce, ranks, {});
    const auto time_of = [&](const char* planner) {
      const auto made = plan(star, all_reduce, *find_planner(planner));
      EXPECT_TRUE(made) << planner << ": " << made.error().message;
      return compute_loads(*made, star).time_per_byte;
    };
    const std::int64_t rate = 50 * test::unit;
    EXPECT_EQ(time_of("packing"), make_rational(static_cast<std::int64_t>(ranks) - 1, rate));
    EXPECT_EQ(time_of("oneshot"), time_of("packing"));
    EXPECT_EQ(time_of("innetwork"), make_rational(1, rate));
  }
}

}  // namespace
}  // namespace espalier::planners
