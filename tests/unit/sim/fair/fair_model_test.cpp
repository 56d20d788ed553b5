#include "sim/fair/fair_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "sim/compiled/compiled_schedule.h"
#include "sim/simulate.h"
#include "tests/support/networks/machine.h"

namespace espalier::sim {
namespace {

using sim::ModelKind;
using sim::Report;
using test::Machine;

constexpr Bandwidth half_rate{picoseconds_per_second / 2};  ///< Two picoseconds per byte.

Report simulate_fair(const Machine& machine, std::int64_t size, std::int64_t chunk,
                     const sim::Conditions& conditions = {}) {
  sim::Options options{Bytes{size}, Bytes{chunk}, 1, true, true};
  options.model = ModelKind::fair;
  options.conditions = conditions;
  auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  EXPECT_TRUE(report) << report.error().message;
  return std::move(*report);
}

/// Ranks 0 and 1 send over one link to rank 2, `first` and `second` bytes of latency 0.
struct SharedLink {
  Machine machine{3};
  LinkId from0, from1, shared;

  SharedLink(std::int64_t first, std::int64_t second, std::int64_t latency = 0) {
    machine.slice_units = {first, second};
    const std::size_t s = machine.add_switch();
    from0 = machine.add_link(0, s);
    from1 = machine.add_link(1, s, latency);
    shared = machine.add_link(s, 2);
    machine.send({from0, shared}, 0);
    machine.send({from1, shared}, 1);
  }
};

TEST(FairModel, SingleLinkTakesLatencyPlusBytesOverBandwidth) {
  Machine machine(2);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 500)});
  EXPECT_EQ(simulate_fair(machine, 1000, 1000).elapsed.count, 1500);
  // The next chunk's bytes follow the last one's without a gap.
  EXPECT_EQ(simulate_fair(machine, 1000, 10).elapsed.count, 1500);
}

TEST(FairModel, TimesRoundUpOncePerChunk) {
  Machine machine(2);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 0, {3 * picoseconds_per_second})});
  // 10 bytes at 3 B/ps: 3.33 ps, rounded up; cut in 10, each byte takes 1 ps.
  EXPECT_EQ(simulate_fair(machine, 10, 10).elapsed.count, 4);
  EXPECT_EQ(simulate_fair(machine, 10, 1).elapsed.count, 10);
}

TEST(FairModel, ZeroBytesTakeTheLatency) {
  Machine machine(3);
  machine.slice_units = {1};
  machine.send({machine.add_link(0, 1, 500)});
  machine.send({machine.add_link(1, 2, 700)});
  EXPECT_EQ(simulate_fair(machine, 0, 1).elapsed.count, 700);
}

TEST(FairModel, ARouteIsAsFastAsItsSlowestLink) {
  Machine machine(2);
  machine.slice_units = {1};
  const std::size_t s = machine.add_switch();
  machine.send({machine.add_link(0, s, 10, half_rate), machine.add_link(s, 1, 5)});
  EXPECT_EQ(simulate_fair(machine, 100, 100).elapsed.count, 10 + 5 + 200);
  EXPECT_EQ(simulate_fair(machine, 100, 10).elapsed.count, 10 + 5 + 200);
}

TEST(FairModel, OverheadIsPaidBeforeEveryChunk) {
  Machine machine(2);
  machine.slice_units = {1};
  const LinkId link = machine.add_link(0, 1, 500);
  machine.links[link.index()].overhead = {7};
  machine.send({link});
  EXPECT_EQ(simulate_fair(machine, 1000, 1000).elapsed.count, 7 + 500 + 1000);
  EXPECT_EQ(simulate_fair(machine, 1000, 100).elapsed.count, 500 + 10 * 7 + 1000);
}

TEST(FairModel, TwoFlowsShareALinkAtEveryMoment) {
  // Half each until the shorter one is done at 400; the longer one has 200 left and all of the link.
  const SharedLink two(200, 400);
  const Report report = simulate_fair(two.machine, 600, 600);
  EXPECT_EQ(report.elapsed.count, 600);
  std::vector<std::int64_t> ends;
  for (const Span& span : report.timeline->spans) {
    if (span.phase == Phase::recv) ends.push_back(span.end.count);
  }
  std::ranges::sort(ends);
  EXPECT_EQ(ends, (std::vector<std::int64_t>{400, 600}));
  EXPECT_EQ(report.links[two.shared.index()], (sim::LinkUse{600, {600}}));
  EXPECT_EQ(report.links[two.from0.index()], (sim::LinkUse{200, {200}}));
}

TEST(FairModel, TransfersOfOneConnectionTakeTurnsWhateverTheirChannels) {
  // Three trees of 100 bytes each down a chain of four ranks, each on a channel of its own: links pass one whole chunk
  // after the other, so the last one arrives after 3 + 3 - 1 times 100. Sharing, it would be 3 x 3.
  Machine machine(4);
  machine.slice_units = {1, 1, 1};
  std::vector<LinkId> links;
  for (std::size_t i = 0; i < 3; ++i) links.push_back(machine.add_link(i, i + 1, 5));
  for (std::size_t tree = 0; tree < 3; ++tree) {
    for (const LinkId link : links) machine.send({link}, tree, 1, Action::copy, tree);
  }
  EXPECT_EQ(simulate_fair(machine, 300, 100).elapsed.count, 3 * 5 + 5 * 100);
  // In chunks of 10 bytes there are ten times as many, a tenth as long: the trees still take turns.
  EXPECT_EQ(simulate_fair(machine, 300, 10).elapsed.count, 3 * 5 + 32 * 10);
}

TEST(FairModel, RoutesOverOtherLinksAreOtherConnections) {
  Machine machine(2);
  machine.slice_units = {1, 1};
  const LinkId first = machine.add_link(0, 1);
  const LinkId second = machine.add_link(0, 1);
  machine.send({first}, 0, 1, Action::copy, 0);
  machine.send({second}, 1, 1, Action::copy, 1);
  EXPECT_EQ(simulate_fair(machine, 200, 100).elapsed.count, 100);
}

TEST(FairModel, AFlowThatWaitsForItsTurnLosesToTheOneThatHasIt) {
  Machine machine(2);
  machine.slice_units = {1, 3};
  const LinkId link = machine.add_link(0, 1);
  machine.send({link}, 0, 1, Action::copy, 0);
  machine.send({link}, 1, 1, Action::copy, 1);
  sim::Options options{Bytes{400}, Bytes{400}, 1};
  options.model = ModelKind::fair;
  options.record_critical_path = options.record_sharing = true;
  const auto report = sim::simulate_unverified(machine.schedule(), machine.topology(), options);
  ASSERT_TRUE(report) << report.error().message;
  // The second one begins at 0, waits for the first one's 100 bytes and takes 300 ps itself.
  EXPECT_EQ(report->elapsed.count, 400);
  ASSERT_EQ(report->critical_path.size(), 1U);
  EXPECT_EQ(report->critical_path[0].transfer, TransferId(1U));
  EXPECT_EQ(report->critical_path[0].queued.count, 100);
}

TEST(FairModel, AFlowInItsLatencyTakesNothing) {
  // The second flow begins at 100, when the first one has 200 of 300 bytes left: both have 200 then and end at 500.
  const SharedLink two(300, 200, 100);
  const Report report = simulate_fair(two.machine, 500, 500);
  EXPECT_EQ(report.elapsed.count, 500);
}

TEST(FairModel, WhatOneFlowCannotUseTheOtherGets) {
  // Rank 0's own link carries half a byte per picosecond, so both get half of the shared one: 400 bytes take 800 ps.
  // At a quarter, the other flow has three quarters: 300 bytes are there at 400, and 100 of the first one's 400 bytes.
  Machine machine(3);
  machine.slice_units = {400, 300};
  const std::size_t s = machine.add_switch();
  const LinkId slow = machine.add_link(0, s, 0, {picoseconds_per_second / 4});
  const LinkId fast = machine.add_link(1, s);
  const LinkId shared = machine.add_link(s, 2);
  machine.send({slow, shared}, 0);
  machine.send({fast, shared}, 1);
  const Report report = simulate_fair(machine, 700, 700);
  EXPECT_EQ(report.elapsed.count, 1600);
  const auto second = std::ranges::find_if(report.timeline->spans, [](const Span& span) {
    return span.phase == Phase::recv && span.transfer == TransferId(1U);
  });
  EXPECT_EQ(second->end.count, 400);
}

TEST(FairModel, ThreeFlowsOfALinkGetExactThirds) {
  Machine machine(2);
  machine.slice_units = {1, 1, 1};
  const LinkId link = machine.add_link(0, 1);
  for (std::size_t i = 0; i < 3; ++i) machine.send({link}, i, 1, Action::copy, i);
  EXPECT_EQ(simulate_fair(machine, 300, 100).elapsed.count, 300);
}

TEST(FairModel, ABackplaneIsSharedByWhatEntersAndLeaves) {
  // Rank 1 receives 100 bytes and sends 100: its backplane carries 200.
  Machine machine(3);
  machine.nodes[1].bandwidth = {picoseconds_per_second};
  machine.slice_units = {1, 1};
  machine.send({machine.add_link(0, 1)}, 0);
  machine.send({machine.add_link(1, 2)}, 1);
  EXPECT_EQ(simulate_fair(machine, 200, 100).elapsed.count, 200);
}

TEST(FairModel, ReductionsTakeTurns) {
  // Two chunks of 100 bytes come at 200 both (they share the last link) and are added at half a byte per picosecond,
  // one after the other.
  Machine machine(3);
  machine.nodes[2].reduce_bandwidth = half_rate;
  machine.slice_units = {1, 1};
  const std::size_t s = machine.add_switch();
  const LinkId shared = machine.add_link(s, 2);
  machine.send({machine.add_link(0, s), shared}, 0, 1, Action::reduce);
  machine.send({machine.add_link(1, s), shared}, 1, 1, Action::reduce);
  const Report report = simulate_fair(machine, 200, 100);
  EXPECT_EQ(report.elapsed.count, 200 + 400);
}

TEST(FairModel, RingAllReduceTakesItsClosedForm) {
  // 2 (N - 1) steps of latency and one shard.
  constexpr std::size_t ranks = 8;
  Machine machine(ranks);
  machine.slice_units.assign(ranks, 1);
  std::vector<LinkId> links;
  for (std::size_t r = 0; r < ranks; ++r) links.push_back(machine.add_link(r, (r + 1) % ranks, 30));
  for (std::size_t step = 0; step < 2 * (ranks - 1); ++step) {
    for (std::size_t r = 0; r < ranks; ++r) {
      const Action action = step + 1 < ranks ? Action::reduce : Action::copy;
      machine.send({links[r]}, (r + 2 * ranks - step) % ranks, 1, action);
    }
  }
  EXPECT_EQ(simulate_fair(machine, 800, 100).elapsed.count, 14 * (30 + 100));
}

TEST(FairModel, ARateThatChangesSharesAnewAtThatMoment) {
  // 100 of 400 bytes at the full rate; then half of it.
  SharedLink two(0, 400);
  const sim::Conditions slows{{{two.shared, {100}, 500'000}}, 0, 0};
  const Report report = simulate_fair(two.machine, 400, 400, slows);
  EXPECT_EQ(report.elapsed.count, 100 + 600);
  // Busy all the time: 100 ps at the old rate and 600 at the new one. Its own link has half of its time left.
  EXPECT_EQ(report.links[two.shared.index()], (sim::LinkUse{400, {700}}));
  EXPECT_EQ(report.links[two.from1.index()], (sim::LinkUse{400, {400}}));
}

TEST(FairModel, ADeadLinkStallsItsFlowsUntilItComesBack) {
  SharedLink two(200, 400);
  const sim::Conditions dies{{{two.from0, {100}, 0}, {two.from0, {5000}, 1'000'000}}, 0, 0};
  // Until 100 both have 50; then the second flow has the link alone and ends at 450; the first one has 150 left at
  // 5000.
  const Report report = simulate_fair(two.machine, 600, 600, dies);
  EXPECT_EQ(report.elapsed.count, 5150);
  EXPECT_EQ(report.links[two.shared.index()], (sim::LinkUse{600, {600}}));
}

TEST(FairModel, WhatWaitsForADeadLinkIsRefused) {
  SharedLink two(200, 400);
  sim::Options options{Bytes{600}, Bytes{600}, 1};
  options.model = ModelKind::fair;
  options.conditions.changes = {{two.from0, {100}, 0}};
  const auto report = sim::simulate_unverified(two.machine.schedule(), two.machine.topology(), options);
  ASSERT_FALSE(report);
  EXPECT_EQ(report.error().code, ErrorCode::infeasible);
}

TEST(FairModel, JitterOnlySlowsAndFollowsItsSeed) {
  SharedLink two(20'000, 40'000);
  const auto elapsed = [&](std::uint64_t seed) {
    return simulate_fair(two.machine, 60'000, 1000, {{}, 20'000, seed}).elapsed.count;
  };
  EXPECT_GT(elapsed(1), 60'000);
  EXPECT_LT(elapsed(1), 61'200);
  EXPECT_EQ(elapsed(1), elapsed(1));
  EXPECT_NE(elapsed(1), elapsed(2));
}

TEST(FairModel, CriticalPathSaysWhatSharingCost) {
  const SharedLink two(200, 400);
  const Report report = simulate_fair(two.machine, 600, 600);
  ASSERT_EQ(report.critical_path.size(), 1U);
  EXPECT_EQ(report.critical_path[0].transfer, TransferId(1U));
  EXPECT_EQ(report.critical_path[0].end.count, 600);
  EXPECT_EQ(report.critical_path[0].queued.count, 200);  // alone it takes 400
}

/// Drives a model until nothing happens any more.
std::vector<sim::RankEnd> drain(sim::Model& model) {
  std::vector<sim::RankEnd> ended;
  while (model.next_time() != sim::never) model.advance(ended);
  return ended;
}

std::int64_t latest(const std::vector<sim::RankEnd>& ended, sim::RunId run) {
  std::int64_t time = -1;
  for (const sim::RankEnd& end : ended) {
    if (end.run == run) time = std::max(time, end.time);
  }
  return time;
}

struct TwoRuns {
  Machine machine{2};
  LinkId link;
  Topology topology;
  Schedule schedule;
  sim::Network network;
  sim::CompiledSchedule compiled;

  TwoRuns()
      : link((machine.slice_units = {1}, machine.add_link(0, 1, 10))),
        topology((machine.send({link}), machine.topology())),
        schedule(machine.schedule()),
        network(topology),
        compiled(std::move(*sim::CompiledSchedule::make_unverified(schedule, topology, network))) {}
};

TEST(FairModel, RunsShareLinksWithEachOther) {
  TwoRuns two;
  const auto model = sim::make_model(ModelKind::fair, two.network, {});
  const sim::RunId first = *model->add(two.compiled, {Bytes{400}, Bytes{400}, 1});
  const sim::RunId second = *model->add(two.compiled, {Bytes{200}, Bytes{200}, 1});
  model->enter(first, Rank(0U), 0);
  model->enter(first, Rank(1U), 0);
  model->enter(second, Rank(0U), 0);
  model->enter(second, Rank(1U), 100);
  const std::vector<sim::RankEnd> ended = drain(*model);
  // The second run begins when both its ranks are there: bytes from 110 on. The first one has 300 of 400 left then, so
  // the second one's 200 take 400 ps at half the rate, until 510, and the first one's last 100 another 100.
  EXPECT_EQ(ended.size(), 4U);
  EXPECT_EQ(latest(ended, second), 510);
  EXPECT_EQ(latest(ended, first), 610);
  EXPECT_EQ(model->links()[0], (sim::LinkUse{600, {600}}));
}

TEST(FairModel, AnAbortedRunBeginsNothingMore) {
  TwoRuns two;
  const auto model = sim::make_model(ModelKind::fair, two.network, {});
  const sim::RunId first = *model->add(two.compiled, {Bytes{400}, Bytes{100}, 1});
  const sim::RunId second = *model->add(two.compiled, {Bytes{200}, Bytes{200}, 1});
  for (const sim::RunId run : {first, second}) {
    model->enter(run, Rank(0U), 0);
    model->enter(run, Rank(1U), 0);
  }
  std::vector<sim::RankEnd> ended;
  model->advance(ended);
  model->abort(first);
  // Its first chunk goes on: both have half the link, until 100 bytes are there at 10 + 200; the second one has 100
  // left then.
  while (model->next_time() != sim::never) model->advance(ended);
  EXPECT_EQ(latest(ended, first), -1);
  EXPECT_EQ(latest(ended, second), 310);
  EXPECT_EQ(model->links()[0].bytes, 300);
}

TEST(FairModel, WhatWaitsForItsTurnInAnAbortedRunIsDropped) {
  Machine machine(2);
  machine.slice_units = {1, 1, 1};
  const LinkId link = machine.add_link(0, 1);
  for (std::size_t i = 0; i < 3; ++i) machine.send({link}, i, 1, Action::copy, i);
  const Topology topology = machine.topology();
  const Schedule schedule = machine.schedule();
  const sim::Network network(topology);
  const auto compiled = sim::CompiledSchedule::make_unverified(schedule, topology, network);
  const auto model = sim::make_model(ModelKind::fair, network, {});
  const sim::RunId first = *model->add(*compiled, {Bytes{300}, Bytes{100}, 1});
  model->enter_all(first, 0);
  std::vector<sim::RankEnd> ended;
  model->advance(ended);
  model->abort(first);
  // The chunk that moves goes on until 100; the two behind it never move.
  while (model->next_time() != sim::never) model->advance(ended);
  EXPECT_EQ(latest(ended, first), -1);
  EXPECT_EQ(model->links()[0].bytes, 100);
  // What the run had is free for the next one.
  const sim::RunId second = *model->add(*compiled, {Bytes{300}, Bytes{100}, 1});
  model->enter_all(second, 100);
  while (model->next_time() != sim::never) model->advance(ended);
  EXPECT_EQ(latest(ended, second), 400);
}

}  // namespace
}  // namespace espalier::sim
