#include <gtest/gtest.h>

#include <numeric>

#include "base/random.h"
#include "schedule/layout.h"
#include "schedule/parts.h"
#include "schedule/trees/tree_schedule.h"
#include "schedule/verify/verify.h"

namespace espalier {
namespace {

using Numbers = std::vector<std::int64_t>;

Collective all_gather(Numbers shares) {
  const std::size_t ranks = shares.size();
  return *make_collective(CollectiveKind::all_gather, ranks, std::nullopt, std::move(shares));
}

TEST(Shares, AreKeptInLowestTerms) {
  EXPECT_EQ(all_gather({6, 2, 0}).shares, (Numbers{3, 1, 0}));
  EXPECT_EQ(all_gather({7, 7, 7}), all_gather({1, 1, 1}));
  EXPECT_TRUE(all_gather({7, 7, 7}).shares.empty());
  EXPECT_EQ(all_gather({7, 7, 7}).share_sum(), 3);
}

TEST(Shares, WrongOnesAreRefused) {
  const auto message = [](CollectiveKind kind, Numbers shares) {
    const auto made = make_collective(kind, 3, std::nullopt, std::move(shares));
    return made ? std::string("none") : made.error().message;
  };
  EXPECT_EQ(message(CollectiveKind::all_reduce, {1, 1, 2}), "all_reduce has no shards that could be unequal");
  EXPECT_EQ(message(CollectiveKind::send_recv, {1, 1, 2}), "send_recv has no shards that could be unequal");
  EXPECT_EQ(message(CollectiveKind::gather, {1, 1}), "there are 2 shares for 3 ranks");
  EXPECT_EQ(message(CollectiveKind::gather, {1, -1, 2}), "the share of rank 1 is -1, below zero");
  EXPECT_EQ(message(CollectiveKind::scatter, {0, 0, 0}), "all shares are zero");
  EXPECT_EQ(message(CollectiveKind::scatter, {max_share_sum, 1, 0}), "the shares sum to more than 2^40");
  EXPECT_EQ(message(CollectiveKind::scatter, {INT64_MAX, INT64_MAX, 0}), "the shares sum to more than 2^40");
  EXPECT_EQ(message(CollectiveKind::scatter, {max_share_sum - 1, 1, 0}), "none");
}

TEST(Shares, LargestRemaindersGetWhatIsLeft) {
  // Ten elements by 3:1:1:0 are 6, 2, 2, 0 exactly; eleven 6.6, 2.2, 2.2, 0; twelve 7.2, 2.4, 2.4, 0, the tie to the
  // lower rank.
  EXPECT_EQ(deal_elements(all_gather({3, 1, 1, 0}), 10), (Numbers{6, 2, 2, 0}));
  EXPECT_EQ(deal_elements(all_gather({3, 1, 1, 0}), 11), (Numbers{7, 2, 2, 0}));
  EXPECT_EQ(deal_elements(all_gather({3, 1, 1, 0}), 12), (Numbers{7, 3, 2, 0}));
  EXPECT_EQ(deal_elements(all_gather({3, 1, 1, 0}), 0), (Numbers{0, 0, 0, 0}));
  // One of two elements for each of three equal shares: the first ones.
  EXPECT_EQ(deal_elements(all_gather({1, 1, 1}), 2), (Numbers{1, 1, 0}));
}

TEST(Shares, ElementsAreDealtByThem) {
  Random random(31);
  for (int round = 0; round < 2000; ++round) {
    Numbers shares(1 + random.below(9));
    for (std::int64_t& share : shares) share = random.below(4) == 0 ? 0 : random.between(1, 1 + (round % 50));
    shares[random.below(shares.size())] += 1;
    const std::int64_t elements = random.between(0, round % 2 == 0 ? 40 : 1'000'000'007);
    const Numbers dealt = deal_elements(all_gather(shares), elements);
    const std::int64_t sum = std::accumulate(shares.begin(), shares.end(), std::int64_t{0});
    ASSERT_EQ(std::accumulate(dealt.begin(), dealt.end(), std::int64_t{0}), elements);
    for (std::size_t a = 0; a < shares.size(); ++a) {
      const __int128 due = static_cast<__int128>(elements) * shares[a];
      ASSERT_LT(due - static_cast<__int128>(dealt[a]) * sum, sum);
      ASSERT_LT(static_cast<__int128>(dealt[a]) * sum - due, sum);
      for (std::size_t b = 0; b < shares.size(); ++b) {
        if (shares[a] > shares[b]) {
          ASSERT_GE(dealt[a], dealt[b]);
        }
      }
    }
  }
}

/// A schedule of slices alone: a slice for every shard that has a share.
Schedule sliced(Numbers shares) {
  Schedule schedule(all_gather(std::move(shares)), "", "");
  for (std::size_t rank = 0; rank < schedule.collective.rank_count; ++rank) {
    const std::int64_t length = schedule.collective.share_of(Rank(rank));
    if (length > 0) schedule.slices.push_back({schedule.units, length, Rank(rank), Rank()});
    schedule.units += length;
  }
  return schedule;
}

TEST(Shares, LayoutFollowsThem) {
  const Layout layout = *Layout::make(sliced({3, 0, 1, 1}), Bytes{48}, 4);
  // Twelve elements: 7.2, 0, 2.4, 2.4.
  EXPECT_EQ(layout.range(SliceId(0), 1), (ByteRange{0, 28}));
  EXPECT_EQ(layout.range(SliceId(1), 1), (ByteRange{28, 40}));
  EXPECT_EQ(layout.range(SliceId(2), 1), (ByteRange{40, 48}));
  EXPECT_EQ(layout.range(SliceId(0), 3), (ByteRange{0, 48}));
}

TEST(Shares, EqualOnesAreLaidOutAsNone) {
  for (std::int64_t elements = 0; elements < 40; ++elements) {
    const Schedule plain = sliced({1, 1, 1, 1});
    const Schedule given = sliced({5, 5, 5, 5});
    const Layout a = *Layout::make(plain, Bytes{elements}, 1);
    const Layout b = *Layout::make(given, Bytes{elements}, 1);
    for (std::size_t slice = 0; slice < 4; ++slice) EXPECT_EQ(a.range(SliceId(slice), 1), b.range(SliceId(slice), 1));
  }
}

TEST(Shares, PartsBeginWhereTheOnesBeforeEnd) {
  const Collective collective = all_gather({0, 2, 0, 0, 1, 0});
  const BufferParts parts(collective, 6);
  ASSERT_TRUE(parts.are_whole());
  Numbers begins;
  for (std::int64_t part = 0; part <= parts.count(); ++part) begins.push_back(parts.begin(part));
  EXPECT_EQ(begins, (Numbers{0, 0, 4, 4, 4, 6, 6}));
  EXPECT_EQ(parts.at(0), 1);
  EXPECT_EQ(parts.at(3), 1);
  EXPECT_EQ(parts.at(4), 4);
  EXPECT_EQ(parts.at(5), 4);
  EXPECT_FALSE(BufferParts(collective, 7).are_whole());
}

TEST(Shares, BusbwFactors) {
  // All ranks receive all but their own share: in the mean (N-1)/N. Through the root of a gather passes all but its
  // own.
  EXPECT_EQ(all_gather({3, 1, 0}).busbw_factor(), make_rational(2, 3));
  const Numbers shares{3, 1, 0};
  EXPECT_EQ(make_collective(CollectiveKind::gather, 3, Rank(0), shares)->busbw_factor(), make_rational(1, 4));
  EXPECT_EQ(make_collective(CollectiveKind::scatter, 3, Rank(2), shares)->busbw_factor(), make_rational(1));
  EXPECT_EQ(make_collective(CollectiveKind::gather, 3, Rank(0))->busbw_factor(), make_rational(2, 3));
}

/// Three ranks in a row, each joined to all.
Topology triangle() {
  std::vector<Node> nodes(3);
  std::vector<Link> links;
  for (std::size_t i = 0; i < 3; ++i) nodes[i].id = "g" + std::to_string(i);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < 3; ++j) {
      if (i == j) continue;
      Link link;
      link.tail = NodeId(i);
      link.head = NodeId(j);
      link.nominal = Bandwidth{1'000'000'000};
      links.push_back(link);
    }
  }
  return *Topology::make("triangle", nodes, links);
}

Arborescence star_of(const Topology& topology, std::size_t root, std::int64_t weight) {
  Arborescence tree{Rank(root), weight, {}};
  for (std::size_t to = 0; to < 3; ++to) {
    if (to != root) tree.edges.push_back({Rank(root), Rank(to), topology.links_between(NodeId(root), NodeId(to))});
  }
  return tree;
}

TEST(Shares, TreesCarryThem) {
  const Topology topology = triangle();
  Forest forest;
  for (std::size_t root = 0; root < 3; ++root) forest.out_trees.push_back(star_of(topology, root, 4));
  const Collective collective = all_gather({2, 0, 1});
  EXPECT_FALSE(schedule_from_trees(collective, topology, "", forest));
  const auto schedule = schedule_from_trees(collective, topology, "", *in_proportion(forest, collective));
  ASSERT_TRUE(schedule) << schedule.error().message;
  EXPECT_TRUE(verify(*schedule, topology).ok());
  EXPECT_EQ(schedule->units, 3);
  EXPECT_EQ(schedule->slices, (std::vector<Slice>{{0, 2, Rank(0), Rank()}, {2, 1, Rank(2), Rank()}}));
  EXPECT_EQ(schedule->transfers.size(), 4U);
}

TEST(Shares, TreesInAnotherRatioAreRefused) {
  const Topology topology = triangle();
  const Forest forest{{}, {star_of(topology, 0, 3), star_of(topology, 2, 1)}};
  const auto schedule = schedule_from_trees(all_gather({2, 0, 1}), topology, "", forest);
  ASSERT_FALSE(schedule);
  EXPECT_EQ(schedule.error().message,
            "the trees of rank 0 weigh 3 and those of rank 2 weigh 1; all_gather needs the ratio 2 to 1");
}

TEST(Shares, VerifyKnowsThem) {
  const Topology topology = triangle();
  const Forest forest{{}, {star_of(topology, 0, 2), star_of(topology, 2, 1)}};
  Schedule schedule = *schedule_from_trees(all_gather({2, 0, 1}), topology, "", forest);
  const auto first_breach = [&] {
    const VerifyReport report = verify(schedule, topology);
    return report.ok() ? std::string("none")
                       : std::string(to_string(report.breaches.front().rule)) + ": " + report.breaches.front().message;
  };
  EXPECT_EQ(first_breach(), "none");
  schedule.collective.shares = {1, 0, 2};
  EXPECT_EQ(first_breach(), "S2: slice 0: it reaches from part 0 of the buffer, which ends at unit 1, into the next");
  schedule.collective.shares = {1, 0, 1};
  EXPECT_EQ(first_breach(), "S2: the 3 units do not divide into the 3 shares of all_gather on 3 ranks");
  schedule.collective.shares = {1, 1};
  EXPECT_EQ(first_breach(), "S1: there are 2 shares for 3 ranks");
  EXPECT_FALSE(Layout::make(schedule, Bytes{12}, 4));
}

TEST(EvenlyDealt, IsWhatWholeElementsGiveEveryShard) {
  // 250 elements of 4 bytes in 6 shards: four of 42 and two of 41. As many as 6 x 41 = 246 give each no more.
  const Collective gather{CollectiveKind::gather, 6, Rank(0U)};
  EXPECT_EQ(evenly_dealt(gather, Bytes{1000}, 4).count, 984);
  // A message of one element is the root's own: nothing has to move.
  EXPECT_EQ(evenly_dealt(gather, Bytes{4}, 4).count, 0);
  // The whole message goes everywhere.
  EXPECT_EQ(evenly_dealt({CollectiveKind::all_reduce, 6, Rank()}, Bytes{4}, 4).count, 4);
  EXPECT_EQ(evenly_dealt({CollectiveKind::send_recv, 6, Rank()}, Bytes{4}, 4).count, 4);
  // Every rank has 6 blocks of its 250 elements.
  EXPECT_EQ(evenly_dealt({CollectiveKind::all_to_all, 6, Rank()}, Bytes{1000}, 4).count, 984);
}

TEST(EvenlyDealt, CountsShardsByTheirShares) {
  // 10 elements as 3 : 1 : 0 are dealt as 8, 2 and 0; of 8 elements the second one's quarter is as much as it has.
  EXPECT_EQ(evenly_dealt({CollectiveKind::gather, 3, Rank(2U), {3, 1, 0}}, Bytes{10}, 1).count, 8);
}

}  // namespace
}  // namespace espalier
