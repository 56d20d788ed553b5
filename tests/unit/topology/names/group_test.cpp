#include "topology/names/group.h"

#include <gtest/gtest.h>

#include "topology/generate/generate.h"

namespace espalier {
namespace {

/// gpu0 to gpu3, cpu0 and a switch s0 that joins them all.
Topology machine() {
  std::vector<Node> nodes;
  for (const char* id : {"gpu0", "gpu1", "gpu2", "gpu3", "cpu0", "s0"}) {
    Node node;
    node.id = id;
    if (node.id == "cpu0") node.kind = NodeKind::cpu;
    if (node.id == "s0") node.kind = NodeKind::switch_node;
    node.is_rank = node.id.starts_with("gpu");
    nodes.push_back(node);
  }
  std::vector<Link> links;
  for (std::size_t i = 0; i < 5; ++i) {
    for (const auto& [tail, head] : {std::pair(i, std::size_t{5}), std::pair(std::size_t{5}, i)}) {
      Link link;
      link.tail = NodeId(tail);
      link.head = NodeId(head);
      link.nominal = Bandwidth{1'000'000'000};
      links.push_back(link);
    }
  }
  return *Topology::make("machine", nodes, links);
}

std::string ranks_of(const Result<Topology>& topology) {
  if (!topology) return topology.error().message;
  std::string names;
  for (std::size_t r = 0; r < topology->rank_count(); ++r) names += topology->rank_name(Rank(r)) + " ";
  return names;
}

std::string group(std::string_view list) {
  const Topology topology = machine();
  const auto nodes = find_rank_nodes(topology, list);
  return nodes ? ranks_of(with_ranks(topology, *nodes)) : nodes.error().message;
}

TEST(Group, NamesAndRangesInNodeOrder) {
  EXPECT_EQ(group("gpu2"), "gpu2 ");
  EXPECT_EQ(group("gpu3, gpu[0-1]"), "gpu0 gpu1 gpu3 ");
  EXPECT_EQ(group("gpu[0,2]"), "gpu0 gpu2 ");
  EXPECT_EQ(group("all"), group("gpu[*]"));
  EXPECT_EQ(group("gpu[*]"), "gpu0 gpu1 gpu2 gpu3 ");
  EXPECT_EQ(group("cpu0,gpu[3-2]"), "gpu2 gpu3 cpu0 ");
}

TEST(Group, WrongListsAreRefused) {
  EXPECT_EQ(group(""), "a name is missing in the list of ranks");
  EXPECT_EQ(group("gpu0,,gpu1"), "a name is missing in the list of ranks");
  EXPECT_EQ(group("gpu4"), "there is no node 'gpu4' in machine");
  EXPECT_EQ(group("tpu[*]"), "there is no node 'tpu[*]' in machine");
  EXPECT_EQ(group("all,gpu1"), "there is no node 'all' in machine");
  EXPECT_EQ(group("gpu[2-5]"), "there is no node 'gpu4' in machine");
  EXPECT_EQ(group("s0"), "'s0' is a switch, and ranks are gpu or cpu nodes");
  EXPECT_EQ(group("gpu[0-2],gpu1"), "'gpu1' is named twice");
  const auto misspelt = find_rank_nodes(machine(), "gpux");
  ASSERT_FALSE(misspelt);
  EXPECT_EQ(misspelt.error().help, "did you mean 'gpu0'?");
  const auto unknown = find_rank_nodes(machine(), "accelerator-nine");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().help, "the gpu and cpu nodes are gpu[0-3], cpu0");
  EXPECT_FALSE(find_rank_nodes(machine(), "gpu[0-"));
  EXPECT_EQ(ranks_of(with_ranks(machine(), {})), "there are no ranks");
}

TEST(Group, TheNetworkStays) {
  const Topology whole = machine();
  const Topology part = *with_ranks(whole, *find_rank_nodes(whole, "gpu[1-2]"));
  EXPECT_EQ(part.name(), whole.name());
  ASSERT_EQ(part.node_count(), whole.node_count());
  ASSERT_EQ(part.link_count(), whole.link_count());
  for (std::size_t i = 0; i < whole.link_count(); ++i) {
    EXPECT_EQ(part.link_name(LinkId(i)), whole.link_name(LinkId(i)));
  }
  for (std::size_t i = 0; i < whole.node_count(); ++i) {
    EXPECT_EQ(part.node(NodeId(i)).id, whole.node(NodeId(i)).id);
    EXPECT_EQ(part.node(NodeId(i)).kind, whole.node(NodeId(i)).kind);
  }
  EXPECT_TRUE(part.rank_of(part.find_node("gpu0")).is_none());
}

TEST(Group, NothingPassesARankThatMustNotRelayAndIsLeftOut) {
  const Topology whole = machine();
  std::vector<Node> nodes(whole.nodes().begin(), whole.nodes().end());
  nodes[0].relay = nodes[1].relay = false;
  const Topology some = *Topology::make("some", nodes, {whole.links().begin(), whole.links().end()});
  const Topology part = *with_ranks(some, *find_rank_nodes(some, "gpu[1-2]"));
  EXPECT_EQ(part.node_count(), whole.node_count());
  EXPECT_EQ(part.link_count(), whole.link_count() - 2);
  EXPECT_TRUE(part.out_links(part.find_node("gpu0")).empty());
  EXPECT_FALSE(part.may_relay(Rank(0)));
  EXPECT_TRUE(part.may_relay(Rank(1)));
}

}  // namespace
}  // namespace espalier
