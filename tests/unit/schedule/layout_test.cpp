#include "schedule/layout.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier {
namespace {

/// A schedule of slices alone: every part cut into slices of the given lengths.
Schedule sliced(CollectiveKind kind, std::size_t ranks, const std::vector<std::int64_t>& lengths) {
  Schedule schedule(*make_collective(kind, ranks, std::nullopt), "", "");
  for (std::int64_t part = 0; part < schedule.collective.part_count(); ++part) {
    const PartRanks due = ranks_of_part(schedule.collective, part);
    for (const std::int64_t length : lengths) {
      schedule.slices.push_back({schedule.units, length, due.rank, due.to});
      schedule.units += length;
    }
  }
  return schedule;
}

std::vector<std::int64_t> lengths_of(const Layout& layout, std::size_t slices) {
  std::vector<std::int64_t> lengths;
  for (std::size_t s = 0; s < slices; ++s) lengths.push_back(layout.range(SliceId(s), 1).length());
  return lengths;
}

TEST(Layout, TheFirstShardsGetTheRemainder) {
  const Schedule schedule = sliced(CollectiveKind::all_gather, 4, {1});
  // Ten 4-byte elements on four shards: 3, 3, 2, 2.
  const Layout layout = *Layout::make(schedule, Bytes{40}, 4);
  EXPECT_EQ(lengths_of(layout, 4), (std::vector<std::int64_t>{12, 12, 8, 8}));
}

TEST(Layout, WithinAShardTheRemainderIsSpread) {
  const Schedule schedule = sliced(CollectiveKind::reduce_scatter, 2, {1, 2});
  // Nine elements: shards of 5 and 4; three units each: 2, 2, 1 and 2, 1, 1; the slices take one and two of them.
  const Layout layout = *Layout::make(schedule, Bytes{9}, 1);
  EXPECT_EQ(lengths_of(layout, 4), (std::vector<std::int64_t>{2, 3, 2, 2}));
}

/// A forest of 149,818 units, most of them in the second slice, on a hundred elements: slices keep their shares.
TEST(Layout, MoreUnitsThanElementsKeepTheShares) {
  const Schedule schedule = sliced(CollectiveKind::all_reduce, 3, {14'981, 119'856, 14'981});
  const Layout layout = *Layout::make(schedule, Bytes{100}, 1);
  EXPECT_EQ(lengths_of(layout, 3), (std::vector<std::int64_t>{10, 81, 9}));
}

TEST(Layout, AllToAllLaysSendBuffersOneAfterTheOther) {
  const Schedule schedule = sliced(CollectiveKind::all_to_all, 2, {1});
  // Each rank's three bytes are cut 2, 1.
  const Layout layout = *Layout::make(schedule, Bytes{3}, 1);
  EXPECT_EQ(lengths_of(layout, 4), (std::vector<std::int64_t>{2, 1, 2, 1}));
}

TEST(Layout, FewerElementsThanUnitsLeaveSomeEmpty) {
  const Schedule schedule = sliced(CollectiveKind::all_reduce, 3, {1, 1, 1});
  const Layout layout = *Layout::make(schedule, Bytes{8}, 8);
  EXPECT_EQ(lengths_of(layout, 3), (std::vector<std::int64_t>{8, 0, 0}));
  EXPECT_EQ(lengths_of(*Layout::make(schedule, Bytes{0}, 8), 3), (std::vector<std::int64_t>{0, 0, 0}));
}

TEST(Layout, RefusesSizesThatDoNotFit) {
  Schedule schedule = sliced(CollectiveKind::all_gather, 4, {1});
  EXPECT_EQ(Layout::make(schedule, Bytes{6}, 4).error().message,
            "a message of 6 bytes is not a whole number of 4-byte elements");
  EXPECT_FALSE(Layout::make(schedule, Bytes{-4}, 4));
  EXPECT_FALSE(Layout::make(schedule, Bytes{4}, 0));
  EXPECT_EQ(Layout::make(schedule, Bytes{max_message_size.count + 4}, 4).error().code, ErrorCode::too_large);
  schedule.units = 5;
  EXPECT_EQ(Layout::make(schedule, Bytes{4}, 4).error().message,
            "the schedule's 5 units do not divide into its 4 equal parts");
}

TEST(Layout, TilesExactlyAndShardsDifferByAtMostOneElement) {
  Random random(17);
  for (int round = 0; round < 2'000; ++round) {
    const CollectiveKind kind = all_collective_kinds[random.below(all_collective_kinds.size())];
    std::vector<std::int64_t> lengths;
    for (std::size_t i = 0; i < 1 + random.below(4); ++i) lengths.push_back(random.between(1, 1'000'000'000));
    const Schedule schedule = sliced(kind, 1 + random.below(9), lengths);
    const std::int64_t element = std::int64_t{1} << random.below(4);
    const Bytes size{random.between(0, std::int64_t{1} << random.below(45)) * element};
    const Layout layout = *Layout::make(schedule, size, element);
    const auto slice_count = static_cast<std::uint32_t>(schedule.slices.size());
    EXPECT_EQ(layout.range(SliceId(0), slice_count), (ByteRange{0, size.count * schedule.collective.extent_factor()}));
    std::int64_t shortest = INT64_MAX;
    std::int64_t longest = 0;
    for (std::uint32_t first = 0; first < slice_count; first += static_cast<std::uint32_t>(lengths.size())) {
      const ByteRange part = layout.range(SliceId(first), static_cast<std::uint32_t>(lengths.size()));
      shortest = std::min(shortest, part.length());
      longest = std::max(longest, part.length());
    }
    EXPECT_LE(longest - shortest, element);
    for (std::uint32_t s = 0; s < slice_count; ++s) {
      const ByteRange range = layout.range(SliceId(s), 1);
      EXPECT_GE(range.length(), 0);
      EXPECT_EQ(range.begin % element, 0);
      EXPECT_EQ(range.begin, s > 0 ? layout.range(SliceId(s - 1), 1).end : 0);
    }
  }
}

TEST(Layout, TheLongestTransferSetsTheNumberOfChunks) {
  // Slices of 10 and 30 elements; chunks of at most 8 elements: the longer one needs four, so both get four.
  Schedule schedule = sliced(CollectiveKind::all_reduce, 2, {10, 30});
  const Layout layout = *Layout::make(schedule, Bytes{40 * 4}, 4);
  EXPECT_EQ(chunk_count(schedule, layout, Bytes{32}), 1) << "nothing moves";
  const RouteId route = schedule.add_route(Rank(0), Rank(1), {});
  for (std::size_t slice : {0U, 1U}) schedule.add_transfer(route, SliceId(slice), 1, Action::reduce, ChannelId(0));
  EXPECT_EQ(chunk_count(schedule, layout, Bytes{32}), 4);
  EXPECT_EQ(chunk_count(schedule, layout, Bytes{35}), 4) << "a chunk holds whole elements";
}

TEST(Layout, PartsTileTheirRange) {
  Random random(19);
  for (int round = 0; round < 2'000; ++round) {
    const std::int64_t element = std::int64_t{1} << random.below(4);
    const std::int64_t begin = random.between(0, 1'000) * element;
    const ByteRange range{begin, begin + random.between(0, 5'000) * element};
    const std::int64_t count = random.between(1, 600);
    std::int64_t end = range.begin;
    for (std::int64_t i = 0; i < count; ++i) {
      const ByteRange part = part_of(range, count, i, element);
      EXPECT_EQ(part.begin, end);
      EXPECT_EQ(part.length() > 0, i < range.length() / element) << "the first ones get the remainder";
      EXPECT_EQ(part.length() % element, 0);
      end = part.end;
    }
    EXPECT_EQ(end, range.end);
  }
}

}  // namespace
}  // namespace espalier
