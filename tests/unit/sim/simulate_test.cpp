#include "sim/simulate.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "sim/core/utilisation.h"
#include "sim/core/workload.h"
#include "tests/support/networks/machine.h"

namespace espalier::sim {
namespace {

using sim::Options;
using test::Machine;

/// Two ranks, one link, one transfer of everything.
Machine make_pair() {
  Machine machine(2);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 10)});
  return machine;
}

Result<sim::Report> run(const Machine& machine, const Options& options) {
  return sim::simulate_unverified(machine.schedule(), machine.topology(), options);
}

TEST(Simulate, ReportsWhatItRan) {
  const auto report = run(make_pair(), {Bytes{4000}, Bytes{400}, 4, true, false});
  ASSERT_TRUE(report);
  EXPECT_EQ(report->size.count, 4000);
  EXPECT_EQ(report->chunk.count, 400);
  EXPECT_EQ(report->timeline->title, "all_reduce, test, 4000 B on test");
  EXPECT_EQ(report->timeline->origin, "simulation");
  EXPECT_EQ(report->timeline->rank_names, (std::vector<std::string>{"g0", "g1"}));
  EXPECT_EQ(report->timeline->link_names, (std::vector<std::string>{"g0>g1"}));
  EXPECT_TRUE(report->critical_path.empty());
}

/// Three ranks around a switch that adds and copies, 5 ps away; one byte takes 1 ps.
Machine make_one_shot(Bandwidth reduce_bandwidth) {
  Machine machine(3);
  const std::size_t hub = machine.add_switch();
  machine.make_relays();
  machine.nodes[hub].reduce_bandwidth = reduce_bandwidth;
  machine.slice_units = {1};
  for (std::size_t r = 0; r < 3; ++r) machine.send({machine.add_link(r, hub, 5)}, 0, 1, Action::reduce);
  for (std::size_t r = 0; r < 3; ++r) machine.send({machine.add_link(hub, r, 5)});
  return machine;
}

TEST(Simulate, ASwitchThatAddsHoldsAChunkUntilAllOfItIsThere) {
  // Up 100 + 5, down 100 + 5. In two chunks of 50 the second one follows 50 behind the first: 50 + 55 + 55.
  EXPECT_EQ(make_one_shot({}).simulate(100, 100).elapsed.count, 210);
  EXPECT_EQ(make_one_shot({}).simulate(100, 50).elapsed.count, 160);
  // Three chunks that come at 105 are added one after the other, 50 each: down from 255 on.
  const auto slow = make_one_shot({2 * picoseconds_per_second}).simulate(100, 100);
  EXPECT_EQ(slow.elapsed.count, 360);
  EXPECT_EQ(slow.timeline->rank_names, (std::vector<std::string>{"g0", "g1", "g2", "s0"}));
}

/// Two ranks that send each other all they brought, 5 ps apart; one byte takes 1 ps.
Machine make_exchange(Action action) {
  Machine machine(2);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 5)}, 0, 1, action);
  machine.send({machine.add_link(1, 0, 5)}, 0, 1, action == Action::reduce ? Action::copy : action);
  return machine;
}

TEST(Simulate, InputsPassEachOtherInOneStep) {
  // 100 + 5 both ways at once; added there and handed back, one after the other.
  EXPECT_EQ(make_exchange(Action::reduce_input).simulate(100, 100).elapsed.count, 105);
  EXPECT_EQ(make_exchange(Action::reduce).simulate(100, 100).elapsed.count, 210);
}

TEST(Simulate, RefusesAScheduleOfOtherRanksOrRelays) {
  const Machine machine = make_one_shot({});
  Schedule schedule = machine.schedule();
  schedule.relays[0] = NodeId(9);
  const auto report = sim::simulate_unverified(schedule, machine.topology(), {Bytes{100}, Bytes{100}, 1, false, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "the schedule has ranks or relays that are not on test");
}

TEST(Simulate, RecordsOnlyWhatIsAskedFor) {
  const auto report = run(make_pair(), {Bytes{4000}, Bytes{400}, 4, false, false});
  EXPECT_FALSE(report->timeline);
  EXPECT_TRUE(report->critical_path.empty());
}

TEST(Simulate, RefusesSizesThatDoNotFitTheElements) {
  const auto report = run(make_pair(), {Bytes{4001}, Bytes{400}, 4, false, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_input);
}

TEST(Simulate, RefusesChunksSmallerThanAnElement) {
  const auto report = run(make_pair(), {Bytes{4000}, Bytes{3}, 4, false, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_input);
  EXPECT_EQ(report.error().message, "a chunk of 3 bytes is smaller than an element of 4");
}

TEST(Simulate, RefusesTimesPastItsRange) {
  // 1 PiB at 1 byte per second is 2^50 s, far past 2^61 ps.
  Machine machine = make_pair();
  machine.links[0].nominal = {1};
  const auto report = run(machine, {max_message_size, max_message_size, 4, false, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::too_large);
  EXPECT_NE(report.error().message.find("2^61 ps"), std::string::npos) << report.error().message;
}

TEST(Simulate, RefusesOverheadsPastItsRange) {
  Machine machine = make_pair();
  machine.links[0].overhead = {INT64_MAX};
  EXPECT_EQ(run(machine, {Bytes{4}, Bytes{4}, 4, false, false}).error().code, ErrorCode::too_large);
}

TEST(Simulate, RefusesMoreChunksThanItsLimits) {
  const auto each = run(make_pair(), {Bytes{std::int64_t{1} << 40}, Bytes{4}, 4, false, false});
  ASSERT_FALSE(each);
  EXPECT_EQ(each.error().code, ErrorCode::too_large);
  EXPECT_NE(each.error().message.find("more chunks than the limit"), std::string::npos) << each.error().message;
}

TEST(Simulate, RefusesToRecordMoreThanItsLimit) {
  Machine machine(2);
  machine.slice_units = {1};
  const LinkId link = machine.add_link(0, 1);
  for (std::size_t i = 0; i < 7; ++i) machine.send({link}, 0, 1, Action::reduce, i);
  // 7 x 2^24 chunks, one step each.
  const std::int64_t size = sim::max_chunks_per_transfer;
  const auto report = run(machine, {Bytes{size}, Bytes{1}, 1, true, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::too_large);
  EXPECT_NE(report.error().message.find("steps"), std::string::npos) << report.error().message;
}

TEST(Simulate, RefusesRoutesOfAnotherTopology) {
  const Machine machine = make_pair();
  Machine reversed(2);
  reversed.add_link(1, 0);
  const auto report =
      sim::simulate_unverified(machine.schedule(), reversed.topology(), {Bytes{4}, Bytes{4}, 4, false, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().message, "route 0 of the schedule is not a path on the topology test");
  const Machine empty(2);
  EXPECT_FALSE(sim::simulate_unverified(machine.schedule(), empty.topology(), {Bytes{4}, Bytes{4}, 4, false, false}));
}

TEST(Simulate, RefusesIdsThatTheScheduleDoesNotHave) {
  const Machine machine = make_pair();
  Schedule schedule = machine.schedule();
  schedule.transfers[0].slice_count = 2;
  const auto report = sim::simulate_unverified(schedule, machine.topology(), {Bytes{4}, Bytes{4}, 4, false, false});
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::invalid_input);
}

TEST(Simulator, RunsManySizesAsSimulateDoes) {
  const Machine machine = make_pair();
  const Schedule schedule = machine.schedule();
  const Topology topology = machine.topology();
  const auto simulator = sim::Simulator::make_unverified(schedule, topology);
  ASSERT_TRUE(simulator);
  for (const std::int64_t size : {0, 4, 400, 4}) {
    const Options options{Bytes{size}, Bytes{40}, 4, true, true};
    const auto report = simulator->run(options);
    const auto expected = sim::simulate_unverified(schedule, topology, options);
    EXPECT_EQ(report->elapsed, expected->elapsed);
    EXPECT_EQ(report->links, expected->links);
    EXPECT_EQ(report->timeline->spans, expected->timeline->spans);
    EXPECT_EQ(report->critical_path, expected->critical_path);
  }
  EXPECT_FALSE(simulator->run({Bytes{5}, Bytes{4}, 4, false, false}));
}

TEST(BusiestLinks, AreSortedByTimeThenId) {
  Machine machine(3);
  machine.slice_units = {1, 1};
  const LinkId idle = machine.add_link(0, 2);
  const LinkId a = machine.add_link(0, 1);
  const LinkId b = machine.add_link(1, 2);
  const LinkId c = machine.add_link(2, 0);
  machine.send({a}, 0, 2);
  machine.send({b}, 0, 1);
  machine.send({c}, 0, 1);
  const sim::Report report = machine.simulate(200, 100);
  // In two chunks each: link a is busy for 200 ps; b for 50 from 100 and from 200 on, when a's chunks of 100 bytes are
  // there; c for 50 from 150 and from 250 on: the end is at 300.
  const auto shares = sim::busiest_links(report, machine.topology(), 10);
  ASSERT_EQ(shares.size(), 3U);
  EXPECT_EQ(shares[0].link, a);
  EXPECT_DOUBLE_EQ(shares[0].share, 200.0 / 300.0);
  EXPECT_EQ(shares[1].link, b);
  EXPECT_EQ(shares[2].link, c);
  EXPECT_EQ(sim::busiest_links(report, machine.topology(), 1).size(), 1U);
  EXPECT_EQ(report.links[idle.index()].bytes, 0);
}

/// Rank 0 sends to three others, a link of its own to each.
Machine make_fan() {
  Machine machine(4);
  machine.slice_units = {1};
  for (std::size_t r = 1; r < 4; ++r) machine.send({machine.add_link(0, r, 10)});
  return machine;
}

TEST(Simulate, CopyEnginesLimitHowManySendsGoAtOnce) {
  const Machine machine = make_fan();
  const auto elapsed = [&](std::uint32_t engines, Bandwidth rate = {}) {
    const Options options{Bytes{100}, Bytes{100}, 1};
    return sim::simulate_unverified(machine.schedule(), machine.topology(), options, {engines, rate})->elapsed.count;
  };
  EXPECT_EQ(elapsed(0), 110);  // all at once
  EXPECT_EQ(elapsed(3), 110);
  EXPECT_EQ(elapsed(2), 210);  // the third goes after the first
  EXPECT_EQ(elapsed(1), 310);
  EXPECT_EQ(elapsed(3, {picoseconds_per_second / 2}), 210);  // an engine slower than its link
}

TEST(Simulate, ACopyEngineIsOnTheCriticalPath) {
  const Machine machine = make_fan();
  Options options{Bytes{100}, Bytes{100}, 1};
  options.record_critical_path = true;
  const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options, {1});
  const auto shares = sim::summarize_critical_path(*report, machine.topology());
  EXPECT_TRUE(std::ranges::any_of(shares, [](const sim::CriticalShare& share) { return share.what == "copy engine"; }));
}

TEST(Simulate, MessagesShareTheProcessorOfTheirRank) {
  const Machine machine = make_fan();
  const auto elapsed = [&](std::int64_t size, ModelKind model) {
    Options options{Bytes{size}, Bytes{100}, 1};
    options.model = model;
    return sim::simulate_unverified(machine.schedule(), machine.topology(), options, {0, {}, {30}})->elapsed.count;
  };
  // The third chunk leaves its sender's processor at 90 and is whole at its receiver's 10 + 100 later; that one has
  // been at it for 100 by then.
  EXPECT_EQ(elapsed(100, ModelKind::link), 200);
  // Of 10 bytes the head is there at 100, the last byte at 110, and the receiver's processor done at 130.
  EXPECT_EQ(elapsed(10, ModelKind::link), 130);
  // The same in the model fair, as links are not shared here.
  EXPECT_EQ(elapsed(100, ModelKind::fair), 200);
  EXPECT_EQ(elapsed(10, ModelKind::fair), 130);
}

TEST(Simulate, RanksOfAHostShareItsProcessors) {
  Machine machine(4);  // 0 > 1 and 2 > 3, at once
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 10)});
  machine.send({machine.add_link(2, 3, 10)});
  for (Node& node : machine.nodes) node.host = "here";
  const auto elapsed = [&](std::uint32_t processors) {
    const Options options{Bytes{10}, Bytes{10}, 1};
    return sim::simulate_unverified(machine.schedule(), machine.topology(), options, {0, {}, {30}, processors})
        ->elapsed.count;
  };
  EXPECT_EQ(elapsed(0), 70);  // 30 to send, 10 on the way, 30 to receive
  EXPECT_EQ(elapsed(4), 70);
  // One for all: sent until 30 and 60; the first comes at 40, waits for the second to be sent, and is done at 90, the
  // second at 120.
  EXPECT_EQ(elapsed(1), 120);
}

TEST(Simulate, MessagesAreOnTheCriticalPath) {
  const Machine machine = make_fan();
  Options options{Bytes{100}, Bytes{100}, 1};
  options.record_critical_path = true;
  const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options, {0, {}, {30}});
  const auto shares = sim::summarize_critical_path(*report, machine.topology());
  EXPECT_TRUE(std::ranges::any_of(shares, [](const sim::CriticalShare& share) { return share.what == "processor"; }));
  EXPECT_EQ(sim::simulate_unverified(machine.schedule(), machine.topology(), options, {0, {}, {-1}}).error().code,
            ErrorCode::invalid_input);
}

TEST(Simulate, MessagesAreOnTheCriticalPathOfTheModelFair) {
  const Machine machine = make_fan();
  Options options{Bytes{10}, Bytes{100}, 1};
  options.model = ModelKind::fair;
  options.record_critical_path = true;
  const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options, {0, {}, {30}});
  std::int64_t messages = 0, queueing = 0, all = 0;
  for (const sim::PathPart& part : report->path_parts) {
    all += part.time.count;
    if (part.use == sim::PathUse::overhead) messages += part.time.count;
    if (part.use == sim::PathUse::queueing) queueing += part.time.count;
  }
  // The third chunk waits 60 for the two before it and 30 until it is sent; 10 of latency and 10 of bytes; of the 30
  // that its receiver takes from 100 on, 20 are left when its last byte is there.
  EXPECT_EQ(all, 130);
  EXPECT_EQ(queueing, 60);
  EXPECT_EQ(messages, 30 + 20);
}

TEST(Simulate, RefusesMoreCopyEnginesThanItsLimit) {
  const Machine machine = make_fan();
  EXPECT_EQ(
      sim::simulate_unverified(machine.schedule(), machine.topology(), {Bytes{100}, Bytes{100}, 1}, {65}).error().code,
      ErrorCode::invalid_input);
}

}  // namespace
}  // namespace espalier::sim
