#include "profile/nccl_choices.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace espalier::profile {
namespace {

using planners::NcclCommunicator;

constexpr std::int64_t float_size = 4;

/// Eight H100 on NVSwitch, as the search finds them.
NcclCommunicator searched_h100(std::uint32_t version = 2030) {
  NcclCommunicator of;
  of.era = {version, 90, 0.824};
  of.ranks = of.min_local = 8;
  of.machines = 1;
  of.ring = {planners::GraphPattern::ring, 0, 12, 30, 30, planners::BoxWay::nvl, planners::BoxWay::pix, 1, 0, {}, {}};
  of.tree = of.ring;
  of.tree_pattern = planners::GraphPattern::balanced_tree;
  of.nvls = {planners::GraphPattern::nvls, 0, 8, 40, 60, planners::BoxWay::nvl, planners::BoxWay::pix, 0, 0, {}, {}};
  of.channels = 24;
  of.nvls_channels = 16;
  return of;
}

std::string best(const NcclChoices& choices, std::int64_t size) {
  const NcclChoice choice = choices.rank({size}, float_size).front();
  return std::string(to_string(choice.way.shape)) + "/" + std::string(sim::to_string(choice.way.protocol));
}

TEST(NcclChoices, EightH100) {
  const NcclChoices all_reduce(searched_h100(), CollectiveKind::all_reduce);
  const NcclWay* const ring = all_reduce.find(Shape::ring, sim::Protocol::simple);
  ASSERT_NE(ring, nullptr);
  EXPECT_NEAR(ring->latency, 8.4 + 14 * 3.4, 1e-9);
  EXPECT_NEAR(ring->bandwidth, 360.0 * 8 / 14, 1e-9);
  const NcclWay* const nvls = all_reduce.find(Shape::nvls, sim::Protocol::simple);
  ASSERT_NE(nvls, nullptr);
  EXPECT_NEAR(nvls->bandwidth, 8 * (40 * 0.85 * 7 / 8 * 2) * 8 / 14, 1e-3);
  EXPECT_EQ(best(all_reduce, 1 << 14), "ring/ll");
  EXPECT_EQ(best(all_reduce, 1 << 30), "nvls/simple");
  EXPECT_EQ(best(NcclChoices(searched_h100(), CollectiveKind::all_gather), 1 << 30), "ring/simple");
}

TEST(NcclChoices, ConstantsAreOfAVersion) {
  const NcclChoices older(searched_h100(2027), CollectiveKind::all_reduce);
  EXPECT_NEAR(older.find(Shape::nvls, sim::Protocol::simple)->bandwidth, 8 * 40 * 5.0 / 6, 1e-3);
}

TEST(NcclChoices, RootedRingsOfUnlikeChannelsCountAllSteps) {
  NcclCommunicator of = searched_h100();
  const auto latency = [&] {
    return NcclChoices(of, CollectiveKind::broadcast).find(Shape::ring, sim::Protocol::ll)->latency;
  };
  EXPECT_NEAR(latency(), 6.6 + 0.6, 1e-9);
  of.ring.same_channels = 0;
  EXPECT_NEAR(latency(), 6.6 + 8 * 0.6, 1e-9);
}

TEST(NcclChoices, Ll128NeedsNicsThatAreNear) {
  NcclCommunicator of = searched_h100();
  of.machines = 2;
  of.ring.way_outside = planners::BoxWay::phb;
  const NcclChoices choices(of, CollectiveKind::all_gather);
  EXPECT_EQ(choices.find(Shape::ring, sim::Protocol::ll128), nullptr);
  EXPECT_NE(choices.find(Shape::ring, sim::Protocol::ll), nullptr);
}

TEST(NcclChoices, NothingIsChosenWhereRanksSendStraight) {
  EXPECT_TRUE(NcclChoices(searched_h100(), CollectiveKind::all_to_all).ways().empty());
}

}  // namespace
}  // namespace espalier::profile
