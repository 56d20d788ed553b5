#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "planners/explain/cut_proof.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "topology/topology_builder.h"

// A rank that must not relay, on networks small enough to see.

namespace espalier::planners {
namespace {

constexpr std::int64_t gigabyte = 1'000'000'000;

Topology made(std::vector<Node> nodes, const std::vector<std::pair<std::size_t, std::size_t>>& cables) {
  std::vector<Link> links;
  for (const auto& [a, b] : cables) {
    for (const auto& [tail, head] : {std::pair(a, b), std::pair(b, a)}) {
      Link link;
      link.tail = NodeId(tail);
      link.head = NodeId(head);
      link.nominal = {gigabyte};
      links.push_back(link);
    }
  }
  return *Topology::make("small", std::move(nodes), std::move(links));
}

Node rank(std::string id, bool relay) {
  Node node;
  node.id = std::move(id);
  node.relay = relay;
  return node;
}

/// g0, g1 and g2, each joined to each; g2 must not relay.
Topology triangle() { return made({rank("g0", true), rank("g1", true), rank("g2", false)}, {{0, 1}, {1, 2}, {0, 2}}); }

/// Ranks on a switch, the last two of which must not relay.
Topology star_machine(std::size_t ranks) {
  std::vector<Node> nodes;
  std::vector<std::pair<std::size_t, std::size_t>> cables;
  for (std::size_t i = 0; i < ranks; ++i) {
    nodes.push_back(rank("g" + std::to_string(i), i + 2 < ranks));
    cables.emplace_back(i, ranks);
  }
  Node center;
  center.id = "s";
  center.kind = NodeKind::switch_node;
  center.is_rank = false;
  nodes.push_back(center);
  return made(std::move(nodes), cables);
}

Rational time_of(const Topology& topology, CollectiveKind kind, std::optional<Rank> root = std::nullopt) {
  const auto bound = compute_bound(topology, *make_collective(kind, topology.rank_count(), root));
  return bound ? bound->time_per_byte * gigabyte : Rational(-1);
}

TEST(NotRelaying, ATriangleWithAnEndIsSlower) {
  // g2 has to be reached over both of its links, and only from there. To g0 and g1 leads one link of each other's.
  EXPECT_EQ(time_of(triangle(), CollectiveKind::broadcast, Rank(0)), make_rational(1));
  EXPECT_EQ(time_of(triangle(), CollectiveKind::broadcast, Rank(2)), make_rational(1, 2));
  EXPECT_EQ(time_of(triangle(), CollectiveKind::reduce, Rank(0)), make_rational(1));
  EXPECT_EQ(time_of(triangle(), CollectiveKind::all_gather), make_rational(1, 3));
}

TEST(NotRelaying, ARankBehindASwitchTakesWhatItGivesNobody) {
  // Of four ranks on a switch, two have to receive everything and send nothing: the root and the one other rank that
  // relays send it, S bytes each at most, to three ranks.
  EXPECT_EQ(time_of(star_machine(4), CollectiveKind::broadcast, Rank(0)), make_rational(3, 2));
  EXPECT_EQ(time_of(star_machine(4), CollectiveKind::reduce, Rank(0)), make_rational(3, 2));
  // Where each receives as much as it sends nothing is lost.
  EXPECT_EQ(time_of(star_machine(4), CollectiveKind::all_gather), make_rational(3, 4));
}

TEST(NotRelaying, TheCutIsProvenAgain) {
  for (const Topology& topology : {triangle(), star_machine(4)}) {
    for (const CollectiveKind kind :
         {CollectiveKind::broadcast, CollectiveKind::reduce, CollectiveKind::all_gather, CollectiveKind::reduce_scatter,
          CollectiveKind::gather, CollectiveKind::scatter}) {
      const Collective collective =
          *make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(Rank(0)) : std::nullopt);
      const auto bound = compute_bound(topology, collective);
      ASSERT_TRUE(bound);
      if (bound->cut.empty()) continue;
      EXPECT_TRUE(prove_cut(topology, collective, *bound)) << to_string(kind) << ": " << bound->what;
    }
  }
}

TEST(NotRelaying, RanksBehindItAreOutOfReach) {
  const Topology line = made({rank("g0", true), rank("g1", false), rank("g2", true)}, {{0, 1}, {1, 2}});
  const auto bound = compute_bound(line, *make_collective(CollectiveKind::all_gather, 3, std::nullopt));
  ASSERT_FALSE(bound);
  EXPECT_EQ(bound.error().code, ErrorCode::infeasible);
  EXPECT_EQ(bound.error().message, "rank g0 cannot reach rank g2: ways end at g1, which must not relay");
}

/// Every rank gets every other one's S bytes: over a link of each, or three times over one link.
TEST(NotRelaying, WhereNobodyAddsInputsAreExchanged) {
  const auto ends = [](std::size_t count) {
    std::vector<Node> nodes;
    for (std::size_t i = 0; i < count; ++i) nodes.push_back(rank("g" + std::to_string(i), false));
    return nodes;
  };
  Node middle;
  middle.id = "s0";
  middle.kind = NodeKind::switch_node;
  middle.is_rank = false;
  std::vector<Node> around = ends(4);
  around.push_back(middle);
  const std::vector<std::pair<Topology, Rational>> cases = {
      {made(ends(2), {{0, 1}}), make_rational(1)},
      {made(ends(3), {{0, 1}, {1, 2}, {2, 0}}), make_rational(1)},
      {made(around, {{0, 4}, {1, 4}, {2, 4}, {3, 4}}), make_rational(3)},
  };
  for (const auto& [topology, seconds] : cases) {
    const auto ranks = static_cast<std::uint32_t>(topology.rank_count());
    SCOPED_TRACE(ranks);
    const Collective all_reduce = *make_collective(CollectiveKind::all_reduce, ranks, std::nullopt);
    const auto bound = compute_bound(topology, all_reduce);
    ASSERT_TRUE(bound) << bound.error().message;
    EXPECT_EQ(bound->time_per_byte * gigabyte, seconds);
    EXPECT_FALSE(bound->is_floor);
    EXPECT_TRUE(prove_cut(topology, all_reduce, *bound)) << bound->what;
    for (const Planner& planner : all_planners()) {
      SCOPED_TRACE(std::string(planner.name));
      const auto schedule = plan_unbounded(topology, all_reduce, planner);
      const bool exchanges = planner.name == "packing" || planner.name == "oneshot";
      ASSERT_EQ(schedule.has_value(), exchanges);
      if (!exchanges) {
        EXPECT_EQ(schedule.error().code, ErrorCode::unsupported);
        continue;
      }
      EXPECT_EQ(compute_loads(*schedule, topology).time_per_byte * gigabyte, seconds);
    }
  }
  // A way over a switch beside the direct one carries half of it.
  const Topology two_ways = made({rank("g0", false), rank("g1", false), middle}, {{0, 1}, {0, 2}, {2, 1}});
  const Collective of_two = *make_collective(CollectiveKind::all_reduce, 2, std::nullopt);
  EXPECT_EQ(compute_bound(two_ways, of_two)->time_per_byte * gigabyte, make_rational(1, 2));
  const auto packing = plan_unbounded(two_ways, of_two, *find_planner("packing"));
  ASSERT_TRUE(packing);
  EXPECT_EQ(compute_loads(*packing, two_ways).time_per_byte * gigabyte, make_rational(1, 2));
}

TEST(NotRelaying, PlannersThatWouldRelaySaySo) {
  const Collective all_gather = *make_collective(CollectiveKind::all_gather, 3, std::nullopt);
  const auto ring = plan_unbounded(triangle(), all_gather, *find_planner("ring"));
  ASSERT_FALSE(ring);
  EXPECT_EQ(ring.error().message, "every ring passes through g2, which must not relay");
  const Collective all_reduce = *make_collective(CollectiveKind::all_reduce, 4, std::nullopt);
  const auto recursive = plan_unbounded(star_machine(4), all_reduce, *find_planner("recursive"));
  ASSERT_FALSE(recursive);
  EXPECT_EQ(recursive.error().code, ErrorCode::unsupported);
  EXPECT_TRUE(recursive.error().message.starts_with("recursive does not plan around ranks that must not relay: g"))
      << recursive.error().message;
}

}  // namespace
}  // namespace espalier::planners
