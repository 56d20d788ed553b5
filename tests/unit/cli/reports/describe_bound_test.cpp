#include "cli/reports/describe_bound.h"

#include <gtest/gtest.h>

#include "planners/bounds/bound.h"
#include "tests/support/planner_cases.h"

namespace espalier::cli {
namespace {

/// Three pairs of ranks in a ring: wide cables of 20 GB/s in the pairs, between them two thin ones of 2 and one of 3.
Topology three_pairs() {
  test::PlainGraph graph{6, 0, {}};
  const std::int64_t rates[] = {20, 2, 20, 2, 20, 3};
  for (std::size_t i = 0; i < 6; ++i) {
    graph.edges.push_back({i, (i + 1) % 6, rates[i]});
    graph.edges.push_back({(i + 1) % 6, i, rates[i]});
  }
  const Topology plain = test::make_topology(graph);
  std::vector<Link> links(plain.links().begin(), plain.links().end());
  for (Link& link : links) {
    const std::int64_t rate = link.nominal.bytes_per_second / test::unit;
    link.link_class = rate == 2 ? "thin" : rate == 3 ? "middling" : "wide";
  }
  return *Topology::make("pairs", {plain.nodes().begin(), plain.nodes().end()}, std::move(links));
}

TEST(CutText, NamesTheSmallerSide) {
  const Topology ring = three_pairs();
  const auto text = [&](std::initializer_list<std::size_t> cut) {
    Bound bound;
    for (const std::size_t node : cut) bound.cut.emplace_back(node);
    return cut_text(bound, ring, 2);
  };
  EXPECT_EQ(text({4}), "{r4}");
  EXPECT_EQ(text({0, 1, 2}), "{r0, r1 and 1 more}");
  EXPECT_EQ(text({0, 1, 2, 4, 5}), "all but {r3}");
  EXPECT_EQ(text({0, 1, 2, 3, 4, 5}), "all nodes");
}

// A tree joins the three pairs over two of the three cables between them, so trees of T in all need 2 T of 2 + 2 + 3:
// T = 3.5 GB/s, less than the 4 that leave a pair. The three have one price, so each class binds by its part of the 7.
TEST(BindingText, NamesTheClassesWithTheirPrices) {
  const Topology pairs = three_pairs();
  const Collective all_reduce = *make_collective(CollectiveKind::all_reduce, 6, std::nullopt);
  const auto priced = planners::compute_priced_bound(pairs, all_reduce);
  ASSERT_TRUE(priced);
  const Bound* bound = &priced->bound;
  EXPECT_EQ(bound->time_per_byte, make_rational(2, 7 * test::unit));
  EXPECT_TRUE(bound->cut.empty());
  EXPECT_TRUE(bound->what.starts_with("thin (4 links) 57 %, middling (2 links) 43 % limit ")) << bound->what;
  const auto document = bound_json(*priced, all_reduce, pairs);
  ASSERT_EQ(document["binding"].size(), 2U);
  EXPECT_EQ(document["binding"][0]["class"], "thin");
  EXPECT_EQ(document["binding"][0]["links"].size(), 4U);
  EXPECT_NEAR(document["binding"][0]["share"].get<double>(), 4.0 / 7, 1e-9);
  EXPECT_NEAR(document["binding"][1]["share"].get<double>(), 3.0 / 7, 1e-9);
}

}  // namespace
}  // namespace espalier::cli
