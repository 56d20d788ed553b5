#include "cli/measured/measured_path.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "topology/topology_builder.h"

namespace espalier::cli {
namespace {

/// Three ranks in a row, whose links are called east.
Topology ranks_in_a_row() {
  TopologyBuilder builder;
  const NodeId a = builder.rank("a");
  const NodeId b = builder.rank("b");
  const NodeId c = builder.rank("c");
  const Wire east{.bandwidth = {1'000'000'000}, .latency = {1'000}, .link_class = "east"};
  builder.link(a, b, east);
  builder.link(b, c, east);
  return std::move(builder).build("row").value();
}

Timeline timeline_of(std::vector<Span> spans) {
  return {"broadcast, ring, 1 KiB on row", "run", {"a", "b", "c"}, {}, std::move(spans)};
}

const sim::PathTime* find_use(const MeasuredPath& path, sim::PathUse use) {
  const auto found = std::ranges::find(path.times, use, &sim::PathTime::use);
  return found == path.times.end() ? nullptr : &*found;
}

std::int64_t sum_of(const MeasuredPath& path) {
  return std::accumulate(path.times.begin(), path.times.end(), std::int64_t{0},
                         [](std::int64_t sum, const sim::PathTime& time) { return sum + time.time.count; });
}

TEST(MeasuredPath, SaysWhatEachPieceOfTheTimeWentInto) {
  // c waits from 0 on; a sends to b from 10 to 30, b has it at 40 and adds until 45, begins to send at 60 and ends at
  // 80, c has it at 90. From the end back: receiving 80..90, sending 60..80, nothing 45..60, reducing 40..45, receiving
  // 30..40 and sending 10..30 on the way from a to b; a began 10 after c.
  const Topology topology = ranks_in_a_row();
  const TransferId first(0);
  const TransferId second(1);
  const auto path = find_measured_path(timeline_of({{2, second, 0, Phase::recv, {0}, {90}},
                                                    {0, first, 0, Phase::send, {10}, {30}},
                                                    {1, first, 0, Phase::recv, {30}, {40}},
                                                    {1, first, 0, Phase::reduce, {40}, {45}},
                                                    {1, second, 0, Phase::send, {60}, {80}}}),
                                       "run.json", topology, nullptr);
  ASSERT_TRUE(path) << path.error().message;
  EXPECT_EQ(sum_of(*path), 90);
  ASSERT_NE(find_use(*path, sim::PathUse::launch), nullptr);
  EXPECT_EQ(find_use(*path, sim::PathUse::launch)->time.count, 10);
  EXPECT_EQ(find_use(*path, sim::PathUse::launch)->max_at, "a");
  EXPECT_EQ(find_use(*path, sim::PathUse::reducing)->time.count, 5);
  EXPECT_EQ(find_use(*path, sim::PathUse::reducing)->where, "ranks");
  EXPECT_EQ(find_use(*path, sim::PathUse::overhead)->time.count, 15);
  EXPECT_EQ(find_use(*path, sim::PathUse::overhead)->max_at, "b>c");
  EXPECT_EQ(find_use(*path, sim::PathUse::moving)->time.count, 60);
  EXPECT_EQ(find_use(*path, sim::PathUse::moving)->where, "east");
}

TEST(MeasuredPath, RefusesATimelineOfOtherRanks) {
  Timeline timeline = timeline_of({{0, TransferId(0), 0, Phase::send, {0}, {1}}});
  timeline.rank_names = {"x", "y", "z"};
  const auto path = find_measured_path(timeline, "run.json", ranks_in_a_row(), nullptr);
  ASSERT_FALSE(path);
  EXPECT_NE(path.error().message.find("run.json"), std::string::npos);
}

TEST(MeasuredPath, OfNothingIsNothing) {
  const auto path = find_measured_path(timeline_of({}), "run.json", ranks_in_a_row(), nullptr);
  ASSERT_TRUE(path);
  EXPECT_TRUE(path->times.empty());
}

}  // namespace
}  // namespace espalier::cli
