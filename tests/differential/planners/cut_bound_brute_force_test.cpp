#include <gtest/gtest.h>

#include <bit>
#include <numeric>
#include <optional>

#include "planners/bounds/cut_bound.h"
#include "planners/planning_problem.h"
#include "tests/support/networks/random_graph.h"

namespace espalier::planners {
namespace {

/// Bounds by trying every node set, in the definition's words.
class BruteForce {
 public:
  BruteForce(const test::PlainGraph& graph, std::int64_t unit) : graph_(graph), unit_(unit) {
    const std::uint32_t sets = std::uint32_t{1} << (graph.ranks + graph.switches);
    for (std::uint32_t set = 0; set < sets; ++set) leaving_.push_back(capacity_leaving(set));
  }

  [[nodiscard]] std::uint32_t rank_mask() const { return (std::uint32_t{1} << graph_.ranks) - 1; }
  [[nodiscard]] int ranks_in(std::uint32_t set) const { return std::popcount(set & rank_mask()); }

  /// The largest (shares inside) / capacity over the sets that leave a rank and `without`, if any, outside.
  [[nodiscard]] Rational largest_by_shares(bool outwards, const std::vector<std::int64_t>& shares,
                                           std::optional<std::size_t> without) const {
    Rational best = 0;
    const auto all = static_cast<std::uint32_t>(leaving_.size() - 1);
    for (std::uint32_t set = 1; set < all; ++set) {
      std::int64_t inside = 0;
      for (std::size_t rank = 0; rank < graph_.ranks; ++rank) inside += ((set >> rank) & 1U) != 0 ? shares[rank] : 0;
      if (inside == 0 || ranks_in(set) == static_cast<int>(graph_.ranks)) continue;
      if (without && ((set >> *without) & 1U) != 0) continue;
      const Rational capacity = Rational(leaving_[outwards ? set : all ^ set]) * unit_;
      best = std::max(best, Rational(inside) / capacity);
    }
    return best;
  }

  /// The largest ranks / capacity over the sets that `allows` admits.
  template <class Allows>
  [[nodiscard]] Rational largest(bool outwards, bool count_ranks, Allows allows) const {
    Rational best = 0;
    const auto all = static_cast<std::uint32_t>(leaving_.size() - 1);
    for (std::uint32_t set = 1; set < all; ++set) {
      if (ranks_in(set) == 0 || ranks_in(set) == static_cast<int>(graph_.ranks) || !allows(set)) continue;
      const Rational capacity = Rational(leaving_[outwards ? set : all ^ set]) * unit_;
      best = std::max(best, Rational(count_ranks ? ranks_in(set) : 1) / capacity);
    }
    return best;
  }

 private:
  [[nodiscard]] std::int64_t capacity_leaving(std::uint32_t set) const {
    std::int64_t sum = 0;
    for (const auto& edge : graph_.edges) {
      const bool from = ((set >> edge.tail) & 1U) != 0;
      const bool to = ((set >> edge.head) & 1U) != 0;
      sum += from && !to ? edge.capacity : 0;
    }
    return sum;
  }

  const test::PlainGraph& graph_;
  std::int64_t unit_;
  std::vector<std::int64_t> leaving_;
};

void compare(const test::PlainGraph& graph, std::int64_t unit, std::size_t root) {
  const Topology topology = test::make_topology(graph, unit);
  const BruteForce brute(graph, unit);
  const auto time = [&](CollectiveKind kind) {
    const bool rooted = has_root(kind);
    const auto bound =
        cut_bound(topology, {kind, static_cast<std::uint32_t>(graph.ranks), rooted ? Rank(root) : Rank()});
    EXPECT_TRUE(bound);
    return bound->time_per_byte;
  };
  const auto any = [](std::uint32_t) { return true; };
  const auto with_root = [&](std::uint32_t set) { return ((set >> root) & 1U) != 0; };
  const auto without_root = [&](std::uint32_t set) { return ((set >> root) & 1U) == 0; };
  const Rational parts = graph.ranks;
  ASSERT_EQ(time(CollectiveKind::all_gather), brute.largest(true, true, any) / parts);
  ASSERT_EQ(time(CollectiveKind::reduce_scatter), brute.largest(false, true, any) / parts);
  ASSERT_EQ(time(CollectiveKind::broadcast), brute.largest(true, false, with_root));
  ASSERT_EQ(time(CollectiveKind::reduce), brute.largest(false, false, with_root));
  ASSERT_EQ(time(CollectiveKind::gather), brute.largest(true, true, without_root) / parts);
  ASSERT_EQ(time(CollectiveKind::scatter), brute.largest(false, true, without_root) / parts);
}

TEST(CutBoundBruteForce, RandomGraphs) {
  Random random(11);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {6, 3, 20, round % 2 == 0});
    compare(graph, 1, random.below(graph.ranks));
  }
}

void compare_by_shares(const test::PlainGraph& graph, const std::vector<std::int64_t>& shares, std::size_t root) {
  const Topology topology = test::make_topology(graph, 1);
  const BruteForce brute(graph, 1);
  const auto time = [&](CollectiveKind kind) {
    const auto from = has_root(kind) ? std::optional(Rank(root)) : std::nullopt;
    const auto collective = make_collective(kind, graph.ranks, from, shares);
    EXPECT_TRUE(collective);
    return cut_bound(topology, *collective)->time_per_byte;
  };
  const Rational sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
  ASSERT_EQ(time(CollectiveKind::all_gather), brute.largest_by_shares(true, shares, std::nullopt) / sum);
  ASSERT_EQ(time(CollectiveKind::reduce_scatter), brute.largest_by_shares(false, shares, std::nullopt) / sum);
  ASSERT_EQ(time(CollectiveKind::gather), brute.largest_by_shares(true, shares, root) / sum);
  ASSERT_EQ(time(CollectiveKind::scatter), brute.largest_by_shares(false, shares, root) / sum);
}

TEST(CutBoundBruteForce, UnequalShares) {
  Random random(14);
  for (int round = 0; round < 400; ++round) {
    SCOPED_TRACE(round);
    const auto graph = test::random_graph(random, {7, 3, 20, round % 2 == 0});
    std::vector<std::int64_t> shares(graph.ranks);
    for (std::int64_t& share : shares) share = random.below(3) == 0 ? 0 : random.between(1, 9);
    const std::size_t largest = random.below(graph.ranks);
    shares[largest] = round % 5 == 0 ? max_share_sum / 2 - random.between(0, 1000) : shares[largest] + 1;
    compare_by_shares(graph, shares, random.below(graph.ranks));
  }
}

TEST(CutBoundBruteForce, FourteenNodes) {
  Random random(12);
  for (int compared = 0; compared < 10;) {
    const auto graph = test::random_graph(random, {10, 4, 9, compared % 2 == 0});
    if (graph.ranks + graph.switches != 14) continue;
    compare(graph, 25, random.below(graph.ranks));
    ++compared;
  }
}

/// Rates near 1e18 B/s without a common divisor need 128 bits.
TEST(CutBoundBruteForce, HugePrimes) {
  constexpr std::array primes = {std::int64_t{999'999'999'999'999'989}, std::int64_t{999'999'999'999'999'967},
                                 std::int64_t{1'000'000'007}, std::int64_t{99'971}};
  Random random(13);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    auto graph = test::random_graph(random, {5, 2, 2, false});
    for (auto& edge : graph.edges) edge.capacity = primes.at(random.below(primes.size()));
    compare(graph, 1, random.below(graph.ranks));
  }
}

}  // namespace
}  // namespace espalier::planners
