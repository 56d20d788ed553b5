#include "profile/profile.h"

#include <gtest/gtest.h>

namespace espalier::profile {
namespace {

TEST(VersionNumber, IsMajorAndMinor) {
  EXPECT_EQ(version_number("2.27"), 2027U);
  EXPECT_EQ(version_number("2.9.8"), 2009U);
  for (const char* wrong : {"", "2", "2.", ".7", "2.x", "2,7", "2.1000", "-2.7", "2.7x"}) {
    EXPECT_FALSE(version_number(wrong)) << wrong;
  }
}

TEST(Profile, LeavesOutWhatCameLater) {
  Profile profile;
  profile.ways[{Shape::ring, sim::Protocol::simple}] = {};
  profile.ways[{Shape::nvls, sim::Protocol::simple}].since = 2017;
  ASSERT_TRUE(profile.restrict_to(2017));
  EXPECT_EQ(profile.ways.size(), 2U);
  ASSERT_TRUE(profile.restrict_to(2016));
  EXPECT_EQ(profile.ways.size(), 1U);
  profile.ways.begin()->second.since = 2018;
  EXPECT_FALSE(profile.restrict_to(2016));
}

}  // namespace
}  // namespace espalier::profile
