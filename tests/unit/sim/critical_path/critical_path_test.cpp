#include <gtest/gtest.h>

#include <map>

#include "sim/core/utilisation.h"
#include "sim/simulate.h"
#include "tests/support/networks/machine.h"

namespace espalier::sim {
namespace {

using sim::CriticalStep;
using test::Machine;

CriticalStep on_link(std::size_t transfer, std::uint32_t chunk, LinkId link, std::int64_t begin, std::int64_t end,
                     std::int64_t queued) {
  return {.transfer = TransferId(transfer),
          .chunk = chunk,
          .link = link,
          .begin = {begin},
          .end = {end},
          .queued = {queued}};
}

CriticalStep on_node(std::size_t node, bool reduces, std::int64_t begin, std::int64_t end, std::int64_t queued) {
  return {.transfer = TransferId(0),
          .node = NodeId(node),
          .reduces = reduces,
          .begin = {begin},
          .end = {end},
          .queued = {queued}};
}

/// A path without the parts that latency and overhead are of its steps, which have tests of their own.
std::vector<CriticalStep> path_of(const Machine& machine, std::int64_t size, std::int64_t chunk) {
  std::vector<CriticalStep> path = machine.simulate(size, chunk).critical_path;
  for (CriticalStep& step : path) step.latency = step.overhead = {};
  return path;
}

TEST(CriticalPath, FollowsDataFromRankToRank) {
  Machine machine(3);
  machine.slice_units = {1};
  const LinkId a = machine.add_link(0, 1, 10);
  const LinkId b = machine.add_link(1, 2, 20);
  machine.send({a});
  machine.send({b});
  EXPECT_EQ(path_of(machine, 100, 100), (std::vector{on_link(0, 0, a, 0, 110, 0), on_link(1, 0, b, 110, 230, 0)}));
}

TEST(CriticalPath, SaysWhatLatencyAndOverheadTook) {
  // 7 ps per message, 100 bytes and 10 ps of latency; of the first chunk of a lane only until it has left.
  Machine machine(2);
  machine.slice_units = {1};
  const LinkId a = machine.add_link(0, 1, 10);
  machine.links[a.index()].overhead = {7};
  machine.send({a});
  const auto path = machine.simulate(200, 100).critical_path;
  ASSERT_EQ(path.size(), 2U);
  EXPECT_EQ(path[0].overhead, Picoseconds{7});
  EXPECT_EQ(path[0].latency, Picoseconds{0});
  EXPECT_EQ(path[1].overhead, Picoseconds{7});
  EXPECT_EQ(path[1].latency, Picoseconds{10});
  EXPECT_EQ(path[1].end, Picoseconds{2 * 107 + 10});
}

TEST(CriticalPath, FollowsTheChunksOfALaneUntilTheyLeave) {
  Machine machine(2);
  machine.slice_units = {1};
  const LinkId a = machine.add_link(0, 1, 10);
  machine.send({a});
  EXPECT_EQ(path_of(machine, 100, 50), (std::vector{on_link(0, 0, a, 0, 50, 0), on_link(0, 1, a, 50, 110, 0)}));
}

TEST(CriticalPath, SaysWhatWasSpentInQueues) {
  // Transfer 1 asks for the shared link at 0, but transfer 0 has it until 100.
  Machine machine(2);
  machine.slice_units = {1, 1};
  const LinkId a = machine.add_link(0, 1, 10);
  machine.send({a}, 0, 1, Action::copy, 0);
  machine.send({a}, 1, 1, Action::copy, 1);
  EXPECT_EQ(path_of(machine, 200, 100), (std::vector{on_link(1, 0, a, 0, 210, 100)}));
}

TEST(CriticalPath, PutsTheTimeWhereTheSlowestLinkIs) {
  // On the slow link until 200 + 10; then only the latency of the fast one.
  Machine machine(2);
  machine.slice_units = {1};
  const std::size_t s = machine.add_switch();
  const LinkId slow = machine.add_link(0, s, 10, {picoseconds_per_second / 2});
  const LinkId fast = machine.add_link(s, 1, 5);
  machine.send({slow, fast});
  EXPECT_EQ(path_of(machine, 100, 100),
            (std::vector{on_link(0, 0, slow, 0, 210, 0), on_link(0, 0, fast, 210, 215, 0)}));
}

TEST(CriticalPath, NamesTheReducingRank) {
  Machine machine(2);
  machine.slice_units = {1};
  machine.nodes[1].reduce_bandwidth = test::byte_per_picosecond;
  const LinkId a = machine.add_link(0, 1, 10);
  machine.send({a}, 0, 1, Action::reduce);
  EXPECT_EQ(path_of(machine, 100, 100), (std::vector{on_link(0, 0, a, 0, 110, 0), on_node(1, true, 110, 210, 0)}));
}

TEST(CriticalPath, NamesTheNodeWithTheBackplane) {
  // The link has the chunk until 110; the backplane, asked at 10 and slower, until 210.
  Machine machine(2);
  machine.slice_units = {1};
  machine.nodes[1].bandwidth = {picoseconds_per_second / 2};
  const LinkId a = machine.add_link(0, 1, 10);
  machine.send({a});
  EXPECT_EQ(path_of(machine, 100, 100), (std::vector{on_link(0, 0, a, 0, 10, 0), on_node(1, false, 10, 210, 0)}));
}

TEST(CriticalPath, WaitsForDeparturesOnlyUntilTheSender) {
  // Rank 1 sends its slice away over a long link before rank 2 overwrites it.
  Machine machine(3);
  machine.slice_units = {1};
  const LinkId away = machine.add_link(1, 0, 50);
  const LinkId in = machine.add_link(2, 1, 100);
  machine.send({away});
  machine.send({in});
  EXPECT_EQ(path_of(machine, 100, 100), (std::vector{on_link(0, 0, away, 0, 100, 0), on_link(1, 0, in, 100, 300, 0)}));
}

TEST(CriticalPath, NamesTheLinkThatALaneIsHeldBackFor) {
  // Both ranks send three chunks of 100 over a link that they share behind their own; it serves them in turn. Rank 1's
  // second chunk asks it at 100 and enters at 300, so its third, ready at 200, is held back until then: asked earlier
  // it would only queue there. It does so from 300, behind the second and rank 0's third, until 500.
  Machine machine(3);
  machine.slice_units = {1, 1};
  const std::size_t hub = machine.add_switch();
  const LinkId first = machine.add_link(0, hub);
  const LinkId second = machine.add_link(1, hub);
  const LinkId shared = machine.add_link(hub, 2, 5);
  machine.send({first, shared}, 0);
  machine.send({second, shared}, 1);
  sim::Options options;
  options.size = {600};
  options.chunk = {100};
  options.element_size = 1;
  options.record_critical_path = options.record_sharing = true;
  const sim::Report report = *sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  EXPECT_EQ(report.elapsed, Picoseconds{605});
  std::int64_t sum = 0;
  for (const sim::PathPart& part : report.path_parts) {
    sum += part.time.count;
    EXPECT_TRUE(part.use != sim::PathUse::queueing || part.link == shared);
  }
  EXPECT_EQ(sum, 605);
  EXPECT_EQ(report.shared, (std::vector{sim::SharedTime{shared, NodeId(), Rank(0), Rank(2), {200}},
                                        sim::SharedTime{shared, NodeId(), Rank(1), Rank(2), {100}}}));
}

TEST(CriticalPath, SaysWhatSlowLinksAndTheLaunchCost) {
  // Launched at 7, a link of 1 byte/ps has half its rate: 100 bytes take 200.
  Machine machine(2);
  machine.slice_units = {1};
  const LinkId a = machine.add_link(0, 1, 10);
  machine.send({a});
  for (const sim::ModelKind model : sim::all_models) {
    sim::Options options;
    options.size = options.chunk = {100};
    options.element_size = 1;
    options.model = model;
    options.launch = {7};
    options.conditions.changes.push_back({a, {0}, 500'000});
    options.record_critical_path = options.record_sharing = true;
    const sim::Report report = *sim::simulate_unverified(machine.schedule(), machine.topology(), options);
    EXPECT_EQ(report.elapsed, Picoseconds{217});
    std::map<sim::PathUse, std::int64_t> times;
    for (const sim::PathPart& part : report.path_parts) times[part.use] += part.time.count;
    EXPECT_EQ(times, (std::map<sim::PathUse, std::int64_t>{{sim::PathUse::moving, 100},
                                                           {sim::PathUse::slowed, 100},
                                                           {sim::PathUse::latency, 10},
                                                           {sim::PathUse::launch, 7}}));
    EXPECT_TRUE(report.shared.empty());
  }
}

TEST(CriticalPath, IsSummedUpByClass) {
  // 100 bytes over a link of 1 byte/ps without a class, then over one of class "slow" of half the rate.
  Machine machine(3);
  machine.slice_units = {1};
  const LinkId a = machine.add_link(0, 1, 10);
  const LinkId b = machine.add_link(1, 2, 20, {test::byte_per_picosecond.bytes_per_second / 2});
  machine.links[b.index()].link_class = "slow";
  machine.send({a});
  machine.send({b});
  const auto shares = sim::summarize_critical_path(machine.simulate(100, 100), machine.topology());
  ASSERT_EQ(shares.size(), 2U);
  EXPECT_EQ(shares[0].what, "slow");
  EXPECT_EQ(shares[0].steps, 1U);
  EXPECT_EQ(shares[0].time, Picoseconds{220});
  EXPECT_EQ(shares[0].queued, Picoseconds{0});
  EXPECT_EQ(shares[1].what, "1000 GB/s");
  EXPECT_EQ(shares[1].time, Picoseconds{110});
}

}  // namespace
}  // namespace espalier::sim
