#include "forecast/run_limits.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "planners/planner.h"
#include "tests/support/networks/machine.h"
#include "topology/generate/generate.h"

namespace espalier::forecast {
namespace {

using test::Machine;

const Improvement* find(const RunLimits& limits, const std::string& change) {
  const auto found = std::ranges::find(limits.improvements, change, &Improvement::change);
  return found == limits.improvements.end() ? nullptr : &*found;
}

sim::Options bytes_of(std::int64_t size, std::int64_t chunk) {
  sim::Options options;
  options.size = {size};
  options.chunk = {chunk};
  options.element_size = 1;
  return options;
}

/// Over a fast link (1 byte/ps, 10 ps) and then a slow one (1 byte per 4 ps, 20 ps), handed on at a rank.
Machine make_chain() {
  Machine machine(3);
  machine.slice_units = {1};
  const LinkId fast = machine.add_link(0, 1, 10);
  const LinkId slow = machine.add_link(1, 2, 20, {test::byte_per_picosecond.bytes_per_second / 4});
  machine.links[fast.index()].link_class = "fast";
  machine.links[slow.index()].link_class = "slow";
  machine.send({fast});
  machine.send({slow});
  return machine;
}

/// Of transfers that keep no promise.
Result<RunLimits> limits_of(const Machine& machine, const sim::Options& options) {
  const Topology topology = machine.topology();
  const Schedule schedule = machine.schedule();
  planners::Candidate candidate{"test", schedule, planners::ChunkModel(schedule, topology)};
  candidate.is_verified = true;
  return find_run_limits(candidate, topology, options);
}

TEST(RunLimits, AChainSavesWhatItsSlowLinkSaves) {
  // One chunk of 1,000 bytes: 10 + 1,000 over the fast link, 20 + 4,000 over the slow one.
  const Machine machine = make_chain();
  const auto limits = limits_of(machine, bytes_of(1000, 1000));
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->report.elapsed, Picoseconds{5030});
  const Improvement* slow = find(*limits, "twice the bandwidth of slow (1 link)");
  ASSERT_NE(slow, nullptr);
  EXPECT_EQ(slow->elapsed, Picoseconds{3030});
  const Improvement* fast = find(*limits, "twice the bandwidth of fast (1 link)");
  ASSERT_NE(fast, nullptr);
  EXPECT_EQ(fast->elapsed, Picoseconds{4530});
  const Improvement* latency = find(*limits, "half the latency of slow (1 link)");
  ASSERT_NE(latency, nullptr);
  EXPECT_EQ(latency->elapsed, Picoseconds{5020});
  // Chunks of 250 bytes: the fast link has handed the first on after 260, the slow one is busy for 4,000 from then on.
  const Improvement* chunks = find(*limits, "chunks of 250 B instead of 1000 B");
  ASSERT_NE(chunks, nullptr);
  EXPECT_EQ(chunks->elapsed, Picoseconds{4280});
  EXPECT_TRUE(std::ranges::is_sorted(limits->improvements, {}, &Improvement::elapsed));
  EXPECT_EQ(limits->improvements.front().change.substr(0, 29), "twice the bandwidth of slow (");
}

TEST(RunLimits, ThePathIsDividedExactly) {
  const Machine machine = make_chain();
  const auto limits = limits_of(machine, bytes_of(1000, 1000));
  ASSERT_TRUE(limits);
  ASSERT_EQ(limits->path.size(), 4U);
  EXPECT_EQ(limits->path[0].use, sim::PathUse::moving);
  EXPECT_EQ(limits->path[0].where, "slow");
  EXPECT_EQ(limits->path[0].time, Picoseconds{4000});
  EXPECT_EQ(limits->path[0].max_at, "g1>g2");
  EXPECT_EQ(limits->path[1].where, "fast");
  EXPECT_EQ(limits->path[1].time, Picoseconds{1000});
  EXPECT_EQ(limits->path[2].use, sim::PathUse::latency);
  EXPECT_EQ(limits->path[2].time, Picoseconds{20});
  EXPECT_EQ(limits->path[3].time, Picoseconds{10});
  EXPECT_TRUE(limits->full.empty());  // The slow link is busy for 4,000 of 5,030.
}

TEST(RunLimits, WaitingForTheLinkToBeFreeIsMovingOverIt) {
  // Four chunks of 250 over one slow link: a chunk waits until the one before it has departed; only the last one's
  // latency counts.
  Machine machine(2);
  machine.slice_units = {1};
  const LinkId link = machine.add_link(0, 1, 30, {test::byte_per_picosecond.bytes_per_second / 4});
  machine.send({link});
  const auto limits = limits_of(machine, bytes_of(1000, 250));
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->report.elapsed, Picoseconds{4030});
  ASSERT_EQ(limits->path.size(), 2U);
  EXPECT_EQ(limits->path[0].use, sim::PathUse::moving);
  EXPECT_EQ(limits->path[0].time, Picoseconds{4000});
  EXPECT_EQ(limits->path[1].use, sim::PathUse::latency);
  EXPECT_EQ(limits->path[1].time, Picoseconds{30});
  ASSERT_EQ(limits->full.size(), 1U);
  EXPECT_EQ(limits->full.front().link, link);
}

TEST(RunLimits, AFlowsTimeInTheModelFairIsLatencyItsOwnAndSharing) {
  // 200 and 400 bytes over own links (latency 5) and one that they share (latency 10): the first has half the rate
  // until it ends at 415, the second's last 200 bytes have all of it.
  Machine machine(3);
  machine.slice_units = {1, 2};
  const std::size_t hub = machine.add_switch();
  const LinkId first = machine.add_link(0, hub, 5);
  const LinkId second = machine.add_link(1, hub, 5);
  const LinkId shared = machine.add_link(hub, 2, 10);
  machine.links[shared.index()].link_class = "shared";
  machine.send({first, shared}, 0);
  machine.send({second, shared}, 1);
  sim::Options options = bytes_of(600, 600);
  options.model = sim::ModelKind::fair;
  const auto limits = limits_of(machine, options);
  ASSERT_TRUE(limits) << limits.error().message;
  EXPECT_EQ(limits->report.elapsed, Picoseconds{615});
  ASSERT_EQ(limits->report.shared.size(), 1U);
  EXPECT_EQ(limits->report.shared[0], (sim::SharedTime{shared, NodeId(), Rank(0), Rank(2), {200}}));
  ASSERT_EQ(limits->path.size(), 4U);
  EXPECT_EQ(limits->path[0].use, sim::PathUse::moving);
  EXPECT_EQ(limits->path[0].time, Picoseconds{400});
  EXPECT_EQ(limits->path[1].use, sim::PathUse::sharing);
  EXPECT_EQ(limits->path[1].where, "shared");
  EXPECT_EQ(limits->path[1].time, Picoseconds{200});
  EXPECT_EQ(limits->path[2].use, sim::PathUse::latency);
  EXPECT_EQ(limits->path[2].where, "shared");
  EXPECT_EQ(limits->path[2].time, Picoseconds{10});
  EXPECT_EQ(limits->path[3].time, Picoseconds{5});
  ASSERT_EQ(limits->full.size(), 1U);
  EXPECT_EQ(limits->full[0].link, shared);
  const Improvement* twice = find(*limits, "twice the bandwidth of shared (1 link)");
  ASSERT_NE(twice, nullptr);
  EXPECT_EQ(twice->elapsed, Picoseconds{415});  // Both have all of their own links.
}

TEST(RunLimits, OverheadAndReductionAreNamedAndMended) {
  // 7 ps per message, 100 bytes at 1 byte/ps, then 200 ps of reduction.
  Machine machine(2);
  machine.slice_units = {1};
  machine.nodes[1].reduce_bandwidth = {test::byte_per_picosecond.bytes_per_second / 2};
  const LinkId link = machine.add_link(0, 1, 10);
  machine.links[link.index()].overhead = {7};
  machine.send({link}, 0, 1, Action::reduce);
  const auto limits = limits_of(machine, bytes_of(100, 100));
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->report.elapsed, Picoseconds{7 + 100 + 10 + 200});
  std::int64_t sum = 0;
  for (const sim::PathTime& share : limits->path) sum += share.time.count;
  EXPECT_EQ(sum, limits->report.elapsed.count);
  EXPECT_EQ(limits->path.front().use, sim::PathUse::reducing);
  EXPECT_EQ(limits->path.front().max_at, "g1");
  const Improvement* reduction = find(*limits, "twice the reduction rate of ranks");
  ASSERT_NE(reduction, nullptr);
  EXPECT_EQ(reduction->elapsed, Picoseconds{7 + 100 + 10 + 100});
  const Improvement* overhead = find(*limits, "no per-message overhead on 1000 GB/s (1 link)");
  ASSERT_NE(overhead, nullptr);
  EXPECT_EQ(overhead->elapsed, Picoseconds{100 + 10 + 200});
}

TEST(RunLimits, ASmallRingSaysLatency) {
  // All-gather of 8 ranks by rings: 7 hops in a row, each mostly latency at 64 bytes.
  const Topology torus = *generate_torus({{8}, {}});
  const Collective collective = *make_collective(CollectiveKind::all_gather, 8, std::nullopt);
  const std::vector<planners::Planner> planners = {*planners::find_planner("ring"), *planners::find_planner("flat")};
  const auto candidates = planners::make_candidates(torus, collective, planners);
  ASSERT_TRUE(candidates && candidates->made.size() == 2);
  sim::Options options;
  options.size = {512};
  options.chunk = {4096};
  const auto limits = find_run_limits(candidates->made.front(), torus, options, candidates->made);
  ASSERT_TRUE(limits);
  EXPECT_EQ(limits->path.front().use, sim::PathUse::latency);
  const Improvement& best = limits->improvements.front();
  EXPECT_EQ(best.kind, "latency") << best.change;
  // Half of seven latencies is saved, of a time that is hardly more than seven latencies.
  const std::int64_t hop = torus.link(LinkId(0)).latency.count;
  EXPECT_EQ(limits->report.elapsed.count - best.elapsed.count, 7 * hop / 2);
}

}  // namespace
}  // namespace espalier::forecast
