#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "planners/bounds/bound.h"
#include "planners/chooser.h"
#include "planners/planner.h"
#include "schedule/loads.h"
#include "schedule/verify/verify.h"
#include "sim/simulate.h"
#include "tests/support/networks/random_graph.h"
#include "topology/bundles.h"

// One cable of a rate, or several side by side whose rates add up to it, are the same hardware: the same bounds, and
// plans that take as long.

namespace espalier::planners {
namespace {

/// The same network with links parted at random into up to `most` parallel ones: equal ones, or of random rates.
Topology with_parted_links(const Topology& whole, Random& random, std::size_t most, bool equal) {
  std::vector<Link> links;
  for (const Link& link : whole.links()) {
    const std::int64_t rate = link.nominal.bytes_per_second;
    const auto count = static_cast<std::int64_t>(1 + random.below(most));
    std::vector<std::int64_t> ends = {0, rate};
    for (std::int64_t i = 1; i < count; ++i) ends.push_back(equal ? rate * i / count : random.between(1, rate - 1));
    std::ranges::sort(ends);
    ends.erase(std::unique(ends.begin(), ends.end()), ends.end());
    for (std::size_t i = 1; i < ends.size(); ++i) {
      links.push_back(link);
      links.back().nominal = {ends[i] - ends[i - 1]};
    }
  }
  for (std::size_t i = links.size(); i-- > 1;) std::swap(links[i], links[random.below(i + 1)]);
  return *Topology::make(whole.name(), {whole.nodes().begin(), whole.nodes().end()}, std::move(links));
}

/// The network in which nothing is parallel: what with_parted_links begins with.
Topology joined(const Topology& topology) { return bundled(topology, Bundles(topology)); }

Collective collective_on(const Topology& topology, CollectiveKind kind) {
  return *make_collective(kind, topology.rank_count(), has_root(kind) ? std::optional(Rank(0)) : std::nullopt);
}

double seconds(const Candidate& candidate, const Topology& topology, Bytes size) {
  sim::Options options;
  options.size = size;
  options.chunk = candidate.chunks.choose(size);
  const auto report = sim::simulate(candidate.schedule, topology, options);
  EXPECT_TRUE(report) << report.error().message;
  return report ? report->elapsed.seconds() : 0;
}

/// Parts are rounded to 720,720ths where rates are random, and strands of less than a 1,024th are left out: up to two
/// of three, and the thinnest that counts is off by half of 1,024 / 720,720.
const Rational max_rounding = make_rational(4, 1000);

/// What times on parted links are of those on whole ones.
struct Spread {
  double most = 1;
  double sum = 0;
  int compared = 0;
};

/// No plan is this much slower: by one link of a bundle it would be up to four times. Pieces that are cut unlike at two
/// places on their way queue behind each other, and messages of one chunk do not make that up.
constexpr double max_ratio = 1.5;
/// In the mean over all planners and networks.
constexpr double mean_ratio = 1.02;

/// Every planner on both networks: the same bound, the same refusals, the same load, and nearly the same times.
void expect_alike(const Topology& whole, const Topology& parted, CollectiveKind kind, Spread& spread) {
  const Collective collective = collective_on(whole, kind);
  const auto bound = compute_bound(whole, collective);
  const auto same_bound = compute_bound(parted, collective);
  ASSERT_EQ(bound.has_value(), same_bound.has_value());
  if (!bound) return;
  EXPECT_EQ(bound->time_per_byte, same_bound->time_per_byte);
  const auto ones = make_candidates(whole, collective, all_planners());
  const auto many = make_candidates(parted, collective, all_planners());
  ASSERT_TRUE(ones && many);
  ASSERT_EQ(ones->made.size(), many->made.size());
  for (std::size_t i = 0; i < ones->made.size(); ++i) {
    const Candidate& one = ones->made[i];
    const Candidate& other = many->made[i];
    SCOPED_TRACE(one.planner);
    ASSERT_EQ(one.planner, other.planner);
    EXPECT_TRUE(verify(other.schedule, parted, 1).ok());
    const Rational load = compute_loads(one.schedule, whole).time_per_byte;
    const Rational same = compute_loads(other.schedule, parted).time_per_byte;
    EXPECT_GE(same, load * (1 - max_rounding));
    EXPECT_LE(same, load * (1 + max_rounding));
    for (const Bytes size : {Bytes{4096}, Bytes{std::int64_t{64} << 20U}}) {
      const double ratio = seconds(other, parted, size) / seconds(one, whole, size);
      EXPECT_LE(ratio, max_ratio) << size.count;
      spread.sum += ratio;
      spread.most = std::max(spread.most, ratio);
      ++spread.compared;
    }
  }
}

// The planner sees the network with bundles as single links, so what it plans is the same. Each piece of a slice goes
// over strands that have its part of their bundles' rates, at the same speed as the whole goes over the bundle. Times
// differ where chunks do: they are powers of two and at least 4 KiB each, so that a piece has other chunks than the
// whole; and where pieces queue.
void expect_nearly_the_same(std::uint64_t seed, int rounds, bool equal) {
  Random random(seed);
  Spread spread;
  for (int round = 0; round < rounds; ++round) {
    const Topology whole = joined(test::make_topology(test::random_graph(random, {5, 2, 20, equal || round % 2 == 0})));
    const Topology parted = with_parted_links(whole, random, equal ? 4 : 3, equal);
    for (const CollectiveKind kind : all_collective_kinds) {
      SCOPED_TRACE(std::to_string(round) + " " + std::string(to_string(kind)));
      expect_alike(whole, parted, kind, spread);
    }
  }
  EXPECT_GT(spread.compared, 50 * rounds);
  EXPECT_LE(spread.sum / spread.compared, mean_ratio);
  ::testing::Test::RecordProperty("mean", std::to_string(spread.sum / spread.compared));
  ::testing::Test::RecordProperty("most", std::to_string(spread.most));
}

TEST(BundledNetwork, EqualOnesAreAsGoodAsOne) { expect_nearly_the_same(1818, 16, true); }

TEST(BundledNetwork, UnequalOnesAreAsGoodAsOne) { expect_nearly_the_same(1819, 8, false); }

}  // namespace
}  // namespace espalier::planners
