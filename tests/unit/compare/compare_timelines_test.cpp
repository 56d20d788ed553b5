#include "compare/compare_timelines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "compare/overlay_svg.h"
#include "compare/timeline_lanes.h"
#include "tests/support/networks/machine.h"

namespace espalier::compare {
namespace {

Span span(std::uint32_t lane, std::uint32_t transfer, Phase phase, std::int64_t begin, std::int64_t end,
          std::uint32_t chunk = 0) {
  return {lane, TransferId(transfer), chunk, phase, {begin}, {end}};
}

/// g0 sends to g1, which sends on to g2; each way takes 100 and 10 of latency.
Timeline make_chain() {
  Timeline timeline;
  timeline.rank_names = {"g0", "g1", "g2"};
  timeline.link_names = {"g0>g1", "g1>g2"};
  timeline.spans = {span(0, 0, Phase::send, 0, 100),   span(0, 0, Phase::wire, 0, 100),
                    span(1, 0, Phase::recv, 10, 110),  span(1, 1, Phase::send, 110, 210),
                    span(1, 1, Phase::wire, 110, 210), span(2, 1, Phase::recv, 120, 220)};
  return timeline;
}

Timeline without_wires(Timeline timeline) {
  std::erase_if(timeline.spans, [](const Span& each) { return each.phase == Phase::wire; });
  timeline.link_names.clear();
  return timeline;
}

/// Three ranks in a ring pass chunks on, each of which takes what it gets when it can: a chunk takes 10 to receive.
/// Rank 1 is stopped for 60 while chunk 2 waits for it. All finish together, and the send of rank 0 is the long span.
TEST(CompareTimelines, PointsAtTheRankThatIsStoppedAndNotAtWhoWaitsForIt) {
  const auto run = [](std::int64_t stop) {
    Timeline timeline;
    timeline.rank_names = {"g0", "g1", "g2"};
    std::int64_t now = 0;
    for (std::uint32_t chunk = 0; chunk < 4; ++chunk) {
      for (std::uint32_t hop = 0; hop < 2; ++hop) {
        const std::int64_t taken = now + 1 + (chunk == 2 && hop == 0 ? stop : 0);
        timeline.spans.push_back(span(hop, hop, Phase::send, now, taken + 10, chunk));
        timeline.spans.push_back(span(hop + 1, hop, Phase::recv, taken, taken + 10, chunk));
        now = taken + 10;
      }
    }
    std::ranges::stable_sort(timeline.spans, {}, &Span::begin);
    return timeline;
  };
  const TimelineComparison stopped = compare_timelines(run(0), run(60));
  ASSERT_TRUE(stopped.culprit);
  const RankComparison& culprit = stopped.ranks[*stopped.culprit];
  EXPECT_EQ(culprit.name, "g1");
  EXPECT_EQ(culprit.on_path.b - culprit.on_path.a, Picoseconds{60});
  EXPECT_FALSE(compare_timelines(run(60), run(0)).culprit);
  EXPECT_FALSE(compare_timelines(run(60), run(60)).culprit);
}

TEST(Align, LanesPairByNameAndElseByNumber) {
  Timeline other = make_chain();
  other.rank_names = {"g1", "g0", "extra"};
  const AlignedTimelines by_name = align(make_chain(), other);
  EXPECT_EQ(by_name.a.rank_names, (std::vector<std::string>{"g0", "g1", "g2", "extra"}));
  EXPECT_EQ(by_name.b.spans[0].lane, 1U);
  EXPECT_EQ(by_name.b.spans[5].lane, 3U);
  other.rank_names = {"x", "y", "z"};
  const AlignedTimelines by_number = align(make_chain(), other);
  EXPECT_EQ(by_number.b.spans, make_chain().spans);
  EXPECT_EQ(by_number.notes.size(), 1U);
}

TEST(Align, OtherChunksAreMerged) {
  Timeline chunked = make_chain();
  chunked.spans[0] = span(0, 0, Phase::send, 0, 40);
  chunked.spans.insert(chunked.spans.begin() + 1, span(0, 0, Phase::send, 50, 100, 1));
  const AlignedTimelines aligned = align(make_chain(), chunked);
  EXPECT_TRUE(aligned.by_transfer);
  const Pairing pairing = pair_spans(aligned.a, aligned.b);
  EXPECT_EQ(pairing.pairs.size(), 6U);
  EXPECT_TRUE(pairing.only_a.empty() && pairing.only_b.empty());
  const TimelineComparison result = compare_timelines(make_chain(), chunked);
  EXPECT_EQ(result.transfers.errors.worst, 0);
}

TEST(CompareTimelines, ALateRankIsFound) {
  Timeline late = make_chain();
  // g1 starts to send on 50 later.
  for (std::size_t i = 3; i < 6; ++i) {
    late.spans[i].begin.count += 50;
    late.spans[i].end.count += 50;
  }
  const TimelineComparison result = compare_timelines(make_chain(), late);
  EXPECT_EQ(result.total.a.count, 220);
  EXPECT_EQ(result.total.b.count, 270);
  EXPECT_DOUBLE_EQ(result.total.error(), -50.0 / 270);
  EXPECT_EQ(result.transfers.errors.worst, 0);
  ASSERT_EQ(result.ranks.size(), 3U);
  EXPECT_EQ(result.ranks[1].waiting.a.count, 10);  // until the head came
  EXPECT_EQ(result.ranks[1].waiting.b.count, 60);
  EXPECT_EQ(result.ranks[2].start.b.count, 170);
  EXPECT_EQ(result.ranks[result.laggard.value()].name, "g1");
  // Of sends one begins as before and one 50 later: the upper middle.
  EXPECT_EQ(result.phases[0].phase, Phase::send);
  EXPECT_EQ(result.phases[0].begin_lag.count, 50);
}

TEST(CompareTimelines, SpansWithoutACounterpartAreCounted) {
  Timeline cut = make_chain();
  cut.spans.pop_back();
  const TimelineComparison result = compare_timelines(make_chain(), cut);
  EXPECT_EQ(result.phases[2].phase, Phase::recv);
  EXPECT_EQ(result.phases[2].only_a, 1U);
  EXPECT_EQ(result.phases[2].only_b, 0U);
}

TEST(CompareTimelines, LinksOfARunWithoutWiresAreWays) {
  Timeline real = without_wires(make_chain());
  real.spans.back().end.count = 240;  // g2 has it 20 later
  const TimelineComparison result = compare_timelines(make_chain(), real);
  EXPECT_TRUE(result.links_by_way);
  ASSERT_EQ(result.links.size(), 2U);
  // From g1's send at 110 to the end of g2's recv: 220 and 240.
  EXPECT_EQ(result.links[0].name, "g1>g2");
  EXPECT_EQ(result.links[0].busy.a.count, 110);
  EXPECT_EQ(result.links[0].busy.b.count, 130);
  EXPECT_EQ(result.links[1].busy.a.count, 110);
  EXPECT_EQ(result.links[1].busy.b.count, 110);
}

TEST(CriticalChain, GoesBackThroughWhatArrivedLast) {
  const Timeline timeline = make_chain();
  const std::vector<ChainStep> chain = find_critical_chain(timeline);
  std::vector<std::uint32_t> spans;
  for (const ChainStep& step : chain) spans.push_back(step.span);
  // g0's send, its wire, g1's recv, g1's send, its wire, g2's recv.
  EXPECT_EQ(spans, (std::vector<std::uint32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(chain[1].until.count, 10);  // the head went on
  EXPECT_EQ(chain.back().until.count, 220);
}

/// In a real run g2 waits for its chunk from the start; it is still g1's send that it waits for.
TEST(CriticalChain, AReceiverMayWaitBeforeItIsSentAnything) {
  Timeline timeline = without_wires(make_chain());
  timeline.spans[3].begin = {0};
  const std::vector<ChainStep> chain = find_critical_chain(timeline);
  ASSERT_EQ(chain.size(), 4U);
  EXPECT_EQ(chain.front().span, 0U);
  EXPECT_EQ(chain.back().begin.count, 110);
}

/// g2 waits for the chunk of g1, not for the one of g0 that came a little later but is another slice.
TEST(CriticalChain, AKnownScheduleTellsWhatWasNeeded) {
  test::Machine machine(4);
  machine.slice_units = {1, 1};
  machine.send({machine.add_link(0, 2)}, 0);
  machine.send({machine.add_link(1, 2)}, 1, 1, Action::copy, 1);
  machine.send({machine.add_link(2, 3)}, 0, 1, Action::copy, 2);
  Timeline timeline;
  timeline.rank_names = {"g0", "g1", "g2", "g3"};
  timeline.spans = {span(0, 0, Phase::send, 0, 50), span(1, 1, Phase::send, 0, 60),   span(2, 0, Phase::recv, 0, 50),
                    span(2, 1, Phase::recv, 0, 60), span(2, 2, Phase::send, 70, 100), span(3, 2, Phase::recv, 70, 100)};
  const auto first_transfer = [&](const KnownSchedule& known) {
    const auto chain = find_critical_chain(timeline, known);
    return timeline.spans[chain.front().span].transfer.index();
  };
  EXPECT_EQ(first_transfer({}), 1U);
  const Schedule schedule = machine.schedule();
  const Dependencies dependencies(schedule);
  EXPECT_EQ(first_transfer({&schedule, &dependencies}), 0U);
}

TEST(CompareTimelines, SaysWherePathsPart) {
  Timeline a;
  a.rank_names = {"g0", "g1", "g2"};
  // g0 sends to g1 and g2, both send back; in a the second answer is last, in b the first.
  a.spans = {span(0, 0, Phase::send, 0, 10),  span(1, 0, Phase::recv, 0, 10),  span(0, 1, Phase::send, 10, 20),
             span(2, 1, Phase::recv, 10, 20), span(1, 2, Phase::send, 10, 30), span(0, 2, Phase::recv, 10, 30),
             span(2, 3, Phase::send, 20, 50), span(0, 3, Phase::recv, 20, 50)};
  Timeline b = a;
  b.spans[4].end = b.spans[5].end = {90};
  const TimelineComparison result = compare_timelines(a, b);
  std::vector<std::size_t> path_a;
  for (const PathTransfer& step : result.path.a) path_a.push_back(step.transfer.index());
  EXPECT_EQ(path_a, (std::vector<std::size_t>{0, 1, 3}));
  EXPECT_EQ(result.path.common, 1U);
  ASSERT_EQ(result.path.b.size(), 2U);
  EXPECT_EQ(result.path.b[1].way, "g1>g0");
  // B's path lies on transfer 0 (10 of 90), which is on A's, and on transfer 2.
  EXPECT_DOUBLE_EQ(result.path.shared, 10.0 / 90);
}

TEST(TimelineLanes, BusyTimeCountsOverlapsOnce) {
  EXPECT_EQ(busy_time({{{0}, {10}}, {{5}, {20}}, {{30}, {40}}, {{32}, {33}}}).count, 30);
  EXPECT_EQ(busy_time({}).count, 0);
}

TEST(OverlaySvg, DrawsLanesAndSaysWhenItLeavesSomeOut) {
  std::ostringstream all;
  ASSERT_TRUE(write_overlay_svg(all, make_chain(), make_chain(), {"a<b", "b", 48}));
  EXPECT_NE(all.str().find("a&lt;b"), std::string::npos);
  EXPECT_EQ(all.str().find("left out"), std::string::npos);
  EXPECT_EQ(all.str().find("height=\"0.0\""), std::string::npos);
  EXPECT_TRUE(all.str().ends_with("</svg>\n"));
  std::ostringstream some;
  ASSERT_TRUE(write_overlay_svg(some, make_chain(), make_chain(), {"a", "b", 2}));
  EXPECT_NE(some.str().find("2 of 5 lanes; the others are left out"), std::string::npos);
  std::ostringstream none;
  ASSERT_TRUE(write_overlay_svg(none, Timeline{}, Timeline{}));
  EXPECT_TRUE(none.str().ends_with("</svg>\n"));
}

}  // namespace
}  // namespace espalier::compare
