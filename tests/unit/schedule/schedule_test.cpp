#include "schedule/schedule.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(Schedule, KeepsEachRouteOnce) {
  Schedule schedule;
  const std::vector<LinkId> two = {LinkId(3), LinkId(5)};
  const std::vector<LinkId> other = {LinkId(5), LinkId(3)};
  const RouteId first = schedule.add_route(Rank(0), Rank(1), two);
  EXPECT_EQ(schedule.add_route(Rank(0), Rank(1), two), first);
  EXPECT_NE(schedule.add_route(Rank(1), Rank(0), two), first);
  EXPECT_NE(schedule.add_route(Rank(0), Rank(1), other), first);
  EXPECT_EQ(schedule.route_count(), 3U);
  EXPECT_EQ(schedule.route(first).links.size(), 2U);
  EXPECT_EQ(schedule.route(first).links[1], LinkId(5));
}

TEST(Schedule, CountsChannels) {
  Schedule schedule;
  EXPECT_EQ(schedule.channel_count(), 0U);
  const RouteId route = schedule.add_route(Rank(0), Rank(1), std::vector<LinkId>{LinkId(0)});
  EXPECT_EQ(schedule.add_transfer(route, SliceId(0), 1, Action::reduce, ChannelId(4)), TransferId(0));
  EXPECT_EQ(schedule.channel_count(), 5U);
  EXPECT_EQ(schedule.transfers[0].action(), Action::reduce);
  EXPECT_EQ(schedule.transfers[0].channel(), ChannelId(4));
}

TEST(Collective, NamesReadBack) {
  for (const CollectiveKind kind : all_collective_kinds) EXPECT_EQ(parse_collective(to_string(kind)), kind);
  const auto unknown = parse_collective("allreduce");
  ASSERT_FALSE(unknown);
  EXPECT_EQ(unknown.error().message, "there is no collective 'allreduce'");
  EXPECT_EQ(unknown.error().help, "did you mean 'all_reduce'?");
}

TEST(Collective, HasARootWhereTheKindHasOne) {
  EXPECT_EQ(make_collective(CollectiveKind::broadcast, 4, std::nullopt)->root, Rank(0));
  EXPECT_EQ(make_collective(CollectiveKind::gather, 4, Rank(3))->root, Rank(3));
  EXPECT_TRUE(make_collective(CollectiveKind::all_reduce, 4, std::nullopt)->root.is_none());
  EXPECT_EQ(make_collective(CollectiveKind::scatter, 4, Rank(4)).error().message, "root 4 is not one of the 4 ranks");
  EXPECT_EQ(make_collective(CollectiveKind::all_to_all, 4, Rank(1)).error().message, "all_to_all has no root");
}

TEST(Collective, BusBandwidthFactorsAreThoseOfNcclTests) {
  const auto factor = [](CollectiveKind kind) { return make_collective(kind, 8, std::nullopt)->busbw_factor(); };
  EXPECT_EQ(factor(CollectiveKind::all_reduce), make_rational(7, 4));
  EXPECT_EQ(factor(CollectiveKind::all_gather), make_rational(7, 8));
  EXPECT_EQ(factor(CollectiveKind::reduce_scatter), make_rational(7, 8));
  EXPECT_EQ(factor(CollectiveKind::all_to_all), make_rational(7, 8));
  EXPECT_EQ(factor(CollectiveKind::broadcast), 1);
  EXPECT_EQ(factor(CollectiveKind::reduce), 1);
  EXPECT_EQ(factor(CollectiveKind::send_recv), 1);
}

TEST(Collective, PartsBelongToRanks) {
  const Collective exchange{CollectiveKind::all_to_all, 3, Rank()};
  EXPECT_EQ(exchange.part_count(), 9);
  EXPECT_EQ(exchange.extent_factor(), 3);
  EXPECT_EQ(ranks_of_part(exchange, 5), (PartRanks{Rank(1), Rank(2)}));
  const Collective shift{CollectiveKind::send_recv, 3, Rank()};
  EXPECT_EQ(shift.part_count(), 3);
  EXPECT_EQ(shift.extent_factor(), 3);
  EXPECT_EQ(ranks_of_part(shift, 2), (PartRanks{Rank(2), Rank(0)}));
  const Collective gather{CollectiveKind::gather, 3, Rank(1)};
  EXPECT_EQ(ranks_of_part(gather, 2), (PartRanks{Rank(2), Rank()}));
  EXPECT_EQ(bringer_of(gather, {Rank(2), Rank()}), Rank(2));
  EXPECT_EQ(receiver_of(gather, {Rank(2), Rank()}), Rank(1));
  const Collective sum{CollectiveKind::all_reduce, 3, Rank()};
  EXPECT_EQ(sum.part_count(), 1);
  EXPECT_EQ(ranks_of_part(sum, 0), PartRanks());
}

}  // namespace
}  // namespace espalier
