#include "planners/bounds/like_sinks.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "planners/bounds/cut_rate.h"
#include "topology/generate/generate.h"
#include "topology/without.h"

namespace espalier::planners {
namespace {

FlowNetwork boxes_without(const std::vector<std::string>& gone, Direction direction = Direction::forward) {
  RailBoxesOptions options;
  options.boxes = 300;
  return {*without(*generate_rail_boxes(options), gone), direction};
}

TEST(LikeSinks, OneBoxStandsForAllThatChangePlaces) {
  const FlowNetwork whole = boxes_without({});
  EXPECT_EQ(like_sinks(whole).size(), 8);
  EXPECT_EQ(like_sinks(whole, Rank(0)).size(), 16);
  const FlowNetwork one_lame = boxes_without({"box7.nic3"});
  EXPECT_EQ(like_sinks(one_lame).size(), 16);
  // Two lame boxes that are alike, and one of another kind.
  const FlowNetwork three_lame = boxes_without({"box7.nic3", "box9.nic3", "box11.nic4"}, Direction::reversed);
  EXPECT_EQ(like_sinks(three_lame).size(), 24);
}

/// The lame box is the one that gathers slowest: 7 of 8 NICs of 50 GB/s bring the shards of 2,392 ranks.
TEST(LikeSinks, TheTightestCutIsFound) {
  const FlowNetwork network = boxes_without({"box299.nic3"});
  const CutRate rate = all_gather_cut(network, {});
  EXPECT_EQ(static_cast<std::int64_t>(rate.parts), 2392);
  EXPECT_EQ(static_cast<std::int64_t>(rate.capacity) * network.capacity_unit(), 350'000'000'000);
  const CutRate broadcast = broadcast_cut(network, Rank(0));
  EXPECT_EQ(static_cast<std::int64_t>(broadcast.capacity) * network.capacity_unit(), 350'000'000'000);
}

}  // namespace
}  // namespace espalier::planners
