#include "sim/fair/max_min.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace espalier::sim {
namespace {

using sim::FlowIndex;
using sim::MaxMin;
using Resources = std::vector<std::uint32_t>;

TEST(MaxMin, AFlowAloneGetsTheLeastOfItsResources) {
  MaxMin shares({100, 30, 70});
  const Resources way{0, 1, 2};
  shares.add(0, way);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 30);
}

TEST(MaxMin, FlowsOfOneResourceGetTheSame) {
  MaxMin shares({100});
  const Resources way{0};
  for (FlowIndex flow = 0; flow < 3; ++flow) shares.add(flow, way);
  shares.solve();
  // 100 / 3 is 33, and 1 is left.
  for (FlowIndex flow = 0; flow < 3; ++flow) EXPECT_EQ(shares.rate(flow), 33);
}

TEST(MaxMin, WhatOneCannotUseTheOthersGet) {
  // Bertsekas and Gallager's example: 60 on each of three links in a row; one long flow, one on each link, and a
  // second one on the last. The last link's three flows get 20 each, so the long one leaves 40 to those on the others.
  MaxMin shares({60, 60, 60});
  const Resources all{0, 1, 2};
  const Resources first{0};
  const Resources second{1};
  const Resources third{2};
  shares.add(0, all);
  shares.add(1, first);
  shares.add(2, second);
  shares.add(3, third);
  shares.add(4, third);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 20);
  EXPECT_EQ(shares.rate(1), 40);
  EXPECT_EQ(shares.rate(2), 40);
  EXPECT_EQ(shares.rate(3), 20);
  EXPECT_EQ(shares.rate(4), 20);
}

TEST(MaxMin, OnlyTheTouchedComponentChanges) {
  MaxMin shares({100, 60});
  const Resources left{0};
  const Resources right{1};
  shares.add(0, left);
  shares.add(1, right);
  EXPECT_EQ(shares.solve().size(), 2U);
  shares.add(2, right);
  // 60 shared by two; the flow on the other link is not named.
  const std::span<const FlowIndex> changed = shares.solve();
  EXPECT_EQ(std::vector<FlowIndex>(changed.begin(), changed.end()).size(), 2U);
  EXPECT_EQ(std::ranges::count(changed, 0U), 0);
  EXPECT_EQ(shares.rate(0), 100);
  EXPECT_EQ(shares.rate(1), 30);
  EXPECT_EQ(shares.rate(2), 30);
  EXPECT_TRUE(shares.solve().empty());
}

TEST(MaxMin, WhoIsLeftGetsWhatARemovedFlowHad) {
  MaxMin shares({90});
  const Resources way{0};
  for (FlowIndex flow = 0; flow < 3; ++flow) shares.add(flow, way);
  shares.solve();
  shares.remove(1);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 45);
  EXPECT_EQ(shares.rate(2), 45);
  shares.remove(0);
  shares.remove(2);
  EXPECT_TRUE(shares.solve().empty());
}

TEST(MaxMin, ADeadResourceStopsItsFlowsAndNoOthers) {
  MaxMin shares({100, 100});
  const Resources both{0, 1};
  const Resources first{0};
  shares.add(0, both);
  shares.add(1, first);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 50);
  shares.set_capacity(1, 0);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 0);
  EXPECT_EQ(shares.rate(1), 100);
  shares.set_capacity(1, 10);
  shares.solve();
  EXPECT_EQ(shares.rate(0), 10);
  EXPECT_EQ(shares.rate(1), 90);
}

TEST(MaxMin, NoFlowOfALiveResourceStandsStill) {
  MaxMin shares({2});
  const Resources way{0};
  for (FlowIndex flow = 0; flow < 5; ++flow) shares.add(flow, way);
  shares.solve();
  for (FlowIndex flow = 0; flow < 5; ++flow) EXPECT_EQ(shares.rate(flow), 1);
}

TEST(MaxMin, EqualLevelsAreFilledAtOnce) {
  // Both resources have level 3 (7 / 2 and 9 / 3). Filling the second one first would leave 4 to the flow on the first
  // one alone, filling the first one first 3.
  for (const bool reversed : {false, true}) {
    MaxMin shares({7, 9});
    const Resources both{0, 1};
    const Resources first{0};
    const Resources second{1};
    const std::vector<Resources> ways{both, first, second, second};
    for (std::size_t i = 0; i < ways.size(); ++i) {
      const std::size_t flow = reversed ? ways.size() - 1 - i : i;
      shares.add(static_cast<FlowIndex>(flow), ways[flow]);
    }
    shares.solve();
    for (FlowIndex flow = 0; flow < 4; ++flow) EXPECT_EQ(shares.rate(flow), 3);
  }
}

}  // namespace
}  // namespace espalier::sim
