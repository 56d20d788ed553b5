#include "base/disjoint_sets.h"

#include <gtest/gtest.h>

namespace espalier {
namespace {

TEST(DisjointSets, AreKnownByTheirSmallestMembers) {
  DisjointSets sets(6);
  for (std::uint32_t i = 0; i < 6; ++i) EXPECT_EQ(sets.find(i), i);
  sets.join(4, 5);
  sets.join(3, 5);
  sets.join(1, 2);
  EXPECT_EQ(sets.find(4), 3U);
  EXPECT_EQ(sets.find(2), 1U);
  sets.join(2, 4);
  for (std::uint32_t i = 1; i < 6; ++i) EXPECT_EQ(sets.find(i), 1U);
  EXPECT_EQ(sets.find(0), 0U);
}

}  // namespace
}  // namespace espalier
