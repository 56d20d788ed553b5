#include "engine/verbs/route_rails.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace espalier::engine {
namespace {

Node node(const std::string& id, NodeKind kind, const std::string& host = "") {
  Node made;
  made.id = id;
  made.kind = kind;
  made.is_rank = kind == NodeKind::cpu;
  made.host = host;
  return made;
}

/// One of each pair of nodes to the other.
Topology make_topology(std::vector<Node> nodes, const std::vector<std::pair<std::uint32_t, std::uint32_t>>& cables) {
  LinkValues values;
  values.nominal = Bandwidth{1'000'000'000};
  std::vector<Link> links;
  for (const auto& [one, other] : cables) {
    links.emplace_back(NodeId(one), NodeId(other), values);
    links.emplace_back(NodeId(other), NodeId(one), values);
  }
  return *Topology::make("two", std::move(nodes), std::move(links));
}

Schedule schedule_on(const std::string& topology) {
  return {*make_collective(CollectiveKind::broadcast, 2, Rank(0)), topology, "test"};
}

std::vector<LinkId> path(const Topology& topology, const std::vector<std::string>& hops) {
  std::vector<LinkId> links;
  links.reserve(hops.size());
  for (const std::string& hop : hops) links.push_back(topology.find_link(hop));
  return links;
}

TEST(RouteRails, ANicIsARailOfItsHost) {
  using enum NodeKind;
  // Nodes in an order in which neither host's NICs are side by side.
  const Topology topology =
      make_topology({node("x", cpu, "a"), node("x0", nic, "a"), node("y", cpu, "b"), node("y0", nic, "b"),
                     node("x1", nic, "a"), node("y1", nic, "b"), node("y2", nic, "b"), node("s", switch_node)},
                    {{0, 1}, {0, 4}, {2, 3}, {2, 5}, {2, 6}, {1, 7}, {4, 7}, {3, 7}, {5, 7}, {6, 7}});
  const RailChoice choose = rails_by_routes(topology);
  Schedule schedule = schedule_on("two");
  const RouteId straight = schedule.add_route(Rank(0), Rank(1), path(topology, {"x>x0", "x0>s", "s>y0", "y0>y"}));
  const RouteId across = schedule.add_route(Rank(0), Rank(1), path(topology, {"x>x1", "x1>s", "s>y2", "y2>y"}));
  const RouteId back = schedule.add_route(Rank(1), Rank(0), path(topology, {"y>y1", "y1>s", "s>x0", "x0>x"}));
  EXPECT_EQ(choose(schedule, straight), (RailPair{0, 0}));
  EXPECT_EQ(choose(schedule, across), (RailPair{1, 2}));
  EXPECT_EQ(choose(schedule, back), (RailPair{1, 0}));
}

TEST(RouteRails, WithoutNicsEachCableIsARail) {
  using enum NodeKind;
  const Topology topology =
      make_topology({node("x", cpu), node("y", cpu), node("s", switch_node), node("t", switch_node)},
                    {{0, 2}, {0, 3}, {1, 3}, {1, 2}});
  const RailChoice choose = rails_by_routes(topology);
  Schedule schedule = schedule_on("two");
  // x has s, then t; y has t, then s.
  EXPECT_EQ(choose(schedule, schedule.add_route(Rank(0), Rank(1), path(topology, {"x>s", "s>y"}))), (RailPair{0, 1}));
  EXPECT_EQ(choose(schedule, schedule.add_route(Rank(0), Rank(1), path(topology, {"x>t", "t>y"}))), (RailPair{1, 0}));
}

TEST(RouteRails, RoutesOfOtherTopologiesSayNothing) {
  using enum NodeKind;
  const Topology topology = make_topology({node("x", cpu), node("y", cpu)}, {{0, 1}});
  const RailChoice choose = rails_by_routes(topology);
  Schedule other = schedule_on("another");
  EXPECT_FALSE(choose(other, other.add_route(Rank(0), Rank(1), path(topology, {"x>y"}))));
  Schedule own = schedule_on("two");
  EXPECT_TRUE(choose(own, own.add_route(Rank(0), Rank(1), path(topology, {"x>y"}))));
  EXPECT_FALSE(choose(own, own.add_route(Rank(0), Rank(1), {})));
  EXPECT_FALSE(choose(own, own.add_route(Rank(1), Rank(0), std::vector{LinkId(99)})));
}

TEST(RouteRails, ARankHasTheNicsOfItsHost) {
  using enum NodeKind;
  const Topology topology =
      make_topology({node("x", cpu, "a"), node("y", cpu, "a"), node("z", cpu, "b"), node("w", cpu, "c"),
                     node("z0", nic, "b"), node("x1", nic, "a"), node("x0", nic, "a")},
                    {{0, 5}, {1, 6}, {2, 4}, {3, 4}, {5, 4}, {6, 4}});
  using Names = std::vector<std::string>;
  EXPECT_EQ(nics_by_rank(topology), (std::vector<Names>{{"x1", "x0"}, {"x1", "x0"}, {"z0"}, {}}));
}

}  // namespace
}  // namespace espalier::engine
