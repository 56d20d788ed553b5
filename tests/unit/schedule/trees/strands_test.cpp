#include "schedule/trees/strands.h"

#include <gtest/gtest.h>

#include <numeric>

#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "topology/bundles.h"

namespace espalier {
namespace {

/// Two ranks g0 and g1 and, between them, switch s0; links of these rates from g0 to s0 and from s0 to g1.
Topology two_ranks(const std::vector<std::int64_t>& up, const std::vector<std::int64_t>& down) {
  std::vector<Node> nodes(3);
  for (std::size_t i = 0; i < 3; ++i) nodes[i].id = i < 2 ? "g" + std::to_string(i) : "s0";
  nodes[2].kind = NodeKind::switch_node;
  nodes[2].is_rank = false;
  std::vector<Link> links;
  const auto add = [&](std::size_t tail, std::size_t head, std::int64_t rate) {
    Link link;
    link.tail = NodeId(tail);
    link.head = NodeId(head);
    link.nominal = {rate};
    links.push_back(link);
  };
  for (const std::int64_t rate : up) add(0, 2, rate);
  for (const std::int64_t rate : down) add(2, 1, rate);
  return *Topology::make("two", std::move(nodes), std::move(links));
}

/// A broadcast of `slices` slices from g0 to g1 in one transfer over the bundled network.
Schedule send_all(const Topology& whole, std::size_t slices) {
  Schedule schedule({CollectiveKind::broadcast, 2, Rank(0)}, whole.name(), "test");
  for (std::size_t i = 0; i < slices; ++i) {
    schedule.slices.push_back({static_cast<std::int64_t>(i), 1, Rank(), Rank()});
  }
  schedule.units = static_cast<std::int64_t>(slices);
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), std::vector{LinkId(0), LinkId(1)}), SliceId(0),
                        static_cast<std::uint32_t>(slices), Action::copy, ChannelId(0));
  return schedule;
}

Schedule dealt_on(const Topology& topology, std::size_t slices = 1) {
  const Bundles bundles(topology);
  const Topology whole = bundled(topology, bundles);
  const Schedule planned = send_all(whole, slices);
  EXPECT_TRUE(verify(planned, whole, 1).ok());
  Schedule dealt = deal_strands(planned, topology, bundles);
  EXPECT_TRUE(verify(dealt, topology, 1).ok());
  return dealt;
}

TEST(Bundles, AreLinksThatDoTheSame) {
  Topology topology = two_ranks({3, 1, 2}, {6});
  EXPECT_EQ(Bundles(topology).count(), 2U);
  EXPECT_TRUE(Bundles(topology).any());
  EXPECT_EQ(Bundles(topology).strands(0), (std::vector{LinkId(0), LinkId(1), LinkId(2)}));
  EXPECT_EQ(bundled(topology, Bundles(topology)).link(LinkId(0)).bandwidth().bytes_per_second, 3 + 1 + 2);
  EXPECT_EQ(bundle_name(topology, Bundles(topology), 0), "g0>s0");
  // One of another latency is no part of it.
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  links[1].latency = {5};
  topology = *Topology::make("two", {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  EXPECT_EQ(Bundles(topology).count(), 3U);
  EXPECT_EQ(Bundles(topology).strands(0), (std::vector{LinkId(0), LinkId(2)}));
  EXPECT_EQ(bundle_name(topology, Bundles(topology), 0), "g0>s0#0");
}

TEST(DealStrands, EveryStrandGetsItsPartOfTheRate) {
  // 3 : 1 up and 1 : 1 down are cut at 3/4 and at 1/2: pieces of 1/2, 1/4 and 1/4.
  const Topology topology = two_ranks({30, 10}, {20, 20});
  const Schedule dealt = dealt_on(topology);
  EXPECT_EQ(dealt.units, 4);
  ASSERT_EQ(dealt.transfers.size(), 3U);
  const std::vector<std::vector<LinkId>> routes = {
      {LinkId(0), LinkId(2)}, {LinkId(0), LinkId(3)}, {LinkId(1), LinkId(3)}};
  for (std::size_t i = 0; i < 3; ++i) {
    const Route route = dealt.route(dealt.transfers[i].route);
    EXPECT_EQ(std::vector(route.links.begin(), route.links.end()), routes[i]);
    EXPECT_EQ(dealt.transfers[i].channel(), ChannelId(i));
  }
  // Every link is busy for S / 40, what a cable of 40 takes.
  EXPECT_EQ(compute_loads(dealt, topology).time_per_byte, make_rational(1, 40));
}

TEST(DealStrands, APieceOfARunIsARun) {
  // Five slices over two equal strands: a half of each on the one, a half of each on the other.
  const Schedule dealt = dealt_on(two_ranks({10, 10}, {20}), 5);
  ASSERT_EQ(dealt.slices.size(), 10U);
  ASSERT_EQ(dealt.transfers.size(), 2U);
  EXPECT_EQ(dealt.transfers[0].slice_count, 5U);
  EXPECT_EQ(dealt.transfers[1].first_slice, SliceId(5));
  EXPECT_EQ(dealt.transfers[1].slice_count, 5U);
  EXPECT_EQ(dealt.units, 10);
}

/// g0's and g1's shards of a gather to g1, in one run over both.
Schedule send_shards(const Topology& topology, std::int64_t overhead) {
  std::vector<Link> links(topology.links().begin(), topology.links().end());
  for (Link& link : links) link.overhead = {overhead};
  const Topology network = *Topology::make("two", {topology.nodes().begin(), topology.nodes().end()}, std::move(links));
  const Bundles bundles(network);
  Schedule schedule({CollectiveKind::scatter, 2, Rank(0)}, network.name(), "test");
  schedule.slices = {{0, 1, Rank(0), Rank()}, {1, 1, Rank(1), Rank()}};
  schedule.units = 2;
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), std::vector{LinkId(0), LinkId(1)}), SliceId(0), 2,
                        Action::copy, ChannelId(0));
  Schedule dealt = deal_strands(schedule, network, bundles);
  EXPECT_TRUE(verify(dealt, network, 1).ok());
  EXPECT_EQ(compute_loads(dealt, network).time_per_byte, make_rational(1, 20));
  return dealt;
}

TEST(DealStrands, RunsOverPartsGoPartByPartWhereMessagesCostNothing) {
  const Topology topology = two_ranks({10, 10}, {20});
  EXPECT_EQ(send_shards(topology, 0).transfers.size(), 4U);  // two shards, each over two strands
  const Schedule whole = send_shards(topology, 1);           // the run over two strands: a shard each
  ASSERT_EQ(whole.transfers.size(), 2U);
  EXPECT_EQ(whole.slices.size(), 2U);
}

TEST(DealStrands, WhereNothingIsParallelTheScheduleStaysAsItIs) {
  const Schedule dealt = dealt_on(two_ranks({20}, {20}));
  EXPECT_EQ(dealt.transfers.size(), 1U);
  EXPECT_EQ(dealt.units, 1);
}

TEST(DealStrands, RatesTooFineAreRounded) {
  // Two primes above 2^40: their parts of the sum have no smaller common unit, so they are rounded to
  // 720,720ths, each half of which is less than a 2^16th off.
  const std::int64_t a = 1'099'511'627'791;
  const std::int64_t b = 1'099'511'627'803;
  const Topology topology = two_ranks({a, b}, {a + b});
  const Schedule dealt = dealt_on(topology);
  ASSERT_EQ(dealt.transfers.size(), 2U);
  EXPECT_LE(compute_loads(dealt, topology).time_per_byte, make_rational(1, a + b) * make_rational(65537, 65536));
}

/// The two shards of an all_gather, or of a broadcast the two halves, of so many units each; g0 sends the first.
Schedule send_fine(const Topology& whole, CollectiveKind kind, std::int64_t units) {
  const bool is_gather = kind == CollectiveKind::scatter;
  Schedule schedule({kind, 2, Rank(0)}, whole.name(), "test");
  schedule.units = 2 * units;
  schedule.slices = {{0, units - 1, is_gather ? Rank(0) : Rank(), Rank()},
                     {units - 1, 1, is_gather ? Rank(0) : Rank(), Rank()},
                     {units, units, is_gather ? Rank(1) : Rank(), Rank()}};
  const std::uint32_t first = is_gather ? 2 : 0;
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), std::vector{LinkId(0), LinkId(1)}), SliceId(first),
                        3 - first, Action::copy, ChannelId(0));
  return schedule;
}

TEST(DealStrands, UnitsAsFineAsCanBeCountedLeaveRoomForStrands) {
  const Topology topology = two_ranks({10, 10, 10, 10}, {40});
  const Bundles bundles(topology);
  const Topology whole = bundled(topology, bundles);
  for (const CollectiveKind kind : {CollectiveKind::broadcast, CollectiveKind::scatter}) {
    const Schedule planned = send_fine(whole, kind, (std::int64_t{1} << 61) - 1);
    ASSERT_TRUE(verify(planned, whole, 1).ok());
    const Schedule dealt = deal_strands(planned, topology, bundles);
    EXPECT_TRUE(verify(dealt, topology, 1).ok());
    const Rational time = compute_loads(planned, whole).time_per_byte;
    EXPECT_LE(compute_loads(dealt, topology).time_per_byte, time * make_rational(1'000'001, 1'000'000));
  }
}

TEST(DealStrands, ManyStrandsTakeTurns) {
  // 100 strands are more than the 64 pieces of a slice: each piece has one, and no two the same.
  const Topology topology = two_ranks(std::vector<std::int64_t>(100, 10), {1000});
  const Schedule dealt = dealt_on(topology);
  ASSERT_EQ(dealt.transfers.size(), 64U);
  const Loads loads = compute_loads(dealt, topology);
  EXPECT_EQ(std::ranges::count_if(loads.link_units, [](std::int64_t units) { return units > 0; }), 64 + 1);
}

}  // namespace
}  // namespace espalier
