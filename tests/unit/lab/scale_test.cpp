#include "lab/scale.h"

#include <gtest/gtest.h>

#include "lab/rate_budget.h"
#include "topology/topology_builder.h"

namespace espalier::lab {
namespace {

TEST(ParseScale, ReadsDecimalsAndFractionsExactly) {
  EXPECT_EQ(parse_scale("0.01").value(), Rational(1, 100));
  EXPECT_EQ(parse_scale("1/128").value(), Rational(1, 128));
  EXPECT_EQ(parse_scale("1").value(), Rational(1));
  EXPECT_EQ(parse_scale("0.125").value(), Rational(1, 8));
}

TEST(ParseScale, RefusesWhatIsNoFactor) {
  for (const char* text : {"", "0", "2", "-1", "1.5", "abc", "1/0", "0.", ".5", "1e-3", "1/2/3", "0/5", "nan",
                           "0.00000000000000000001", "99999999999999999999/1"}) {
    const auto scale = parse_scale(text);
    EXPECT_FALSE(scale) << text;
    if (!scale) {
      EXPECT_EQ(scale.error().code, ErrorCode::invalid_input) << text;
    }
  }
}

TEST(FormatScale, WritesDecimalsWhereTheyEnd) {
  EXPECT_EQ(format_scale(Rational(1, 100)), "0.01");
  EXPECT_EQ(format_scale(Rational(1, 128)), "0.0078125");
  EXPECT_EQ(format_scale(Rational(1)), "1");
  EXPECT_EQ(format_scale(Rational(1, 3)), "1/3");
}

Topology sample() {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.node({.id = "b", .bandwidth = {1'000'000'000}, .reduce_bandwidth = {2'000'000'000}});
  builder.cable(a, b, {{3'000'000'000}, {1'000'000}, "c"});
  return std::move(builder).build("sample").value();
}

TEST(ScaleTopology, ScalesRatesAndStretchesLatencies) {
  const auto scaled = scale_topology(sample(), Rational(1, 1000), true);
  ASSERT_TRUE(scaled) << scaled.error().message;
  const Link& link = scaled->topology.link(LinkId(0));
  EXPECT_EQ(link.bandwidth().bytes_per_second, 3'000'000);
  EXPECT_EQ(link.latency.count, 1'000'000'000);  // 1 us becomes 1 ms: all times are 1000 times as long.
  EXPECT_EQ(scaled->topology.name(), "sample x 0.001");
}

TEST(ScaleTopology, LeavesOutWhatALabCannotBuildAndSaysSo) {
  const auto scaled = scale_topology(sample(), Rational(1, 1000), false);
  ASSERT_TRUE(scaled) << scaled.error().message;
  EXPECT_EQ(scaled->topology.link(LinkId(0)).latency.count, 0);
  EXPECT_EQ(scaled->topology.node(NodeId(1)).bandwidth.bytes_per_second, 0);
  EXPECT_EQ(scaled->topology.node(NodeId(1)).reduce_bandwidth.bytes_per_second, 0);
  const std::vector<std::string> expected = {"latency of links (2)", "backplanes of nodes (1)",
                                             "reduce_bandwidth of nodes (1)"};
  EXPECT_EQ(scaled->left_out, expected);
}

TEST(ScaleTopology, RefusesLinksThatWouldBeTooSlow) {
  const auto scaled = scale_topology(sample(), Rational(1, 100'000), true);  // 30 kB/s.
  ASSERT_FALSE(scaled);
  EXPECT_EQ(scaled.error().code, ErrorCode::infeasible);
  EXPECT_NE(scaled.error().message.find("a>b"), std::string::npos) << scaled.error().message;
}

TEST(ScaleTopology, CountsWithTheReachablePartOfARate) {
  std::vector<Node> nodes = {{.id = "a"}, {.id = "b"}};
  Link link{NodeId(0), NodeId(1), {.nominal = {1'000'000'000}, .efficiency_ppm = 900'000}};
  const Topology topology = Topology::make("t", nodes, {link}).value();
  const auto scaled = scale_topology(topology, Rational(1, 10), true);
  ASSERT_TRUE(scaled);
  EXPECT_EQ(scaled->topology.link(LinkId(0)).bandwidth().bytes_per_second, 90'000'000);
}

TEST(ChooseScale, TakesTheLargestRoundFactorWithinTheBudget) {
  const Topology topology = sample();  // Two links of 3 GB/s: 6 GB/s in all.
  // Two cores carry 600 MB/s: a tenth. The fastest link would have 300 MB/s, which is the most that is shaped.
  EXPECT_EQ(choose_scale(topology, 2), Rational(1, 10));
  // One core carries 300 MB/s: 1/20 is the largest of 1, 1/2, 1/5, 1/10, 1/20, ...
  EXPECT_EQ(choose_scale(topology, 1), Rational(1, 20));
  // Many cores: the fastest link decides.
  EXPECT_EQ(choose_scale(topology, 1000), Rational(1, 10));
}

TEST(ChooseScale, NeverMakesANetworkFaster) {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  builder.cable(a, b, {{1'000'000}, {}, ""});
  EXPECT_EQ(choose_scale(std::move(builder).build("slow").value(), 64), Rational(1));
}

}  // namespace
}  // namespace espalier::lab
