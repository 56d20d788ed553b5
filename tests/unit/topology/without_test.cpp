#include "topology/without.h"

#include <gtest/gtest.h>

#include "tests/support/networks/real_machines.h"
#include "topology/cables.h"

namespace espalier {
namespace {

using test::dgx1v_nvlinks;
using test::FabricMaker;
using test::line_of;
using test::star_of;

using Names = std::vector<std::string>;

std::vector<std::string> link_names(const Topology& topology, const Parts& parts) {
  std::vector<std::string> names;
  for (const LinkId link : parts.links) names.push_back(topology.link_name(link));
  return names;
}

Topology rest_of(const Topology& topology, const Names& names) {
  auto rest = without(topology, names);
  EXPECT_TRUE(rest) << rest.error().message;
  return std::move(*rest);
}

TEST(Cables, PairEveryLinkWithItsWayBack) {
  const Topology topology = dgx1v_nvlinks(false);
  const std::vector<Cable> cables = find_cables(topology);
  ASSERT_EQ(cables.size(), topology.link_count() / 2);
  for (const Cable& cable : cables) {
    const Link& there = topology.link(cable.there);
    const Link& back = topology.link(cable.back);
    EXPECT_EQ(there.tail, back.head);
    EXPECT_EQ(there.head, back.tail);
    const auto parts = find_parts(topology, cable_name(topology, cable));
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->links, (std::vector<LinkId>{cable.there, cable.back}));
  }
}

TEST(Cables, ALinkWithoutAWayBackStandsAlone) {
  FabricMaker maker;
  const NodeId a = maker.add_rank("a"), b = maker.add_rank("b");
  maker.add_cable(a, b);
  maker.add_link(a, b);
  const Topology topology = maker.build("pair");
  const std::vector<Cable> cables = find_cables(topology);
  ASSERT_EQ(cables.size(), 2U);
  EXPECT_EQ(cable_name(topology, cables[0]), "a-b");
  EXPECT_TRUE(cables[1].back.is_none());
  EXPECT_EQ(cable_name(topology, cables[1]), "a>b#1");
}

TEST(FindParts, ReadsEveryForm) {
  const Topology topology = dgx1v_nvlinks(false);
  EXPECT_EQ(find_parts(topology, "gpu3")->nodes, std::vector<NodeId>{NodeId(3)});
  EXPECT_EQ(link_names(topology, *find_parts(topology, "gpu0-gpu1")), (Names{"gpu0>gpu1", "gpu1>gpu0"}));
  EXPECT_EQ(link_names(topology, *find_parts(topology, "gpu0-gpu3#1")), (Names{"gpu0>gpu3#1", "gpu3>gpu0#1"}));
  EXPECT_EQ(find_parts(topology, "gpu3-gpu0")->links.size(), 4U);
  EXPECT_EQ(link_names(topology, *find_parts(topology, "gpu0>gpu3")), (Names{"gpu0>gpu3#0", "gpu0>gpu3#1"}));
  EXPECT_EQ(link_names(topology, *find_parts(topology, "gpu0>gpu3#0")), Names{"gpu0>gpu3#0"});
}

TEST(FindParts, AHostIsAllItsNodes) {
  FabricMaker maker;
  for (const char* id : {"a0", "a1", "b0"}) {
    Node node;
    node.id = id;
    node.host = std::string(1, id[0]);
    maker.add_node(node);
  }
  const Topology topology = maker.build("hosts");
  EXPECT_EQ(find_parts(topology, "a")->nodes, (std::vector<NodeId>{NodeId(0), NodeId(1)}));
}

TEST(FindParts, DashesInsideIdsAreTriedToo) {
  FabricMaker maker;
  const NodeId a = maker.add_rank("box-0"), b = maker.add_rank("box-1");
  maker.add_cable(a, b);
  const Topology topology = maker.build("dashes");
  EXPECT_EQ(find_parts(topology, "box-0-box-1")->links.size(), 2U);
}

TEST(FindParts, TwoReadingsAreRefused) {
  FabricMaker maker;
  const NodeId a = maker.add_rank("a"), bc = maker.add_rank("b-c");
  const NodeId ab = maker.add_rank("a-b"), c = maker.add_rank("c");
  maker.add_cable(a, bc);
  maker.add_cable(ab, c);
  const auto parts = find_parts(maker.build("dashes"), "a-b-c");
  ASSERT_FALSE(parts);
  EXPECT_EQ(parts.error().message, "'a-b-c' can be read in 2 ways");
}

TEST(Without, TakesACableAway) {
  const Topology rest = rest_of(dgx1v_nvlinks(false), {"gpu0-gpu1"});
  const Topology expected = dgx1v_nvlinks(true);
  EXPECT_EQ(rest.name(), "dgx1v without gpu0-gpu1");
  ASSERT_EQ(rest.link_count(), expected.link_count());
  for (std::size_t i = 0; i < rest.link_count(); ++i) {
    EXPECT_EQ(rest.link_name(LinkId(i)), expected.link_name(LinkId(i)));
  }
}

TEST(Without, ARankTakesItsLinksAlongAndRanksAreNumberedAnew) {
  const Topology whole = star_of(4);
  const Topology rest = rest_of(whole, {"g1"});
  EXPECT_EQ(rest.rank_count(), 3U);
  EXPECT_EQ(rest.link_count(), whole.link_count() - 2);
  EXPECT_EQ(rest.rank_name(Rank(1)), "g2");
}

TEST(Without, NumbersMeanTheWholeTopologyHoweverManyGo) {
  // Both of the two cables, each by its number in the whole.
  const Topology rest = rest_of(dgx1v_nvlinks(false), {"gpu0-gpu3#0", "gpu0-gpu3#1"});
  EXPECT_TRUE(rest.links_between(rest.find_node("gpu0"), rest.find_node("gpu3")).empty());
}

TEST(Without, NothingLeavesTheTopologyAsItIs) { EXPECT_EQ(rest_of(line_of(2), {}).name(), "line-2"); }

TEST(Without, NamesTheRanksThatAreCutOff) {
  const auto rest = without(line_of(4), Names{"g0-g1"});
  ASSERT_FALSE(rest);
  EXPECT_EQ(rest.error().code, ErrorCode::infeasible);
  EXPECT_EQ(rest.error().message, "without g0-g1, g0 and g[1-3] cannot reach each other");
  // In one direction only: g0 still hears from the others.
  EXPECT_EQ(without(line_of(4), Names{"g0>g1"}).error().message, "without g0>g1, g0 cannot reach g[1-3]");
  // Without its switch, every rank is alone.
  EXPECT_EQ(without(star_of(3), Names{"s0"}).error().message, "without s0, g[1-2] and g0 cannot reach each other");
}

TEST(Without, TakesRanges) {
  const Topology whole = dgx1v_nvlinks(false);
  EXPECT_EQ(rest_of(whole, {"gpu[2-3]"}).rank_count(), 6U);
  EXPECT_EQ(rest_of(whole, {"gpu[1,3,5-6]"}).rank_count(), 4U);
  const auto cables = find_parts(whole, "gpu0-gpu[1-2]");
  ASSERT_TRUE(cables) << cables.error().message;
  auto both = find_parts(whole, "gpu0-gpu1")->links;
  const auto second = find_parts(whole, "gpu0-gpu2")->links;
  both.insert(both.end(), second.begin(), second.end());
  EXPECT_EQ(cables->links, both);
  // Every neighbour of gpu0, in order of the links.
  const auto all = find_parts(whole, "gpu0>gpu[*]");
  ASSERT_TRUE(all) << all.error().message;
  EXPECT_EQ(all->links.size(), whole.out_links(whole.find_node("gpu0")).size());
  EXPECT_EQ(find_parts(whole, "gpu[*]")->nodes.size(), 8U);
}

TEST(Without, RangesOfWhatIsNotThereAreRefused) {
  const Topology whole = dgx1v_nvlinks(false);
  for (const char* const name : {"gpu[7-8]", "gpu[0-", "nic[*]", "gpu[0-999999999]", "gpu0-gpu[0-999999999]"}) {
    const auto parts = find_parts(whole, name);
    ASSERT_FALSE(parts) << name;
    EXPECT_EQ(parts.error().code, ErrorCode::invalid_input) << name;
  }
}

TEST(Without, KeepsARank) {
  const auto rest = without(line_of(2), Names{"g0", "g1"});
  ASSERT_FALSE(rest);
  EXPECT_EQ(rest.error().message, "without g0, g1 no rank is left");
}

}  // namespace
}  // namespace espalier
