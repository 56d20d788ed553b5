#include "schedule/json/schedule_json.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

#include "schedule/verify/verify.h"
#include "tests/support/forests.h"
#include "tests/support/networks/fabrics.h"

namespace espalier {
namespace {

std::string written(const Schedule& schedule, const Topology& topology, bool embed_network = true) {
  std::ostringstream out;
  EXPECT_TRUE(write_schedule(out, schedule, topology, {embed_network}));
  return out.str();
}

/// The plan in docs/schedule.md: an all_gather of two ranks around one switch.
constexpr std::string_view example = R"({"espalier_schedule": 1, "collective": "all_gather", "topology": "star-2",
 "ranks": ["g0", "g1"], "root": null, "algorithm": "packing", "units": 2,
 "slices": [
  {"offset": 0, "length": 1, "rank": 0},
  {"offset": 1, "length": 1, "rank": 1}],
 "transfers": [
  {"slices": [0, 1], "src": 0, "dst": 1, "action": "copy", "channel": 0, "route": ["g0", "s0", "g1"]},
  {"slices": [1, 1], "src": 1, "dst": 0, "action": "copy", "channel": 1, "route": ["g1", "s0", "g0"]}],
 "bound": {"algbw": 50000000000, "time_per_byte": "1/50000000000", "cut": ["g1", "s0"]}}
)";

TEST(ScheduleJson, WritesTheDocumentedForm) {
  const Topology star = test::star_of(2);
  Schedule schedule = test::ring_schedule(star, CollectiveKind::all_gather);
  schedule.algorithm = "packing";
  schedule.bound = Bound{make_rational(1, 50'000'000'000), {star.find_node("g1"), star.find_node("s0")}, ""};
  EXPECT_EQ(written(schedule, star, false), example);
}

TEST(ScheduleJson, ReadsTheDocumentedForm) {
  const Topology star = test::star_of(2);
  const Result<PlanFile> plan = read_plan(example, "plan.json", &star);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->network_was_given);
  EXPECT_TRUE(plan->warnings.empty());
  EXPECT_TRUE(verify(plan->schedule, plan->topology).ok());
  EXPECT_EQ(plan->schedule.bound->time_per_byte, make_rational(1, 50'000'000'000));
  EXPECT_EQ(written(plan->schedule, star, false), example);
}

TEST(ScheduleJson, KeepsHowItIsCutAndWhoseItIs) {
  const Topology star = test::star_of(3);
  Schedule schedule = test::ring_schedule(star, CollectiveKind::all_gather);
  schedule.pacing = SizedPacing{{1 << 20}, {4096}, 8};
  const Result<PlanFile> whole = read_plan(written(schedule, star), "plan.json");
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(whole->schedule.pacing, schedule.pacing);
  EXPECT_FALSE(whole->of_rank);
  // A ring of three: rank 1 sends to rank 2 and receives from rank 0, so the transfers from 2 to 0 are not its.
  Schedule part = schedule;
  std::erase_if(part.transfers, [&](const Transfer& transfer) {
    return part.src(transfer) != Rank(1) && part.dst(transfer) != Rank(1);
  });
  ASSERT_LT(part.transfers.size(), schedule.transfers.size());
  std::ostringstream out;
  ASSERT_TRUE(write_schedule(out, part, star, {.of_rank = Rank(1)}));
  const Result<PlanFile> read = read_plan(out.str(), "part.json");
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(read->of_rank, Rank(1));
  EXPECT_EQ(read->schedule.transfers.size(), part.transfers.size());
}

TEST(ScheduleJson, KeysMayComeInAnyOrder) {
  // nlohmann::json sorts keys, so that "algorithm" and "bound" come first and "units" last.
  const std::string sorted = nlohmann::json::parse(example).dump(2);
  const Topology star = test::star_of(2);
  const Result<PlanFile> plan = read_plan(sorted, "plan.json", &star);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(written(plan->schedule, star, false), example);
}

TEST(ScheduleJson, AnEmbeddedNetworkMakesTheFileComplete) {
  Random random(41);
  const Topology fabric = test::random_fabric(5, 3, 7, random);
  const Schedule schedule = test::random_schedule(fabric, CollectiveKind::all_reduce, random);
  const std::string text = written(schedule, fabric);
  const Result<PlanFile> plan = read_plan(text, "plan.json");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_TRUE(plan->network_was_given);
  EXPECT_TRUE(plan->warnings.empty());
  EXPECT_EQ(plan->topology.link_count(), fabric.link_count());
  EXPECT_TRUE(verify(plan->schedule, plan->topology).ok());
  EXPECT_EQ(written(plan->schedule, plan->topology), text);
}

TEST(ScheduleJson, WithoutANetworkTheRoutesImplyOne) {
  const Result<PlanFile> plan = read_plan(example, "plan.json");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_FALSE(plan->network_was_given);
  EXPECT_EQ(plan->topology.node_count(), 3U);
  EXPECT_EQ(plan->topology.link_count(), 4U);
  EXPECT_TRUE(verify(plan->schedule, plan->topology).ok());
  ASSERT_EQ(plan->warnings.size(), 1U);
  EXPECT_EQ(plan->warnings[0].code, "P002");
  EXPECT_EQ(plan->warnings[0].place.line, 6);
  EXPECT_EQ(written(plan->schedule, plan->topology, false), example);
}

TEST(ScheduleJson, AnotherTopologyThanThePlanNamesIsAWarning) {
  test::FabricMaker maker;
  const NodeId g0 = maker.add_rank();
  const NodeId g1 = maker.add_rank();
  const NodeId s0 = maker.add_switch();
  maker.add_cable(g0, s0);
  maker.add_cable(g1, s0);
  const Topology other = maker.build("other");
  const Result<PlanFile> plan = read_plan(example, "plan.json", &other);
  ASSERT_TRUE(plan);
  ASSERT_EQ(plan->warnings.size(), 1U);
  EXPECT_EQ(plan->warnings[0].message, "the plan was made for 'star-2' and is read for 'other'");
}

/// Two ranks with two cables between them: links g0>g1#0, g1>g0#0, g0>g1#1, g1>g0#1.
Topology double_cable() {
  test::FabricMaker maker;
  const NodeId g0 = maker.add_rank();
  const NodeId g1 = maker.add_rank();
  maker.add_cable(g0, g1);
  maker.add_cable(g0, g1);
  return maker.build("double");
}

std::string broadcast_with_route(std::string_view route) {
  return R"({"espalier_schedule": 1, "collective": "broadcast", "topology": "double", "ranks": ["g0", "g1"],)"
         R"( "root": 0,)"
         R"( "algorithm": "test", "units": 1, "slices": [{"offset": 0, "length": 1}], "transfers": [{"slices": [0, 1],)"
         R"( "src": 0, "dst": 1, "action": "copy", "channel": 0)" +
         std::string(route) + "}]}";
}

TEST(ScheduleJson, ParallelLinksAreWrittenByName) {
  const Topology fabric = double_cable();
  Schedule schedule(*make_collective(CollectiveKind::broadcast, 2, Rank(0)), "double", "test");
  schedule.units = 1;
  schedule.slices = {{0, 1, Rank(), Rank()}};
  schedule.add_transfer(schedule.add_route(Rank(0), Rank(1), std::vector<LinkId>{LinkId(2)}), SliceId(0), 1,
                        Action::copy, ChannelId(0));
  const std::string text = written(schedule, fabric, false);
  EXPECT_NE(text.find(R"("route": ["g0>g1#1"])"), std::string::npos) << text;
  const Result<PlanFile> plan = read_plan(text, "plan.json", &fabric);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->schedule.route(RouteId(0)).links[0], LinkId(2));
}

TEST(ScheduleJson, RoutesMixNodesAndLinks) {
  const Topology fabric = double_cable();
  for (const char* route : {R"(, "route": ["g0>g1#1"])", R"(, "route": ["g0", "g0>g1#1"])",
                            R"(, "route": ["g0>g1#1", "g1"])", R"(, "route": ["g0", "g0>g1#1", "g1"])"}) {
    const Result<PlanFile> plan = read_plan(broadcast_with_route(route), "plan.json", &fabric);
    ASSERT_TRUE(plan) << plan.error().message;
    EXPECT_EQ(plan->schedule.route(RouteId(0)).links.size(), 1U);
    EXPECT_EQ(plan->schedule.route(RouteId(0)).links[0], LinkId(2));
    const Result<PlanFile> implied = read_plan(broadcast_with_route(route), "plan.json");
    ASSERT_TRUE(implied) << implied.error().message;
    EXPECT_EQ(implied->topology.link_name(implied->schedule.route(RouteId(0)).links[0]), "g0>g1#1");
  }
}

TEST(ScheduleJson, ARouteMayBeLeftOutWhereOneLinkJoinsTheRanks) {
  const Topology pair = test::line_of(2);
  const Result<PlanFile> plan = read_plan(broadcast_with_route(""), "plan.json", &pair);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->schedule.route(RouteId(0)).links[0], LinkId(0));
  const Topology fabric = double_cable();
  EXPECT_EQ(read_plan(broadcast_with_route(""), "plan.json", &fabric).error().message,
            "plan.json:1:196: transfer 0: it has no route, and 2 links go from 'g0' to 'g1'");
}

TEST(ScheduleJson, ANodeNameDoesNotChooseBetweenParallelLinks) {
  const Topology fabric = double_cable();
  const Result<PlanFile> plan = read_plan(broadcast_with_route(R"(, "route": ["g0", "g1"])"), "plan.json", &fabric);
  ASSERT_FALSE(plan);
  EXPECT_EQ(plan.error().message, "plan.json:1:283: transfer 0: 2 links go from 'g0' to 'g1'");
  EXPECT_EQ(plan.error().help, "name the one that is meant, as 'g0>g1#0'");
}

TEST(ScheduleJson, BadIdsOfRanksAreLeftToVerify) {
  const Topology line = test::line_of(3);
  const std::string text =
      R"({"espalier_schedule": 1, "collective": "broadcast", "topology": "line-3", "ranks": ["g0", "g1", "g2"],)"
      R"( "root": 0, "algorithm": "test", "units": 1, "slices": [{"offset": 0, "length": 1}], "transfers": [)"
      R"({"slices": [0, 1], "src": 0, "dst": 2, "action": "copy", "channel": 0, "route": ["g0", "g1", "g2"]}]})";
  const Result<PlanFile> plan = read_plan(text, "plan.json", &line);
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(verify(plan->schedule, line).breaches.at(0).rule, Rule::S3);
}

TEST(ScheduleJson, ABoundOfZeroHasNoRate) {
  const Topology alone = test::line_of(1);
  Schedule schedule = test::ring_schedule(alone, CollectiveKind::all_reduce);
  schedule.bound = Bound{make_rational(0), {}, "nothing has to move"};
  const std::string text = written(schedule, alone);
  EXPECT_NE(text.find(R"("bound": {"algbw": null, "time_per_byte": "0/1", "cut": [], "what": "nothing has to move"})"),
            std::string::npos)
      << text;
  const Result<PlanFile> plan = read_plan(text, "plan.json");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(written(plan->schedule, plan->topology), text);
}

TEST(ScheduleJson, NamesAreEscaped) {
  test::FabricMaker maker;
  const NodeId first = maker.add_rank("a\"b\\c");
  const NodeId second = maker.add_rank("\u00e9 $x");
  maker.add_cable(first, second);
  const Topology fabric = maker.build("strange \"name\"");
  const std::string text = written(test::ring_schedule(fabric, CollectiveKind::all_gather), fabric);
  EXPECT_TRUE(nlohmann::json::accept(text)) << text;
  const Result<PlanFile> plan = read_plan(text, "plan.json");
  ASSERT_TRUE(plan) << plan.error().message;
  EXPECT_EQ(plan->topology.rank_name(Rank(1)), "\u00e9 $x");
  EXPECT_EQ(written(plan->schedule, plan->topology), text);
}

TEST(ScheduleJson, AFullStreamIsAnError) {
  const Topology pair = test::line_of(2);
  std::ostringstream out;
  out.setstate(std::ios::badbit);
  const Result<void> result = write_schedule(out, test::ring_schedule(pair, CollectiveKind::all_gather), pair);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::unavailable);
}

TEST(ScheduleJson, RoundTripsRandomSchedules) {
  Random random(43);
  for (int round = 0; round < 40; ++round) {
    const Topology fabric = test::random_fabric(1 + random.below(7), random.below(4), random.below(10), random);
    for (const CollectiveKind kind : all_collective_kinds) {
      const Schedule schedule = test::random_schedule(fabric, kind, random);
      for (const bool embed : {true, false}) {
        const std::string text = written(schedule, fabric, embed);
        const Result<PlanFile> plan = read_plan(text, "plan.json", embed ? nullptr : &fabric);
        ASSERT_TRUE(plan) << plan.error().message;
        EXPECT_EQ(plan->schedule.slices, schedule.slices);
        EXPECT_EQ(plan->schedule.collective, schedule.collective);
        EXPECT_EQ(written(plan->schedule, plan->topology, embed), text);
        EXPECT_TRUE(verify(plan->schedule, plan->topology).ok());
      }
    }
  }
}

}  // namespace
}  // namespace espalier
