#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "sim/simulate.h"
#include "tests/support/networks/machine.h"
#include "tests/support/sanitized.h"

namespace espalier::sim {
namespace {

using sim::Report;
using test::byte_per_picosecond;
using test::Machine;

constexpr Bandwidth half{picoseconds_per_second / 2};  ///< Two picoseconds per byte.

/// Slices of one unit each.
void add_slices(Machine& machine, std::size_t count) { machine.slice_units.assign(count, 1); }

std::vector<Span> spans_of(const Report& report, Phase phase) {
  std::vector<Span> found;
  std::ranges::copy_if(report.timeline->spans, std::back_inserter(found),
                       [&](const Span& span) { return span.phase == phase; });
  return found;
}

/// The transfers that a link carried, in order.
std::vector<std::uint32_t> order_on(const Report& report, LinkId link) {
  std::vector<std::uint32_t> order;
  for (const Span& span : spans_of(report, Phase::wire)) {
    if (span.lane == link.value()) order.push_back(span.transfer.value());
  }
  return order;
}

TEST(LinkModel, SingleLinkTakesLatencyPlusBytesOverBandwidth) {
  Machine machine(2);
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 500)});
  // 1000 bytes at 1 ps each, and 500 ps.
  EXPECT_EQ(machine.simulate(1000, 1000).elapsed.count, 1500);
  // Chunks follow each other without gaps, so cutting changes nothing.
  EXPECT_EQ(machine.simulate(1000, 10).elapsed.count, 1500);
}

TEST(LinkModel, ChunkTimesRoundUp) {
  Machine machine(2);
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 0, {3 * picoseconds_per_second})});
  // 10 bytes at 3 B/ps: 3.33 ps, rounded up; cut in 10, each byte takes 1 ps.
  EXPECT_EQ(machine.simulate(10, 10).elapsed.count, 4);
  EXPECT_EQ(machine.simulate(10, 1).elapsed.count, 10);
}

TEST(LinkModel, ZeroBytesTakeTheLatency) {
  Machine machine(3);
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 500)});
  machine.send({machine.add_link(1, 2, 700)});
  // No byte has to arrive before the second transfer starts.
  EXPECT_EQ(machine.simulate(0, 1).elapsed.count, 700);
  EXPECT_EQ(machine.simulate(0, 1).events, 2U);
}

TEST(LinkModel, NoTransfersTakeNoTime) {
  Machine machine(1);
  add_slices(machine, 1);
  const Report report = machine.simulate(1000, 10);
  EXPECT_EQ(report.elapsed.count, 0);
  EXPECT_TRUE(report.critical_path.empty());
  EXPECT_TRUE(report.timeline->spans.empty());
}

TEST(LinkModel, ChainOfRanksPipelinesChunks) {
  // h links from rank to rank, n chunks of b bytes: the first chunk takes h (alpha + b/B), every other one b/B more.
  // Together h alpha + (h + n - 1) b/B.
  for (const std::size_t links : {1U, 2U, 5U}) {
    for (const std::int64_t chunks : {1, 2, 7}) {
      Machine machine(links + 1);
      add_slices(machine, 1);
      for (std::size_t i = 0; i < links; ++i) machine.send({machine.add_link(i, i + 1, 30)});
      const auto h = static_cast<std::int64_t>(links);
      EXPECT_EQ(machine.simulate(100 * chunks, 100).elapsed.count, h * 30 + (h + chunks - 1) * 100);
    }
  }
}

TEST(LinkModel, SwitchesCutThrough) {
  // The head is not held up by switches: all latencies, and the bytes once, whatever the chunks.
  Machine machine(2);
  add_slices(machine, 1);
  const std::size_t s0 = machine.add_switch();
  const std::size_t s1 = machine.add_switch();
  machine.send({machine.add_link(0, s0, 10), machine.add_link(s0, s1, 20), machine.add_link(s1, 1, 30)});
  EXPECT_EQ(machine.simulate(1000, 1000).elapsed.count, 1060);
  EXPECT_EQ(machine.simulate(1000, 100).elapsed.count, 1060);
}

TEST(LinkModel, SlowThenFastWaitsForTheLastByte) {
  // The fast link is asked at 10 and busy for 100 ps, but the last byte comes from the slow one at 200 + 10.
  Machine machine(2);
  add_slices(machine, 1);
  const std::size_t s = machine.add_switch();
  machine.send({machine.add_link(0, s, 10, half), machine.add_link(s, 1, 5)});
  const Report report = machine.simulate(100, 100);
  EXPECT_EQ(report.elapsed.count, 200 + 10 + 5);
  EXPECT_EQ(report.links[1].busy.count, 100);
}

TEST(LinkModel, FastThenSlowIsAsFastAsTheSlowLink) {
  Machine machine(2);
  add_slices(machine, 1);
  const std::size_t s = machine.add_switch();
  machine.send({machine.add_link(0, s, 10), machine.add_link(s, 1, 5, half)});
  EXPECT_EQ(machine.simulate(100, 100).elapsed.count, 10 + 200 + 5);
  // Pacing in two, the second chunk asks the slow link at 60 and gets it at 110: it is never idle.
  EXPECT_EQ(machine.simulate(100, 50).elapsed.count, 10 + 200 + 5);
}

TEST(LinkModel, TwoFlowsThatShareALinkTakeTurns) {
  // Two ranks send 300 bytes each to rank 2 through one switch link: 600 ps on it.
  Machine machine(3);
  add_slices(machine, 2);
  const std::size_t s = machine.add_switch();
  const LinkId from0 = machine.add_link(0, s);
  const LinkId from1 = machine.add_link(1, s);
  const LinkId shared = machine.add_link(s, 2);
  machine.send({from0, shared}, 0);
  machine.send({from1, shared}, 1);
  const Report report = machine.simulate(600, 100);
  EXPECT_EQ(report.elapsed.count, 600);
  EXPECT_EQ(report.links[shared.index()], (sim::LinkUse{600, {600}}));
  // Both ask at 0, 100, 200: turn by turn, transfer 0 first.
  EXPECT_EQ(order_on(report, shared), (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));
}

TEST(LinkModel, LanesThatShareTheFirstLinkTakeTurns) {
  Machine machine(2);
  add_slices(machine, 2);
  const LinkId link = machine.add_link(0, 1);
  machine.send({link}, 0, 1, Action::copy, 0);
  machine.send({link}, 1, 1, Action::copy, 1);
  const Report report = machine.simulate(600, 100);
  EXPECT_EQ(order_on(report, link), (std::vector<std::uint32_t>{0, 1, 0, 1, 0, 1}));
  EXPECT_EQ(report.elapsed.count, 600);
}

TEST(LinkModel, OneLaneKeepsProgramOrder) {
  Machine machine(2);
  add_slices(machine, 2);
  const LinkId link = machine.add_link(0, 1);
  machine.send({link}, 1);
  machine.send({link}, 0);
  EXPECT_EQ(order_on(machine.simulate(400, 100), link), (std::vector<std::uint32_t>{0, 0, 1, 1}));
}

TEST(LinkModel, FirstToAskIsFirstServed) {
  // Rank 1 is nearer to the switch, so its chunk asks for the shared link first although it comes later in the program.
  Machine machine(3);
  add_slices(machine, 2);
  const std::size_t s = machine.add_switch();
  const LinkId far = machine.add_link(0, s, 50);
  const LinkId near = machine.add_link(1, s, 20);
  const LinkId shared = machine.add_link(s, 2);
  machine.send({far, shared}, 0);
  machine.send({near, shared}, 1);
  std::vector<std::pair<std::uint32_t, std::int64_t>> entries;
  const Report report = machine.simulate(200, 100);
  for (const Span& span : spans_of(report, Phase::wire)) {
    if (span.lane == shared.value()) entries.emplace_back(span.transfer.value(), span.begin.count);
  }
  EXPECT_EQ(entries, (std::vector<std::pair<std::uint32_t, std::int64_t>>{{1, 20}, {0, 120}}));
}

TEST(LinkModel, OverheadDelaysEachChunkAtTheSender) {
  Machine machine(2);
  add_slices(machine, 1);
  const std::size_t s = machine.add_switch();
  const LinkId first = machine.add_link(0, s, 10);
  const LinkId second = machine.add_link(s, 1, 10);
  machine.links[first.index()].overhead = {5};
  machine.links[second.index()].overhead = {2};  // paid at the sender too
  machine.send({first, second});
  // 4 chunks one after the other: 7 + 25 each, then two latencies.
  EXPECT_EQ(machine.simulate(100, 25).elapsed.count, 4 * 32 + 20);
}

TEST(LinkModel, ReduceTakesItsTimeAtTheReceiver) {
  Machine machine(2);
  machine.nodes[1].reduce_bandwidth = half;
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 10)}, 0, 1, Action::reduce);
  // Whole chunks are reduced after they came: 100 + 10 + 200.
  EXPECT_EQ(machine.simulate(100, 100).elapsed.count, 310);
  // In two, the first is there at 60 and reduced at 160, the second then takes until 260.
  EXPECT_EQ(machine.simulate(100, 50).elapsed.count, 260);
}

TEST(LinkModel, CopiesNeedNoReduction) {
  Machine machine(2);
  machine.nodes[1].reduce_bandwidth = half;
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 10)});
  EXPECT_EQ(machine.simulate(100, 100).elapsed.count, 110);
}

TEST(LinkModel, OneRankReducesOneChunkAtATime) {
  Machine machine(3);
  machine.nodes[2].reduce_bandwidth = byte_per_picosecond;
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 2)}, 0, 1, Action::reduce);
  machine.send({machine.add_link(1, 2)}, 0, 1, Action::reduce);
  // Both arrive at 100; 100 ps each, one after the other.
  EXPECT_EQ(machine.simulate(100, 100).elapsed.count, 300);
}

TEST(LinkModel, BackplaneIsSharedByAllThatPasses) {
  // Two flows on links of their own, through a switch whose backplane moves a byte in 1 ps: 200 bytes take 200 ps.
  Machine machine(4);
  add_slices(machine, 2);
  const std::size_t s = machine.add_switch();
  machine.nodes[s].bandwidth = byte_per_picosecond;
  machine.send({machine.add_link(0, s), machine.add_link(s, 2)}, 0);
  machine.send({machine.add_link(1, s), machine.add_link(s, 3)}, 1);
  EXPECT_EQ(machine.simulate(200, 100).elapsed.count, 200);
  machine.nodes[s].bandwidth = {};
  EXPECT_EQ(machine.simulate(200, 100).elapsed.count, 100);
}

TEST(LinkModel, BackplanesOfBothEndsCount) {
  Machine machine(2);
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 7)});
  for (const std::size_t end : {0U, 1U}) {
    machine.nodes[0].bandwidth = machine.nodes[1].bandwidth = {};
    machine.nodes[end].bandwidth = half;
    EXPECT_EQ(machine.simulate(100, 100).elapsed.count, 207) << "end " << end;
  }
}

TEST(LinkModel, DataIsHandedOnWhenItHasArrived) {
  Machine machine(3);
  add_slices(machine, 1);
  machine.send({machine.add_link(0, 1, 10)});
  machine.send({machine.add_link(1, 2, 20)});
  EXPECT_EQ(machine.simulate(100, 100).elapsed.count, 110 + 120);
}

TEST(LinkModel, WriteWaitsUntilTheOldDataHasLeft) {
  // Rank 1 reads the slice that rank 2 then overwrites at rank 1: the write starts when the read has left, not when it
  // has arrived far away.
  Machine machine(3);
  add_slices(machine, 1);
  machine.send({machine.add_link(1, 0, 5000)});
  machine.send({machine.add_link(2, 1, 10)});
  const Report report = machine.simulate(100, 100);
  const std::vector<Span> sends = spans_of(report, Phase::send);
  ASSERT_EQ(sends.size(), 2U);
  EXPECT_EQ(sends[1].begin.count, 100);
  EXPECT_EQ(report.elapsed.count, 5100);
}

TEST(LinkModel, RunsOfSlicesWaitForTheirPartOfEachSlice) {
  // Two slices of 100 bytes arrive at rank 1 by two transfers, the first halves at 50 and 200, the others at 100 and
  // 300; one transfer hands both on. Its chunk 0 is both first halves.
  Machine machine(3);
  add_slices(machine, 2);
  const LinkId in = machine.add_link(0, 1);
  const LinkId slow = machine.add_link(0, 1, 100, half);
  const LinkId out = machine.add_link(1, 2);
  machine.send({in}, 0);
  machine.send({slow}, 1, 1, Action::copy, 1);
  machine.send({out}, 0, 2);
  std::vector<Span> sends = spans_of(machine.simulate(200, 100), Phase::send);
  ASSERT_EQ(sends.size(), 6U);
  std::erase_if(sends, [](const Span& span) { return span.transfer != TransferId(2); });
  ASSERT_EQ(sends.size(), 2U);
  EXPECT_EQ(sends[0].begin.count, 200);
  EXPECT_EQ(sends[1].begin.count, 300);
}

TEST(LinkModel, RingAllReduceMeetsItsClosedForm) {
  // Every one of 2(N-1) steps sends S/N bytes over one link: alpha + S/(N B). Here S/N and 1/B are whole, so exactly.
  for (std::size_t n = 2; n <= (ESPALIER_SANITIZED != 0 ? 24 : 64); ++n) {
    Machine machine(n);
    add_slices(machine, n);
    for (std::size_t i = 0; i < n; ++i) machine.add_link(i, (i + 1) % n, 1'000'000, {100'000'000'000});
    const std::size_t steps = 2 * (n - 1);
    for (std::size_t step = 0; step < steps; ++step) {
      for (std::size_t r = 0; r < n; ++r) {
        machine.send({LinkId(r)}, (r + 2 * n - step) % n, 1, step + 1 < n ? Action::reduce : Action::copy);
      }
    }
    const auto count = static_cast<std::int64_t>(n);
    const std::int64_t shard = 1 << 20;
    const Report report = machine.simulate(shard * count, shard);
    EXPECT_EQ(report.elapsed.count, 2 * (count - 1) * (1'000'000 + shard * 10)) << n << " ranks";
    // The critical path is one shard on its way: as many steps, each without queueing.
    ASSERT_EQ(report.critical_path.size(), steps);
    for (const auto& step : report.critical_path) EXPECT_EQ(step.queued.count, 0);
  }
}

TEST(LinkModel, ByteCountsAndEventsAreThoseOfTheSchedule) {
  Machine machine(3);
  add_slices(machine, 3);
  const LinkId a = machine.add_link(0, 1);
  const LinkId b = machine.add_link(1, 2);
  machine.send({a}, 0, 3);
  machine.send({b}, 1, 2);
  const Report report = machine.simulate(300, 50);  // 300 / 50 chunks of each transfer.
  EXPECT_EQ(report.links[a.index()], (sim::LinkUse{300, {300}}));
  EXPECT_EQ(report.links[b.index()], (sim::LinkUse{200, {200}}));
  EXPECT_EQ(report.events, 6U + 6U);
}

TEST(LinkModel, TransfersOfDifferentLengthShareALinkInProportion) {
  // 300 and 100 bytes over one link of 1 byte per ps: each in three chunks, in turn: 100, 34, 100, 33, 100, 33. So when
  // half of the longer one is through, so is half of the shorter one, and both end with the link.
  Machine machine(2);
  machine.slice_units = {3, 1};
  const LinkId link = machine.add_link(0, 1);
  machine.send({link}, 0, 1, Action::copy, 0);
  machine.send({link}, 1, 1, Action::copy, 1);
  const std::vector<Span> wires = spans_of(machine.simulate(400, 100), Phase::wire);
  ASSERT_EQ(wires.size(), 6U);
  const std::vector<std::int64_t> begins = {0, 100, 134, 234, 267, 367};
  for (std::size_t i = 0; i < wires.size(); ++i) {
    EXPECT_EQ(wires[i].transfer, TransferId(i % 2));
    EXPECT_EQ(wires[i].begin.count, begins[i]);
  }
}

TEST(LinkModel, BackPressureLeavesTheFirstLinkToOthers) {
  // Three chunks of 100 bytes go through a switch whose second link takes 200 ps a chunk.
  Machine machine(3);
  add_slices(machine, 1);
  const std::size_t hub = machine.add_switch();
  const LinkId up = machine.add_link(0, hub);
  const LinkId slow = machine.add_link(hub, 1, 0, half);
  machine.send({up, slow});
  std::vector<std::int64_t> begins;
  for (const Span& wire : spans_of(machine.simulate(300, 100), Phase::wire)) {
    if (wire.lane == up.index()) begins.push_back(wire.begin.count);
  }
  // The slow link takes chunks at 0, 200 and 400. Chunk 1 asks at 100 as if nothing were known, and enters at 200; so
  // chunk 2 is held until then.
  EXPECT_EQ(begins, (std::vector<std::int64_t>{0, 100, 200}));
}

}  // namespace
}  // namespace espalier::sim
