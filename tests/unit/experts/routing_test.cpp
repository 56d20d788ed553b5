#include "experts/routing.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace espalier::experts {
namespace {

double sum_of(const std::vector<double>& values) { return std::accumulate(values.begin(), values.end(), 0.0); }

TEST(Routing, ChancesAddUpToTheExpertsOfAToken) {
  const Popularity alike = zipf_popularity(8, 2, 0, 7);
  for (const double chance : alike) EXPECT_DOUBLE_EQ(chance, 0.25);
  const Popularity skewed = zipf_popularity(64, 8, 0.7, 3);
  EXPECT_NEAR(sum_of(skewed), 8, 1e-12);
  EXPECT_NEAR(std::ranges::max(skewed) / std::ranges::min(skewed), std::pow(64.0, 0.7), 1e-9);
}

TEST(Routing, NoExpertIsInMoreThanEveryToken) {
  // Two of three by k^-3: 1, 1/8, 1/27. The first is in every token; one is left for 1/8 and 1/27: 27/35 and 8/35.
  Popularity steep = zipf_popularity(3, 2, 3, 0);
  std::ranges::sort(steep);
  EXPECT_NEAR(steep[0], 8.0 / 35, 1e-12);
  EXPECT_NEAR(steep[1], 27.0 / 35, 1e-12);
  EXPECT_DOUBLE_EQ(steep[2], 1);
  for (const double chance : zipf_popularity(4, 4, 2, 0)) EXPECT_NEAR(chance, 1, 1e-12);
}

TEST(Routing, OneCopyForEachRankWhereDeduplicated) {
  // Two of four experts on two ranks, all alike: a copy for each rank; deduplicated 1 - (1/2)^2.
  const Popularity alike(4, 0.5);
  const Placement placement = place_in_order(4, 2);
  EXPECT_EQ(placement, (Placement{0, 0, 1, 1}));
  const Routed whole = route(alike, placement, 2, {});
  EXPECT_EQ(whole.sent, (std::vector<double>{1, 1}));
  EXPECT_EQ(whole.load, (std::vector<double>{1, 1}));
  const Routed once = route(alike, placement, 2, {.deduplicated = true});
  EXPECT_EQ(once.sent, (std::vector<double>{0.75, 0.75}));
  EXPECT_EQ(once.load, whole.load);
}

TEST(Routing, FullExpertsDropTokens) {
  // Chances 0.7, 0.1, 0.1, 0.1, mean 0.25; at most 2 x 0.25 = 0.5: 0.2 of 1 is dropped.
  const Routed routed = route({0.7, 0.1, 0.1, 0.1}, place_in_order(4, 2), 2, {.capacity = 2});
  EXPECT_NEAR(routed.dropped, 0.2, 1e-12);
  EXPECT_NEAR(routed.sent[0], 0.6, 1e-12);
  EXPECT_NEAR(routed.load[0], 1.2, 1e-12);
  EXPECT_NEAR(routed.busiest(), 1.2, 1e-12);
}

TEST(Routing, ASearchFindsTheBestOfSmallPlacements) {
  // Every placement of six experts on three ranks is tried: the search is at the best of them.
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    const Popularity popularity = zipf_popularity(6, 2, 0.3 + 0.05 * static_cast<double>(seed % 20), seed);
    Placement any{0, 0, 1, 1, 2, 2};
    double best = 100;
    do {
      best = std::min(best, route(popularity, any, 3, {}).busiest());
    } while (std::ranges::next_permutation(any).found);
    const Placement found = search_placement(popularity, place_in_order(6, 3), 3);
    EXPECT_NEAR(route(popularity, found, 3, {}).busiest(), best, 1e-9) << seed;
  }
}

TEST(Routing, ASearchIsNeverWorseAndKeepsAsManyOnEachRank) {
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const Popularity popularity = zipf_popularity(256, 8, 0.7, seed);
    const Placement given = place_in_order(256, 32);
    const Placement found = search_placement(popularity, given, 32);
    for (std::uint32_t rank = 0; rank < 32; ++rank) EXPECT_EQ(std::ranges::count(found, rank), 8);
    const double before = route(popularity, given, 32, {}).busiest();
    const double after = route(popularity, found, 32, {}).busiest();
    EXPECT_LE(after, before);
    // The rank of the most popular expert has seven others at least: no placement is below that with the rarest seven.
    Popularity sorted = popularity;
    std::ranges::sort(sorted);
    const double rarest = std::accumulate(sorted.begin(), sorted.begin() + 7, 0.0);
    EXPECT_LE(after, std::max(1.001, (sorted.back() + rarest) / (8.0 / 32)) + 1e-9) << seed;
  }
}

}  // namespace
}  // namespace espalier::experts
