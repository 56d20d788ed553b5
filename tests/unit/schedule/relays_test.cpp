#include "schedule/relays.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "schedule/dependencies.h"
#include "schedule/interpret.h"
#include "schedule/json/schedule_json.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "tests/support/breaches.h"
#include "tests/support/networks/relay_star.h"

namespace espalier {
namespace {

using test::breaches_of;

/// g0, g1, g2 around a switch: transfers 0, 1, 2 go up to it and 3, 4, 5 down.
class Relays : public ::testing::Test {
 protected:
  void expect_breach(const std::string& expected) { EXPECT_EQ(breaches_of(schedule_, star_), expected); }
  RouteId route(std::size_t src, std::size_t dst, std::initializer_list<std::size_t> links) {
    std::vector<LinkId> ids;
    for (const std::size_t link : links) ids.emplace_back(link);
    return schedule_.add_route(Rank(src), Rank(dst), ids);
  }

  Topology star_ = test::computing_star(3);
  Schedule schedule_ = test::one_shot_all_reduce(star_);
};

TEST_F(Relays, ASwitchAddsAndCopies) {
  expect_breach("");
  ASSERT_EQ(schedule_.transfers.size(), 6U);
  EXPECT_EQ(end_count(schedule_), 4U);
  EXPECT_EQ(end_name(schedule_, star_, Rank(3)), "s0");
  InterpretCase values = make_interpret_case(schedule_, 7);
  interpret(schedule_, values.before);
  EXPECT_EQ(values.before.size(), 3U);
  EXPECT_TRUE(keeps_promise(values, values.before));
}

TEST_F(Relays, EveryLinkCarriesTheBufferOnce) {
  // 25 GB/s each way: S bytes take S / 25e9 seconds, where 2 (N-1)/N S would have to pass without the switch.
  EXPECT_EQ(compute_loads(schedule_, star_).time_per_byte, make_rational(1, 25'000'000'000));
}

TEST_F(Relays, TheSumWaitsForAllContributions) {
  const Dependencies dependencies(schedule_);
  for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(dependencies.of(TransferId(i)).empty());
  for (std::size_t i = 3; i < 6; ++i) {
    std::vector<std::uint32_t> waits;
    for (const Dependency& wait : dependencies.of(TransferId(i))) waits.push_back(wait.transfer().value());
    EXPECT_EQ(waits, (std::vector<std::uint32_t>{0, 1, 2}));
  }
}

TEST_F(Relays, S1RejectsARelayThatIsNoNodeOrARankOrTwice) {
  schedule_.relays = {NodeId(9)};
  expect_breach("S1: relay 0 is not one of the topology's 4 nodes");
  schedule_.relays = {NodeId(0)};
  expect_breach("S1: relay 0 is g0, which is a rank");
  schedule_.relays = {NodeId(3), NodeId(3)};
  expect_breach("S1: relay 1 is s0, which is one already");
}

TEST_F(Relays, S1RejectsAnEndPastTheRelays) {
  schedule_.transfers[5].route = route(4, 2, {5});
  expect_breach("S1, transfer 5: rank 4 is not one of the 3 ranks and 1 relays");
}

TEST_F(Relays, S3RejectsARouteThatEndsElsewhere) {
  schedule_.transfers[0].route = route(0, 3, {0, 3});
  expect_breach("S3, transfer 0 (g0 to s0): its route ends at g1 instead of s0");
}

TEST_F(Relays, S5RejectsARelayThatHoldsNothing) {
  std::rotate(schedule_.transfers.begin(), schedule_.transfers.begin() + 3, schedule_.transfers.begin() + 4);
  // The first transfer now sends what the switch does not have yet to some rank, which loses its own contribution.
  const std::string all = breaches_of(schedule_, star_);
  EXPECT_TRUE(all.starts_with("S5, transfer 0 (s0 to g0): s0 does not hold slice 0 yet\n")) << all;
}

TEST_F(Relays, S5RejectsARelayThatHoldsNothingToCopy) {
  schedule_.collective = *make_collective(CollectiveKind::broadcast, 3, Rank(0));
  schedule_.transfers.clear();
  schedule_.add_transfer(route(3, 1, {3}), SliceId(0), 1, Action::copy, ChannelId(0));
  schedule_.add_transfer(route(0, 3, {0}), SliceId(0), 1, Action::copy, ChannelId(0));
  schedule_.add_transfer(route(3, 2, {5}), SliceId(0), 1, Action::copy, ChannelId(0));
  expect_breach("S5, transfer 0 (s0 to g1): s0 does not hold slice 0 yet\nS7: g1 does not end with slice 0");
}

TEST_F(Relays, S6RejectsAContributionThatARelayCountsTwice) {
  schedule_.transfers.insert(schedule_.transfers.begin(), schedule_.transfers[0]);
  expect_breach("S6, transfer 1 (g0 to s0): it adds the contribution of g0 to slice 0 a second time");
}

TEST_F(Relays, S7PromisesARelayNothing) {
  // The last sum does not come to g2, while nobody misses what the switch holds.
  schedule_.transfers.pop_back();
  expect_breach("S7: g2 ends with 1 of 3 contributions to slice 0; that of g0 is missing");
}

TEST_F(Relays, S8RejectsARelayAtASwitchThatOnlyForwards) {
  star_ = test::computing_star(3, false, false);
  const std::string all = breaches_of(schedule_, star_);
  EXPECT_TRUE(all.ends_with("\nS8: s0 is a relay, and can neither copy (multicast) nor add (reduction)")) << all;
}

TEST_F(Relays, S8RejectsAnAdditionAtASwitchThatOnlyCopies) {
  star_ = test::computing_star(3, true, false);
  expect_breach(
      "S8, transfer 0 (g0 to s0): s0 cannot add: it has no reduction\n"
      "S8, transfer 1 (g1 to s0): s0 cannot add: it has no reduction\n"
      "S8, transfer 2 (g2 to s0): s0 cannot add: it has no reduction");
}

TEST_F(Relays, S8RejectsASecondCopyFromASwitchThatOnlyAdds) {
  star_ = test::computing_star(3, false, true);
  expect_breach(
      "S8, transfer 4 (s0 to g1): s0 sends slice 0 a second time and cannot copy: it has no multicast\n"
      "S8, transfer 5 (s0 to g2): s0 sends slice 0 a second time and cannot copy: it has no multicast");
}

TEST_F(Relays, PlansAreReadAsTheyAreWritten) {
  for (const bool embed : {true, false}) {
    std::ostringstream out;
    ASSERT_TRUE(write_schedule(out, schedule_, star_, {embed}));
    EXPECT_NE(out.str().find("\"ranks\": [\"g0\", \"g1\", \"g2\"],\n \"relays\": [\"s0\"], \"root\": null"),
              std::string::npos);
    const Result<PlanFile> plan = read_plan(out.str(), "plan.json");
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(breaches_of(plan->schedule, plan->topology), "");
    std::ostringstream again;
    ASSERT_TRUE(write_schedule(again, plan->schedule, plan->topology, {embed}));
    EXPECT_EQ(again.str(), out.str());
  }
}

TEST_F(Relays, PlansNameRelaysThatExist) {
  std::ostringstream out;
  ASSERT_TRUE(write_schedule(out, schedule_, star_, {true}));
  std::string text = out.str();
  text.replace(text.find("\"relays\": [\"s0\"]"), 16, "\"relays\": [\"s7\"]");
  const Result<PlanFile> plan = read_plan(text, "plan.json");
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message.substr(plan.error().message.find("the relay")),
            "the relay 's7' is not a node of 'star-3'");
}

TEST(RelayTrees, ABranchThatEndsAtARelayIsRefused) {
  const Topology star = test::computing_star(2);
  Forest forest;
  forest.relays = {star.find_node("s0")};
  forest.out_trees = {{Rank(0), 1, {{Rank(0), Rank(1), {LinkId(0), LinkId(3)}}, {Rank(0), Rank(2), {LinkId(0)}}}}};
  const auto schedule =
      schedule_from_trees(*make_collective(CollectiveKind::broadcast, 2, Rank(0)), star, "test", forest);
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().message, "a branch of tree 0 ends at the relay s0");
}

}  // namespace
}  // namespace espalier
