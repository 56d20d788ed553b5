#include "sim/model.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"
#include "sim/simulate.h"
#include "tests/support/networks/machine.h"
#include "tests/support/networks/random_machine.h"

namespace espalier::sim {
namespace {

using sim::CompiledSchedule;
using sim::Conditions;
using sim::Model;
using sim::ModelKind;
using sim::Network;
using sim::never;
using sim::RankEnd;
using sim::RunId;
using test::Machine;

/// Two ranks, a link each way with a latency of 10 ps, and one transfer of everything from rank 0 to rank 1.
Machine make_two() {
  Machine machine(2);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 10)});
  machine.add_link(1, 0, 10);
  return machine;
}

/// A machine's schedule on its network, in a model of its own.
class World {
 public:
  explicit World(const Machine& machine, const Conditions& conditions = {})
      : topology_(machine.topology()),
        schedule_(machine.schedule()),
        network_(topology_),
        compiled_(*CompiledSchedule::make_unverified(schedule_, topology_, network_)),
        model_(sim::make_model(ModelKind::link, network_, conditions)) {}

  Model& model() { return *model_; }
  const Topology& topology() const { return topology_; }

  RunId add(std::int64_t size, std::int64_t chunk = 1 << 20) {
    return *model_->add(compiled_, {Bytes{size}, Bytes{chunk}, 1});
  }

  /// Runs until nothing happens any more; what ended, in the order of run and rank.
  std::vector<RankEnd> finish() {
    std::vector<RankEnd> ended;
    while (model_->next_time() != never) model_->advance(ended);
    std::ranges::sort(ended, {}, [](const RankEnd& end) { return std::pair(end.run, end.rank); });
    return ended;
  }

 private:
  Topology topology_;
  Schedule schedule_;
  Network network_;
  CompiledSchedule compiled_;
  std::unique_ptr<Model> model_;
};

TEST(Model, ARunBeginsWhenBothEndsHaveEntered) {
  World world(make_two());
  const RunId run = world.add(100);
  EXPECT_EQ(world.model().next_time(), never);
  world.model().enter(run, Rank(0), 40);
  EXPECT_EQ(world.model().next_time(), never);
  world.model().enter(run, Rank(1), 70);
  const auto ended = world.finish();
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].time, 170);  // the last byte left the sender
  EXPECT_EQ(ended[1].time, 180);  // and was there 10 ps later
}

TEST(Model, RunsShareALinkInTheOrderOfAsking) {
  World world(make_two());
  const RunId first = world.add(100);
  const RunId second = world.add(100);
  for (const std::size_t rank : {0U, 1U}) {
    world.model().enter(first, Rank(rank), 50);
    world.model().enter(second, Rank(rank), 20);
  }
  const auto ended = world.finish();
  ASSERT_EQ(ended.size(), 4U);
  EXPECT_EQ(ended[3].time, 130);  // the second one asked first: 20 to 120
  EXPECT_EQ(ended[1].time, 230);  // the first one waited until 120
  EXPECT_EQ(world.model().links()[0], (sim::LinkUse{200, {200}}));
}

TEST(Model, OfRunsThatAskAtOnceTheEarlierGoesFirst) {
  World world(make_two());
  const RunId first = world.add(100);
  const RunId second = world.add(100);
  for (const RunId run : {second, first}) {
    for (const std::size_t rank : {0U, 1U}) world.model().enter(run, Rank(rank), 0);
  }
  const auto ended = world.finish();
  EXPECT_EQ(ended[1].time, 110);
  EXPECT_EQ(ended[3].time, 210);
}

TEST(Model, ARankThatMovesNothingIsThroughWhenItEnters) {
  Machine machine(3);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 10)});
  machine.add_link(1, 2);
  World world(machine);
  const RunId run = world.add(100);
  world.model().enter(run, Rank(0), 0);
  world.model().enter(run, Rank(1), 0);
  EXPECT_EQ(world.finish().size(), 2U);
  world.model().enter(run, Rank(2), 500);
  const auto ended = world.finish();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(ended[0].time, 500);
}

TEST(Model, AnAbortedRunStopsAndOthersGoOn) {
  World world(make_two());
  const RunId lost = world.add(100, 10);
  const RunId kept = world.add(100, 10);
  for (const std::size_t rank : {0U, 1U}) world.model().enter(lost, Rank(rank), 0);
  std::vector<RankEnd> ended;
  for (int i = 0; i < 3; ++i) world.model().advance(ended);  // three chunks of ten
  world.model().abort(lost);
  for (const std::size_t rank : {0U, 1U}) world.model().enter(kept, Rank(rank), 30);
  ended = world.finish();
  ASSERT_EQ(ended.size(), 2U);
  EXPECT_EQ(ended[0].run, kept);
  EXPECT_EQ(ended[1].time, 140);  // 30 ps of the lost run, then 100 and the latency
  EXPECT_EQ(world.model().links()[0].bytes, 130);
}

TEST(Model, ALinkThatSlowsDownTakesTheRestLonger) {
  World world(make_two(), {.changes = {{LinkId(0), {40}, 500'000}}});
  const RunId run = world.add(100);
  for (const std::size_t rank : {0U, 1U}) world.model().enter(run, Rank(rank), 0);
  EXPECT_EQ(world.finish()[1].time, 170);  // 40 bytes at full, 60 at half the rate, and the latency
}

TEST(Model, ALinkThatFlapsDelaysByTheTimeItIsDown) {
  World world(make_two(), {.changes = {{LinkId(0), {70}, 1'000'000}, {LinkId(0), {40}, 0}}});
  const RunId run = world.add(100);
  for (const std::size_t rank : {0U, 1U}) world.model().enter(run, Rank(rank), 0);
  EXPECT_EQ(world.finish()[1].time, 140);
}

TEST(Model, NothingEndsBehindALinkThatDied) {
  World world(make_two(), {.changes = {{LinkId(0), {40}, 0}}});
  const RunId run = world.add(100);
  for (const std::size_t rank : {0U, 1U}) world.model().enter(run, Rank(rank), 0);
  EXPECT_TRUE(world.finish().empty());
  world.model().abort(run);  // and its memory is free again
  EXPECT_EQ(world.model().next_time(), never);
}

TEST(Simulate, RefusesARunThatNeverEndsNamingTheLink) {
  const Machine machine = make_two();
  sim::Options options{Bytes{100}, Bytes{100}, 1};
  options.conditions.changes = {{LinkId(0), {40}, 0}, {LinkId(1), {0}, 0}};
  const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::infeasible);
  EXPECT_NE(report.error().message.find("g0>g1"), std::string::npos) << report.error().message;
  EXPECT_EQ(report.error().message.find("g1>g0"), std::string::npos) << "that one is not used";
}

TEST(Simulate, RefusesConditionsThatAreWrong) {
  const Machine machine = make_two();
  const auto refusal = [&](const Conditions& conditions) {
    sim::Options options{Bytes{100}, Bytes{100}, 1};
    options.conditions = conditions;
    const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
    return report ? std::string() : report.error().message;
  };
  EXPECT_NE(refusal({.changes = {{LinkId(7), {0}, 0}}}).find("link 7"), std::string::npos);
  EXPECT_NE(refusal({.changes = {{LinkId(0), {-1}, 0}}}).find("before the start"), std::string::npos);
  EXPECT_NE(refusal({.changes = {{LinkId(0), {0}, 1'000'001}}}).find("0 to 100 %"), std::string::npos);
  EXPECT_NE(refusal({.jitter_ppm = -1}).find("jitter"), std::string::npos);
}

TEST(Simulate, CountsTheLaunchAndTheProtocol) {
  const Machine machine = make_two();
  sim::Options options{Bytes{100}, Bytes{100}, 1};
  options.launch = {1000};
  options.payload_ppm = 500'000;
  const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  ASSERT_TRUE(report);
  EXPECT_EQ(report->elapsed.count, 1000 + 200 + 10);
  EXPECT_EQ(report->links[0].bytes, 200);
}

TEST(Simulate, JitterOnlyEverDelaysAndFollowsItsSeed) {
  const Machine machine = make_two();
  const auto elapsed = [&](std::int32_t ppm, std::uint64_t seed) {
    sim::Options options{Bytes{100'000}, Bytes{1000}, 1};
    options.conditions = {.jitter_ppm = ppm, .seed = seed};
    return sim::simulate_unverified(machine.schedule(), machine.topology(), options)->elapsed.count;
  };
  EXPECT_EQ(elapsed(0, 1), 100'010);
  EXPECT_GT(elapsed(100'000, 1), 104'000);  // a hundred chunks: five per cent in the mean
  EXPECT_LT(elapsed(100'000, 1), 106'000);
  EXPECT_EQ(elapsed(100'000, 1), elapsed(100'000, 1));
  EXPECT_NE(elapsed(100'000, 1), elapsed(100'000, 2));
}

/// Two schedules on one network, and both as one schedule: slices, channels and transfers one after the other.
TEST(Model, RunsAtOnceAreOneScheduleOfAll) {
  test::RandomMachine maker(20'261'121);
  for (int round = 0; round < 400; ++round) {
    const Machine machine = maker.make();
    const Topology topology = machine.topology();
    const Schedule alone = machine.schedule();
    Schedule both = alone;
    for (const Slice& slice : alone.slices) {
      both.slices.push_back({alone.units + slice.offset, slice.length, slice.rank, slice.to});
    }
    both.units *= 2;
    for (const Transfer& transfer : alone.transfers) {
      const SliceId first(alone.slices.size() + transfer.first_slice.index());
      const ChannelId channel(alone.channel_count() + transfer.channel().index());
      both.add_transfer(transfer.route, first, transfer.slice_count, transfer.action(), channel);
    }
    const std::int64_t bytes_per_unit = maker.random().between(1, 5);
    const std::int64_t size = alone.units * bytes_per_unit;
    const auto expected = sim::simulate_unverified(both, topology, {Bytes{2 * size}, Bytes{1 << 20}, 1});
    ASSERT_TRUE(expected) << expected.error().message;

    const Network network(topology);
    const auto compiled = CompiledSchedule::make_unverified(alone, topology, network);
    ASSERT_TRUE(compiled);
    const auto model = sim::make_model(ModelKind::link, network, {});
    std::vector<RankEnd> ended;
    for (int copy = 0; copy < 2; ++copy) {
      const auto run = model->add(*compiled, {Bytes{size}, Bytes{1 << 20}, 1});
      ASSERT_TRUE(run);
      for (std::size_t rank = 0; rank < topology.rank_count(); ++rank) model->enter(*run, Rank(rank), 0);
    }
    while (model->next_time() != never) model->advance(ended);
    EXPECT_EQ(ended.size(), 2 * topology.rank_count());
    EXPECT_EQ(model->links(), expected->links) << "round " << round;
    EXPECT_EQ(model->events(), expected->events) << "round " << round;
    std::int64_t last = 0;
    for (const RankEnd& end : ended) last = std::max(last, end.time);
    if (!alone.relays.empty()) continue;  // what ends at a relay ends at no rank
    EXPECT_EQ(last, expected->elapsed.count) << "round " << round;
  }
}

}  // namespace
}  // namespace espalier::sim
