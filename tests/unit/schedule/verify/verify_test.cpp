#include "schedule/verify/verify.h"

#include <gtest/gtest.h>

#include "tests/support/breaches.h"
#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

using test::breaches_of;

/// A line g0 - g1 - g2 with links g0>g1, g1>g0, g1>g2, g2>g1, and a broadcast from g0 along it: one slice of one unit,
/// transfer 0 from g0 to g1 and transfer 1 from g1 to g2.
class VerifyBroadcast : public ::testing::Test {
 protected:
  VerifyBroadcast() : schedule_(*make_collective(CollectiveKind::broadcast, 3, Rank(0)), "line-3", "test") {
    schedule_.units = 1;
    schedule_.slices = {{0, 1, Rank(), Rank()}};
    schedule_.add_transfer(route(0, 1, {0}), SliceId(0), 1, Action::copy, ChannelId(0));
    schedule_.add_transfer(route(1, 2, {2}), SliceId(0), 1, Action::copy, ChannelId(0));
  }

  RouteId route(std::size_t src, std::size_t dst, std::initializer_list<std::size_t> links) {
    std::vector<LinkId> ids;
    for (const std::size_t link : links) ids.emplace_back(link);
    return schedule_.add_route(Rank(src), Rank(dst), ids);
  }

  void expect_breach(const std::string& expected) { EXPECT_EQ(breaches_of(schedule_, line_), expected); }

  Topology line_ = test::line_of(3);
  Schedule schedule_;
};

TEST_F(VerifyBroadcast, AcceptsWhatIsRight) { expect_breach(""); }

TEST_F(VerifyBroadcast, S9RejectsARankThatPassesOnWhatItMustNot) {
  std::vector<Node> nodes(line_.nodes().begin(), line_.nodes().end());
  nodes[1].relay = false;
  line_ = *Topology::make("line-3", nodes, {line_.links().begin(), line_.links().end()});
  expect_breach("S9, transfer 1 (g1 to g2): g1 must not relay and sends on what g0 brought to slice 0");
}

TEST_F(VerifyBroadcast, S9LetsARankSendWhatItBrought) {
  std::vector<Node> nodes(line_.nodes().begin(), line_.nodes().end());
  nodes[0].relay = nodes[2].relay = false;
  line_ = *Topology::make("line-3", nodes, {line_.links().begin(), line_.links().end()});
  expect_breach("");
}

TEST_F(VerifyBroadcast, S1RejectsASliceOutOfRange) {
  schedule_.transfers[1].first_slice = SliceId(1);
  expect_breach("S1, transfer 1 (g1 to g2): it carries 1 slices from slice 1 on, and there are 1");
}

TEST_F(VerifyBroadcast, S1RejectsARunPastTheLastSlice) {
  schedule_.transfers[1].slice_count = UINT32_MAX;
  expect_breach("S1, transfer 1 (g1 to g2): it carries 4294967295 slices from slice 0 on, and there are 1");
}

TEST_F(VerifyBroadcast, S1RejectsATransferOfNothing) {
  schedule_.transfers[1].slice_count = 0;
  expect_breach("S1, transfer 1 (g1 to g2): it carries no slices");
}

TEST_F(VerifyBroadcast, S1RejectsARouteOutOfRange) {
  schedule_.transfers[0].route = RouteId();
  expect_breach("S1, transfer 0: its route 4294967295 is not one of the 2 routes");
}

TEST_F(VerifyBroadcast, S1RejectsARankOutOfRange) {
  schedule_.transfers[0].route = route(0, 7, {0});
  expect_breach("S1, transfer 0: rank 7 is not one of the 3 ranks");
}

TEST_F(VerifyBroadcast, S1RejectsATransferToItself) {
  schedule_.transfers[0].route = route(0, 0, {0});
  expect_breach("S1, transfer 0 (g0 to g0): it goes from rank 0 to itself");
}

TEST_F(VerifyBroadcast, S1RejectsAnotherNumberOfRanks) {
  schedule_.collective.rank_count = 4;
  expect_breach("S1: the schedule is for 4 ranks and the topology has 3");
}

TEST_F(VerifyBroadcast, S1RejectsARootOutOfRange) {
  schedule_.collective.root = Rank(3);
  expect_breach("S1: the root 3 is not one of the 3 ranks");
  schedule_.collective.root = Rank();
  expect_breach("S1: the root none is not one of the 3 ranks");
}

TEST_F(VerifyBroadcast, S1RejectsARootWhereThereIsNone) {
  schedule_.collective.kind = CollectiveKind::all_reduce;
  expect_breach("S1: all_reduce has no root, but one is given");
}

TEST_F(VerifyBroadcast, S2RejectsABufferWithoutUnits) {
  schedule_.units = 0;
  schedule_.slices.clear();
  schedule_.transfers.clear();
  expect_breach("S2: a buffer of 0 units; it has 1 to 2^62");
}

TEST_F(VerifyBroadcast, S2RejectsGapsOverlapsAndOverhangs) {
  schedule_.units = 4;
  schedule_.slices = {{0, 1, Rank(), Rank()}, {2, 2, Rank(), Rank()}};
  expect_breach("S2: slice 1: it begins at unit 2, and the one before ends at 1");
  schedule_.slices = {{0, 3, Rank(), Rank()}, {2, 2, Rank(), Rank()}};
  expect_breach("S2: slice 1: it begins at unit 2, and the one before ends at 3");
  schedule_.slices = {{0, 3, Rank(), Rank()}, {3, 2, Rank(), Rank()}};
  expect_breach("S2: slice 1: it ends past the buffer's 4 units");
  schedule_.slices = {{0, 3, Rank(), Rank()}};
  expect_breach("S2: the slices end at unit 3 of 4");
  schedule_.slices = {{0, 0, Rank(), Rank()}, {0, 4, Rank(), Rank()}};
  expect_breach("S2: slice 0: its length is 0 units");
  schedule_.slices = {{0, INT64_MAX, Rank(), Rank()}};
  expect_breach("S2: slice 0: it ends past the buffer's 4 units");
}

TEST_F(VerifyBroadcast, S2RejectsARankOnASliceThatHasNone) {
  schedule_.slices[0].rank = Rank(0);
  expect_breach("S2: slice 0: its rank is 0, and part 0 of the broadcast belongs to none");
}

TEST(Verify, S2RejectsUnitsThatDoNotDivideIntoParts) {
  const Topology ring = test::ring_of(3);
  Schedule schedule = test::ring_schedule(ring, CollectiveKind::all_gather);
  schedule.units = 4;
  EXPECT_EQ(breaches_of(schedule, ring),
            "S2: the 4 units do not divide into the 3 equal parts of all_gather on 3 ranks");
}

TEST(Verify, S2RejectsASliceOverTwoParts) {
  const Topology ring = test::ring_of(3);
  Schedule schedule = test::ring_schedule(ring, CollectiveKind::all_gather);
  schedule.units = 6;
  schedule.slices = {{0, 3, Rank(0), Rank()}, {3, 1, Rank(1), Rank()}, {4, 2, Rank(2), Rank()}};
  EXPECT_EQ(breaches_of(schedule, ring),
            "S2: slice 0: it reaches from part 0 of the buffer, which ends at unit 2, into the next");
}

TEST(Verify, S2RejectsTheWrongRankOrDestination) {
  const Topology ring = test::ring_of(3);
  Schedule gather = test::ring_schedule(ring, CollectiveKind::all_gather);
  std::swap(gather.slices[0].rank, gather.slices[1].rank);
  EXPECT_EQ(breaches_of(gather, ring), "S2: slice 0: its rank is 1, and part 0 of the all_gather belongs to 0");
  Schedule exchange = test::ring_schedule(ring, CollectiveKind::send_recv);
  exchange.slices[2].to = Rank(1);
  EXPECT_EQ(breaches_of(exchange, ring), "S2: slice 2: it goes to rank 1, and part 2 of the send_recv goes to 0");
}

TEST_F(VerifyBroadcast, S3RejectsARouteWithoutLinks) {
  schedule_.transfers[0].route = route(0, 1, {});
  expect_breach("S3, transfer 0 (g0 to g1): its route has no links");
}

TEST_F(VerifyBroadcast, S3RejectsALinkOutOfRange) {
  schedule_.transfers[0].route = route(0, 1, {4});
  expect_breach("S3, transfer 0 (g0 to g1): link 0 of its route is not one of the topology's 4");
}

TEST_F(VerifyBroadcast, S3RejectsARouteThatStartsElsewhere) {
  schedule_.transfers[0].route = route(0, 1, {3});
  expect_breach("S3, transfer 0 (g0 to g1): its route goes over g2>g1 when it is at g0");
}

TEST_F(VerifyBroadcast, S3RejectsARouteThatEndsElsewhere) {
  schedule_.transfers[1].route = route(1, 2, {1});
  expect_breach("S3, transfer 1 (g1 to g2): its route ends at g0 instead of g2");
}

TEST_F(VerifyBroadcast, S3RejectsARouteThroughARank) {
  schedule_.transfers[1].route = route(0, 2, {0, 2});
  expect_breach(
      "S3, transfer 1 (g0 to g2): its route passes through rank g1; data that a rank relays takes two transfers");
}

TEST(Verify, S3RejectsARouteInACircle) {
  const Topology star = test::star_of(2);  // Links g0>s0, s0>g0, g1>s0, s0>g1.
  Schedule schedule = test::ring_schedule(star, CollectiveKind::broadcast, Rank(0));
  const std::vector<LinkId> circle = {LinkId(0), LinkId(1), LinkId(0), LinkId(3)};
  schedule.transfers[0].route = schedule.add_route(Rank(0), Rank(1), circle);
  EXPECT_EQ(breaches_of(schedule, star), "S3, transfer 0 (g0 to g1): its route passes g0 twice");
}

TEST_F(VerifyBroadcast, S3NamesEveryTransferOfABadRoute) {
  schedule_.add_transfer(route(0, 1, {3}), SliceId(0), 1, Action::copy, ChannelId(0));
  schedule_.add_transfer(route(0, 1, {3}), SliceId(0), 1, Action::copy, ChannelId(0));
  expect_breach(
      "S3, transfer 2 (g0 to g1): its route goes over g2>g1 when it is at g0\n"
      "S3, transfer 3 (g0 to g1): its route goes over g2>g1 when it is at g0");
}

TEST_F(VerifyBroadcast, S4RejectsReduceInACollectiveThatCopies) {
  schedule_.transfers[1].reduces = 1;
  expect_breach("S4, transfer 1 (g1 to g2): it reduces, and broadcast only copies");
}

TEST_F(VerifyBroadcast, S4RejectsAnInputInACollectiveThatCopies) {
  schedule_.transfers[0].reduces = schedule_.transfers[0].reads_input = 1;
  expect_breach("S4, transfer 0 (g0 to g1): it reduces, and broadcast only copies");
}

TEST_F(VerifyBroadcast, S5RejectsSendingBeforeTheDataIsThere) {
  std::swap(schedule_.transfers[0], schedule_.transfers[1]);
  expect_breach(
      "S5, transfer 0 (g1 to g2): g1 does not hold slice 0 yet\n"
      "S7: g2 does not end with slice 0");
}

TEST_F(VerifyBroadcast, S5NamesATransferOfManySlicesOnce) {
  schedule_.units = 2;
  schedule_.slices = {{0, 1, Rank(), Rank()}, {1, 1, Rank(), Rank()}};
  schedule_.transfers[0] = schedule_.transfers[1];
  schedule_.transfers[0].slice_count = 2;
  schedule_.transfers.pop_back();
  EXPECT_EQ(verify(schedule_, line_).breach_count, 1U + 4U);  // S7: g1 and g2 lack both slices.
}

/// An all_reduce of two ranks in one slice: g1 is reduced into g0 and the sum copied back.
class VerifyAllReduce : public ::testing::Test {
 protected:
  VerifyAllReduce() : schedule_(test::ring_schedule(pair_, CollectiveKind::all_reduce)) {
    schedule_.units = 1;
    schedule_.slices = {{0, 1, Rank(), Rank()}};
    schedule_.transfers.clear();
    up_ = schedule_.add_route(Rank(1), Rank(0), std::vector<LinkId>{LinkId(1)});
    down_ = schedule_.add_route(Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)});
    schedule_.add_transfer(up_, SliceId(0), 1, Action::reduce, ChannelId(0));
    schedule_.add_transfer(down_, SliceId(0), 1, Action::copy, ChannelId(0));
  }

  Topology pair_ = test::line_of(2);
  Schedule schedule_;
  RouteId up_;
  RouteId down_;
};

TEST_F(VerifyAllReduce, S6RejectsCountingAContributionTwice) {
  schedule_.transfers.insert(schedule_.transfers.begin(), schedule_.transfers[0]);
  EXPECT_EQ(breaches_of(schedule_, pair_),
            "S6, transfer 1 (g1 to g0): it adds the contribution of g1 to slice 0 a second time");
}

TEST_F(VerifyAllReduce, S9RejectsARankThatSendsASumOn) {
  std::vector<Node> nodes(pair_.nodes().begin(), pair_.nodes().end());
  for (Node& node : nodes) node.relay = false;
  pair_ = *Topology::make("line-2", nodes, {pair_.links().begin(), pair_.links().end()});
  EXPECT_EQ(breaches_of(schedule_, pair_),
            "S9, transfer 1 (g0 to g1): g0 must not relay and sends on what g1 brought to slice 0");
}

TEST_F(VerifyAllReduce, S6RejectsReducingTheSumIntoItself) {
  schedule_.transfers[1].reduces = 1;
  EXPECT_EQ(breaches_of(schedule_, pair_),
            "S6, transfer 1 (g0 to g1): it adds the contribution of g1 to slice 0 a second time");
}

TEST_F(VerifyAllReduce, S6LetsBothSendTheirInputsAtOnce) {
  schedule_.transfers[0].reads_input = 1;
  schedule_.transfers[1].reduces = schedule_.transfers[1].reads_input = 1;
  EXPECT_EQ(breaches_of(schedule_, pair_), "");
  // Each passes on what it brought alone.
  std::vector<Node> nodes(pair_.nodes().begin(), pair_.nodes().end());
  for (Node& node : nodes) node.relay = false;
  pair_ = *Topology::make("line-2", nodes, {pair_.links().begin(), pair_.links().end()});
  EXPECT_EQ(breaches_of(schedule_, pair_), "");
}

TEST_F(VerifyAllReduce, S6RejectsAnInputAddedTwice) {
  schedule_.transfers[0].reads_input = 1;
  schedule_.transfers[1].reduces = schedule_.transfers[1].reads_input = 1;
  schedule_.transfers.push_back(schedule_.transfers[0]);
  EXPECT_EQ(breaches_of(schedule_, pair_),
            "S6, transfer 2 (g1 to g0): it adds the contribution of g1 to slice 0 a second time");
}

TEST_F(VerifyAllReduce, S7RejectsALostContribution) {
  schedule_.transfers[0].reduces = 0;  // A copy overwrites what g0 brings.
  EXPECT_EQ(breaches_of(schedule_, pair_),
            "S7: g0 ends with 1 of 2 contributions to slice 0; that of g0 is missing\n"
            "S7: g1 ends with 1 of 2 contributions to slice 0; that of g0 is missing");
}

TEST_F(VerifyAllReduce, S7RejectsAMissingTransfer) {
  schedule_.transfers.pop_back();
  EXPECT_EQ(breaches_of(schedule_, pair_), "S7: g1 ends with 1 of 2 contributions to slice 0; that of g0 is missing");
}

TEST_F(VerifyBroadcast, S7RejectsARankThatIsLeftOut) {
  schedule_.transfers.pop_back();
  expect_breach("S7: g2 does not end with slice 0");
}

TEST(Verify, ReportsTheFirstBreachesInRuleAndTransferOrderAndCountsAll) {
  const Topology ring = test::ring_of(4);
  Schedule schedule = test::ring_schedule(ring, CollectiveKind::all_gather);
  std::swap(schedule.transfers.front(), schedule.transfers.back());
  const VerifyReport all = verify(schedule, ring);
  const VerifyReport first = verify(schedule, ring, 2);
  EXPECT_EQ(first.breach_count, all.breach_count);
  ASSERT_EQ(first.breaches.size(), 2U);
  for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(first.breaches[i].message, all.breaches[i].message);
  for (std::size_t i = 1; i < all.breaches.size(); ++i) {
    EXPECT_LE(std::pair(all.breaches[i - 1].rule, all.breaches[i - 1].transfer),
              std::pair(all.breaches[i].rule, all.breaches[i].transfer));
  }
  EXPECT_TRUE(verify(schedule, ring, 0).breaches.empty());
  EXPECT_FALSE(verify(schedule, ring, 0).ok());
}

TEST(Verify, FindsMissingContributionsPastSixtyFourRanks) {
  const Topology ring = test::ring_of(70);
  Schedule schedule = test::ring_schedule(ring, CollectiveKind::reduce, Rank(69));
  EXPECT_EQ(breaches_of(schedule, ring), "");
  // The path runs from rank 0 to rank 69; its last transfer carries 0 to 68.
  schedule.transfers.pop_back();
  EXPECT_EQ(breaches_of(schedule, ring), "S7: g69 ends with 1 of 70 contributions to slice 0; that of g0 is missing");
}

}  // namespace
}  // namespace espalier
