#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "planners/tuning/nccl_likeness.h"
#include "planners/tuning/regions.h"
#include "tests/support/forecast/times_of.h"
#include "tests/support/networks/real_machines.h"

namespace espalier::planners {
namespace {

using test::line_of;
using test::ring_of;
using test::star_of;

Candidates candidates_on(const Topology& topology, const std::vector<std::string>& names, CollectiveKind kind) {
  std::vector<Planner> planners;
  for (const std::string& name : names) planners.push_back(*find_planner(name));
  auto candidates = make_candidates(topology, *make_collective(kind, topology.rank_count(), std::nullopt), planners);
  EXPECT_TRUE(candidates && candidates->refused.empty());
  return std::move(*candidates);
}

/// Times that a test makes up: a fixed part and a part per byte for each planner, all above the schedules' least times.
struct MadeUp {
  double fixed_us;
  double us_per_mib;
};

test::TimesOf::Run made_up_times(const std::map<std::string, MadeUp>& times) {
  return [times](const Schedule& schedule, Bytes size, const Pacing& pacing, Picoseconds) -> Result<RunReport> {
    const MadeUp& made_up = times.at(schedule.algorithm);
    RunReport report;
    report.size = size;
    report.chunk = pacing.chunk;
    report.ahead = pacing.ahead;
    const double us = made_up.fixed_us + made_up.us_per_mib * static_cast<double>(size.count) / (1 << 20);
    report.elapsed = {std::llround(us * 1e6)};
    return report;
  };
}

Result<std::vector<Region>> regions_of(const Candidates& candidates, std::span<const Bytes> sizes,
                                       const RegionOptions& options, const test::TimesOf::Run& evaluate) {
  test::TimesOf times(candidates, evaluate);
  return find_regions(candidates, sizes, options, times);
}

std::vector<Bytes> powers(std::int64_t first, std::int64_t last) {
  std::vector<Bytes> sizes;
  for (std::int64_t size = first; size <= last; size *= 2) sizes.push_back({size});
  return sizes;
}

constexpr std::int64_t kib = 1024;
constexpr std::int64_t mib = 1024 * kib;

TEST(Regions, BordersAreBisected) {
  const Topology topology = star_of(4);
  const Candidates candidates = candidates_on(topology, {"ring", "flat"}, CollectiveKind::all_gather);
  // flat: 100 + 1000 s, ring: 400 + 600 s (s in MiB): equal at s = 0.75.
  RegionOptions options;
  options.tolerance = 0;
  const auto regions = regions_of(candidates, powers(kib, 1024 * mib), options,
                                  made_up_times({{"flat", {100, 1000}}, {"ring", {400, 600}}}));
  ASSERT_TRUE(regions);
  ASSERT_EQ(regions->size(), 2U);
  EXPECT_EQ((*regions)[0].taken->planner, "flat");
  EXPECT_EQ((*regions)[1].taken->planner, "ring");
  const double below = static_cast<double>((*regions)[0].sizes.back().size.count) / mib;
  const double above = static_cast<double>((*regions)[1].sizes.front().size.count) / mib;
  EXPECT_LE(below, 0.75);
  EXPECT_GE(above, 0.75);
  EXPECT_LE(above / below, options.resolution);
  const Margin margin = margin_of((*regions)[0].sizes.front());
  EXPECT_EQ(margin.second->planner, "ring");
  EXPECT_NEAR(margin.factor, 400.0 / 100, 0.05);
}

TEST(Regions, AWinnerBetweenTwoSizesIsFound) {
  const Topology topology = star_of(4);
  const Candidates candidates = candidates_on(topology, {"ring", "tree", "flat"}, CollectiveKind::all_gather);
  // At 1 MiB flat takes 1100, tree 1350 and ring 1600 us; at 2 MiB 2200, 1700 and 1620; at 1.4 MiB 1540, 1490 and 1608.
  const auto regions = regions_of(candidates, powers(mib, 2 * mib), {0, 1.03, 4},
                                  made_up_times({{"flat", {0, 1100}}, {"tree", {1000, 350}}, {"ring", {1580, 20}}}));
  ASSERT_TRUE(regions);
  ASSERT_EQ(regions->size(), 3U);
  EXPECT_EQ((*regions)[0].taken->planner, "flat");
  EXPECT_EQ((*regions)[1].taken->planner, "tree");
  EXPECT_EQ((*regions)[2].taken->planner, "ring");
}

TEST(Regions, AsGoodAsTheFastestIsKept) {
  const Topology topology = star_of(4);
  const Candidates candidates = candidates_on(topology, {"ring", "flat"}, CollectiveKind::all_gather);
  // ring is 0.5 % faster from the second size on.
  const auto times = made_up_times({{"flat", {100, 1000}}, {"ring", {101, 995}}});
  EXPECT_EQ(regions_of(candidates, powers(kib, 64 * mib), {0.01, 1.03, 4}, times)->size(), 1U);
  EXPECT_EQ(regions_of(candidates, powers(kib, 64 * mib), {0, 1.03, 4}, times)->size(), 2U);
}

TEST(Regions, TheWinnerIsTheBestOfThoseThatKeepUp) {
  const Topology topology = star_of(4);
  const Candidates candidates = candidates_on(topology, {"ring", "flat"}, CollectiveKind::all_gather);
  // flat is ahead by up to 0.1 % up to 100 KiB or so, ring by 0.9 % from some MiB on: within 1 % all along.
  const auto times = made_up_times({{"flat", {1000, 1000}}, {"ring", {1001, 991}}});
  const auto regions = regions_of(candidates, powers(kib, 64 * mib), {0.01, 1.03, 4}, times);
  ASSERT_TRUE(regions);
  ASSERT_EQ(regions->size(), 1U);
  EXPECT_EQ(regions->front().taken->planner, "ring");
  for (const TunedSize& point : regions->front().sizes) EXPECT_GE(margin_of(point).factor, 1);
  EXPECT_EQ(margin_of(regions->front().sizes.front()).factor, 1);
  EXPECT_NEAR(margin_of(regions->front().sizes.back()).factor, 1.009, 0.001);
}

TEST(Regions, OneCandidateHasNoSecond) {
  const Topology topology = star_of(3);
  const Candidates candidates = candidates_on(topology, {"flat"}, CollectiveKind::all_gather);
  const auto regions = regions_of(candidates, std::vector<Bytes>{{0}, {4}}, {}, made_up_times({{"flat", {0, 1000}}}));
  ASSERT_TRUE(regions);
  ASSERT_EQ(regions->size(), 1U);
  EXPECT_EQ(margin_of((*regions)[0].sizes[0]).second, nullptr);
}

NcclLikeness likeness(const Topology& topology, const char* planner, CollectiveKind kind) {
  return nearest_nccl(candidates_on(topology, {planner}, kind).made.front().schedule, topology);
}

TEST(NcclLikeness, RingsAndTreesAreToldByTheirBranches) {
  const Topology ring = ring_of(6);
  EXPECT_EQ(likeness(ring, "ring", CollectiveKind::all_reduce).algorithm, "Ring");
  EXPECT_EQ(likeness(ring, "ring", CollectiveKind::all_reduce).why,
            "slices pass from rank to rank in chains of 5 hops");
  const Topology star = star_of(8);
  EXPECT_EQ(likeness(star, "tree", CollectiveKind::all_reduce).algorithm, "Tree");
  EXPECT_EQ(likeness(star, "flat", CollectiveKind::all_reduce).why,
            "slices branch up to 7 ways and take 1 hop, a ring's take 7");
}

TEST(NcclLikeness, OnlyWhatNcclHasForTheCollective) {
  const Topology star = star_of(4);
  EXPECT_EQ(likeness(star, "tree", CollectiveKind::broadcast).algorithm, "Ring");
  EXPECT_EQ(likeness(star, "pairwise", CollectiveKind::all_to_all).algorithm, "-");
  EXPECT_EQ(likeness(star, "flat", CollectiveKind::all_gather).algorithm, "Ring");
}

/// A switch that computes, with ranks on as many hosts.
Topology computing_star(std::size_t ranks, std::size_t hosts, bool computes) {
  test::FabricMaker maker;
  for (std::size_t i = 0; i < ranks; ++i) {
    Node node;
    node.id = "g" + std::to_string(i);
    node.host = "host" + std::to_string(i % hosts);
    maker.add_node(node);
  }
  Node hub;
  hub.id = "hub";
  hub.kind = NodeKind::switch_node;
  hub.is_rank = false;
  hub.multicast = hub.reduction = computes;
  const NodeId center = maker.add_node(hub);
  for (std::size_t i = 0; i < ranks; ++i) maker.add_cable(NodeId(i), center);
  return maker.build("computing");
}

TEST(NcclLikeness, SwitchesThatComputeAndHostsWithOneRank) {
  EXPECT_EQ(likeness(computing_star(4, 1, true), "flat", CollectiveKind::all_reduce).algorithm, "NVLS");
  EXPECT_EQ(likeness(computing_star(4, 2, true), "flat", CollectiveKind::all_reduce).algorithm, "CollNet");
  EXPECT_EQ(likeness(computing_star(4, 1, true), "innetwork", CollectiveKind::all_reduce).algorithm, "NVLS");
  EXPECT_EQ(likeness(computing_star(4, 2, true), "innetwork", CollectiveKind::all_reduce).algorithm, "CollNet");
  const auto sums = plan(computing_star(4, 1, true), *make_collective(CollectiveKind::all_reduce, 4, std::nullopt),
                         *find_planner("innetwork"));
  EXPECT_EQ(measure_travel(*sums).branches, 4U);
  EXPECT_EQ(likeness(computing_star(4, 4, false), "bruck", CollectiveKind::all_gather).algorithm, "PAT");
  EXPECT_EQ(likeness(computing_star(4, 2, false), "bruck", CollectiveKind::all_gather).algorithm, "Ring");
}

}  // namespace
}  // namespace espalier::planners
