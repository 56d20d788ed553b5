#include "schedule/chunking.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/random.h"

namespace espalier {
namespace {

/// A schedule of slices of random weights, without transfers.
Schedule sliced(Random& random, std::uint64_t slices) {
  Schedule schedule({CollectiveKind::all_reduce, 2, {}}, "test", "test");
  for (std::uint64_t i = 0; i < slices; ++i) {
    const std::int64_t length = random.between(1, 5);
    schedule.slices.push_back({schedule.units, length, {}, {}});
    schedule.units += length;
  }
  return schedule;
}

Transfer random_run(Random& random, const Schedule& schedule) {
  Transfer transfer;
  transfer.first_slice = SliceId(random.below(schedule.slices.size()));
  transfer.slice_count =
      static_cast<std::uint32_t>(1 + random.below(schedule.slices.size() - transfer.first_slice.index()));
  return transfer;
}

TEST(Chunking, CountsTheChunksBehindThatAreAsLong) {
  Random random(5);
  for (int round = 0; round < 300; ++round) {
    const Schedule schedule = sliced(random, 1 + random.below(4));
    const Chunking chunking(*Layout::make(schedule, {random.between(0, 60) * 2}, 2), random.between(1, 9));
    const Pieces pieces = chunking.pieces(random_run(random, schedule));
    for (std::uint32_t i = 0; i < pieces.count; ++i) {
      std::uint32_t alike = 0;
      while (i + alike + 1 < pieces.count && chunking.bytes(pieces, i + alike + 1) == chunking.bytes(pieces, i)) {
        ++alike;
      }
      EXPECT_EQ(chunking.alike_behind(pieces, i), alike) << "round " << round << ", chunk " << i;
    }
  }
}

TEST(Chunking, ChunksTileEverySlice) {
  Random random(19);
  for (int round = 0; round < 500; ++round) {
    const Schedule schedule = sliced(random, 1 + random.below(5));
    const Layout layout = *Layout::make(schedule, {random.between(0, 200) * 4}, 4);
    const std::int64_t most = random.between(1, 30);
    const Chunking chunking(layout, most);
    const Transfer transfer = random_run(random, schedule);
    const Pieces pieces = chunking.pieces(transfer);
    EXPECT_LE(pieces.count, most);
    std::int64_t sum = 0;
    for (std::uint32_t c = 0; c < pieces.count; ++c) {
      std::int64_t bytes = 0;
      for (std::uint32_t i = 0; i < transfer.slice_count; ++i) {
        const SliceId slice(transfer.first_slice.index() + i);
        const ByteRange part = chunking.part(slice, c);
        EXPECT_EQ(part.begin, c == 0 ? layout.range(slice, 1).begin : chunking.part(slice, c - 1).end);
        if (c + 1 == pieces.count) {
          EXPECT_EQ(part.end, layout.range(slice, 1).end);
        }
        bytes += part.length();
      }
      EXPECT_EQ(bytes, chunking.bytes(pieces, c));
      EXPECT_TRUE(bytes > 0 || pieces.bytes == 0) << "no chunk is empty but that of an empty transfer";
      sum += bytes;
    }
    EXPECT_EQ(sum, pieces.bytes);
  }
}

TEST(Chunking, NeededChunkIsTheOneThatSharesBytes) {
  // Random pairs of runs of random layouts, compared with a look at every part of every chunk.
  Random random(3);
  for (int round = 0; round < 500; ++round) {
    const Schedule schedule = sliced(random, 1 + random.below(5));
    const Chunking chunking(*Layout::make(schedule, Bytes{random.between(0, 60) * 2}, 2), random.between(1, 20));
    const Transfer earlier = random_run(random, schedule);
    const Transfer later = random_run(random, schedule);
    const std::size_t begin = std::max(earlier.first_slice, later.first_slice).index();
    const std::size_t end =
        std::min(earlier.first_slice.index() + earlier.slice_count, later.first_slice.index() + later.slice_count);
    if (begin >= end) continue;
    const Pieces theirs = chunking.pieces(earlier);
    const Pieces mine = chunking.pieces(later);
    bool always = true;
    for (std::uint32_t i = 0; i < mine.count; ++i) {
      std::uint32_t expected = no_chunk;
      for (std::uint32_t k = 0; k < theirs.count; ++k) {
        for (std::size_t slice = begin; slice < end; ++slice) {
          const ByteRange a = chunking.part(SliceId(slice), i);
          const ByteRange b = chunking.part(SliceId(slice), k);
          if (std::max(a.begin, b.begin) < std::min(a.end, b.end)) expected = k;
        }
      }
      EXPECT_EQ(chunking.needed_chunk(earlier, later, i), expected);
      always &= expected == i;
    }
    if (mine.bytes > 0 && chunking.are_in_step(earlier, later)) {
      EXPECT_TRUE(always);
    }
  }
}

}  // namespace
}  // namespace espalier
