#include "lab/wiring.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <sstream>

#include "lab/addresses.h"
#include "lab/namespaces/job_name.h"
#include "lab/shaping.h"
#include "topology/topology_builder.h"

namespace espalier::lab {
namespace {

TEST(JobName, IsReadBackFromItsNamespaces) {
  const JobName job{123, 456789, 2};
  EXPECT_EQ(job.prefix(), "espalier-123-456789-2");
  EXPECT_EQ(job_of("espalier-123-456789-2-n17"), job);
  EXPECT_EQ(job_of("espalier-123-456789-2-hub"), job);
  for (const char* other : {"", "espalier", "espalier-", "espalier-1-2-3", "espalier-x-2-3-n0", "espalier-1--3-n0",
                            "other-1-2-3-n0", "espalier-1-2-x-n0"}) {
    EXPECT_FALSE(job_of(other)) << other;
  }
}

TEST(JobName, KnowsWhoIsAlive) {
  JobName job = own_job_name();
  EXPECT_EQ(job.pid, getpid());
  EXPECT_TRUE(is_alive(job));
  ++job.start;  // The same process id, used again.
  EXPECT_FALSE(is_alive(job));
}

TEST(Shaping, CountsHeadersSoThatDataGetTheRate) {
  const Framing framing{9000};
  EXPECT_EQ(framing.counted(), 9014);
  EXPECT_EQ(framing.data(), 8948);
  const Shape shape = shape_link({100'000'000}, {}, framing);
  EXPECT_EQ(shape.bits_per_second, 100'000'000LL * 8 * 9014 / 8948);
  EXPECT_EQ(shape.burst, 30'000);                                          // 300 us.
  EXPECT_EQ(shape_link({1'000'000}, {}, framing).burst, 9014 + 9014 / 4);  // More than a packet.
}

TEST(Shaping, PacketsAreSmallerOnSlowLinks) {
  EXPECT_EQ(choose_framing({100'000'000}).packet, 9000);
  EXPECT_EQ(choose_framing({10'000'000}).packet, 5000);  // Half a millisecond.
  EXPECT_EQ(choose_framing({100'000}).packet, 1500);
}

TEST(Shaping, DelaysOnlyWhereThereIsALatency) {
  EXPECT_EQ(shaping_lines("c0", {8'000'000, 10'000, 20'000, {}}),
            "qdisc add dev c0 root handle 1: tbf rate 8000000bit burst 10000 limit 20000\n");
  EXPECT_EQ(shaping_lines("c0", {8'000'000, 10'000, 20'000, {1'500'000}}),
            "qdisc add dev c0 root handle 1: tbf rate 8000000bit burst 10000 limit 20000\n"
            "qdisc add dev c0 parent 1:1 handle 2: netem delay 1500ns limit 1000000\n");
}

TEST(AddressPlan, CutsTheRangePerRank) {
  auto plan = AddressPlan::make(3).value();  // Two bits for three ranks.
  EXPECT_EQ(plan.range_of(Rank(0)), "10.0.0.0/10");
  EXPECT_EQ(plan.range_of(Rank(2)), "10.128.0.0/10");
  EXPECT_EQ(plan.next(Rank(1)).value(), "10.64.0.1");
  EXPECT_EQ(plan.next(Rank(1)).value(), "10.64.0.2");
  EXPECT_EQ(plan.next(Rank(0)).value(), "10.0.0.1");
  EXPECT_EQ(plan.control_address(Rank(254)), "172.16.1.0");
  EXPECT_EQ(AddressPlan::hub_address(), "172.16.0.1");
  EXPECT_EQ(AddressPlan::make(1).value().range_of(Rank(0)), "10.0.0.0/8");
}

TEST(AddressPlan, SaysWhenARangeIsUsedUp) {
  auto plan = AddressPlan::make(65536).value();  // Eight bits are left: 254 ends.
  for (int end = 0; end < 254; ++end) ASSERT_TRUE(plan.next(Rank(65535))) << end;
  const auto none = plan.next(Rank(65535));
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error().code, ErrorCode::too_large);
  EXPECT_FALSE(AddressPlan::make(65537));
}

TEST(Addresses, AreWrittenByRoute) {
  const std::vector<RouteAddresses> routes = {{Rank(0), Rank(1), "10.0.0.1", "10.64.0.1"},
                                              {Rank(1), Rank(0), "10.64.0.2", "10.0.0.2"}};
  std::ostringstream out;
  write_addresses(out, routes);
  EXPECT_EQ(
      out.str(),
      "[\n{\"route\": 0, \"src_rank\": 0, \"dst_rank\": 1, \"bind\": \"10.0.0.1\", \"connect\": \"10.64.0.1\"},\n"
      "{\"route\": 1, \"src_rank\": 1, \"dst_rank\": 0, \"bind\": \"10.64.0.2\", \"connect\": \"10.0.0.2\"}\n]\n");
}

/// Two ranks with a cable, a parallel cable and a link one way; a switch that the second rank is also on.
Topology sample_network() {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  const NodeId s = builder.forwarder(NodeKind::switch_node, "s");
  builder.cable(a, b, {{1'000'000}, {}, ""});
  builder.cable(a, b, {{2'000'000}, {}, ""});
  builder.link(a, b, {{3'000'000}, {}, ""});
  builder.cable(b, s, {{4'000'000}, {}, ""});
  return std::move(builder).build("sample").value();
}

TEST(Wiring, ACableIsOnePairAndALinkOneWayHasItsOwn) {
  const Topology topology = sample_network();
  const Wiring wiring(topology, {1, 2, 3});
  EXPECT_EQ(wiring.device(LinkId(0)), wiring.device(LinkId(1)));
  EXPECT_EQ(wiring.device(LinkId(2)), wiring.device(LinkId(3)));
  EXPECT_NE(wiring.device(LinkId(0)), wiring.device(LinkId(2)));
  EXPECT_NE(wiring.device(LinkId(2)), wiring.device(LinkId(4)));
  const std::string lines = wiring.creation_lines({1500});
  EXPECT_NE(
      lines.find("link add name c2 mtu 1500 address 02:65:00:00:00:02 netns espalier-1-2-3-n0 type veth peer name "
                 "c2 mtu 1500 address 02:65:00:00:00:02 netns espalier-1-2-3-n1\n"),
      std::string::npos)
      << lines;
  // 3 nodes and the hub; 4 cables and 2 pairs for control.
  EXPECT_EQ(std::ranges::count(lines, '\n'), 4 + 4 + 2);
}

TEST(Wiring, EveryDirectionIsShapedWhereItLeaves) {
  const Topology topology = sample_network();
  const Wiring wiring(topology, {1, 2, 3});
  const auto count = [&](std::size_t node) {
    const std::string lines = wiring.shaping_lines(NodeId(node), {1500});
    return std::ranges::count(lines, '\n');
  };
  EXPECT_EQ(count(0), 3);  // Both cables and the link one way;
  EXPECT_EQ(count(1), 3);  // both cables back and the one to the switch, but not the way back of the one way link;
  EXPECT_EQ(count(2), 1);
}

}  // namespace
}  // namespace espalier::lab
