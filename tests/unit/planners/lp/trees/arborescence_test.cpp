#include "planners/lp/trees/arborescence.h"

#include <gtest/gtest.h>

#include <optional>

#include "base/random.h"

namespace espalier::planners {
namespace {

/// Follows parents to the root; false when a cycle stands in the way.
bool reaches_root(const std::vector<std::uint32_t>& parent, std::uint32_t root) {
  for (std::uint32_t v = 0; v < parent.size(); ++v) {
    std::uint32_t at = v;
    for (std::size_t steps = 0; at != root; ++steps, at = parent[at]) {
      if (steps > parent.size()) return false;
    }
  }
  return true;
}

std::int64_t cost_of(const std::vector<std::int64_t>& cost, const std::vector<std::uint32_t>& parent,
                     std::uint32_t root) {
  std::int64_t sum = 0;
  for (std::uint32_t v = 0; v < parent.size(); ++v) sum += v == root ? 0 : cost[parent[v] * parent.size() + v];
  return sum;
}

/// The cheapest of all n^(n-1) choices of parents that make a tree.
std::int64_t cheapest_by_enumeration(const std::vector<std::int64_t>& cost, std::uint32_t n, std::uint32_t root) {
  std::vector<std::uint32_t> parent(n, 0);
  std::optional<std::int64_t> best;
  while (true) {
    parent[root] = root;
    bool loops = false;
    for (std::uint32_t v = 0; v < n; ++v) loops = loops || (v != root && parent[v] == v);
    if (!loops && reaches_root(parent, root)) {
      const std::int64_t sum = cost_of(cost, parent, root);
      if (!best || sum < *best) best = sum;
    }
    std::uint32_t digit = 0;
    while (digit < n && (digit == root || ++parent[digit] == n)) {
      parent[digit] = digit == root ? root : 0;
      ++digit;
    }
    if (digit == n) return *best;
  }
}

TEST(Arborescence, CheapestOfAllTreesUpToFiveVertices) {
  Random random(1);
  for (int round = 0; round < 300; ++round) {
    const auto n = static_cast<std::uint32_t>(random.between(1, 5));
    const auto root = static_cast<std::uint32_t>(random.below(n));
    const std::int64_t largest = round % 2 == 0 ? 3 : 1000;  // with and without many ties
    std::vector<std::int64_t> cost(std::size_t{n} * n);
    for (std::int64_t& value : cost) value = random.between(0, largest);
    const std::vector<double> rounded(cost.begin(), cost.end());
    const std::vector<BigInteger> exact(cost.begin(), cost.end());
    const std::int64_t best = cheapest_by_enumeration(cost, n, root);
    for (const auto& parent : {cheapest_arborescence(rounded, n, root), cheapest_arborescence(cost, n, root),
                               cheapest_arborescence(exact, n, root)}) {
      ASSERT_TRUE(reaches_root(parent, root));
      ASSERT_EQ(cost_of(cost, parent, root), best);
    }
  }
}

/// 0 -> 3 costs 10 and 1 -> 2 -> 3 -> 1 cost 1 each: the cycle must be entered once, for 10 + 1 + 1.
TEST(Arborescence, BreaksACycle) {
  const BigInteger far = 100;
  const std::vector<BigInteger> cost = {0,   far, far, 10,   //
                                        far, 0,   1,   far,  //
                                        far, far, 0,   1,    //
                                        far, 1,   far, 0};
  EXPECT_EQ(cheapest_arborescence(cost, 4, 0), (std::vector<std::uint32_t>{0, 3, 1, 0}));
}

}  // namespace
}  // namespace espalier::planners
