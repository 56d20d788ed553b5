#include "schedule/chunking.h"

#include <gtest/gtest.h>

#include "base/random.h"

namespace espalier {
namespace {

TEST(Chunking, CountsTheChunksBehindThatAreAsLong) {
  Schedule schedule({CollectiveKind::all_reduce, 2, {}}, "test", "test");
  schedule.slices.push_back({0, 1, {}, {}});
  schedule.units = 1;
  for (std::int64_t elements = 0; elements <= 23; ++elements) {
    const Chunking chunking(*Layout::make(schedule, {elements * 2}, 2), 7);
    Transfer transfer;
    transfer.first_slice = SliceId(0);
    const Pieces pieces = chunking.pieces(transfer);
    for (std::uint32_t i = 0; i < pieces.count; ++i) {
      std::uint32_t alike = 0;
      while (i + alike + 1 < pieces.count &&
             chunking.chunk(pieces, i + alike + 1).length() == chunking.chunk(pieces, i).length()) {
        ++alike;
      }
      EXPECT_EQ(chunking.alike_behind(pieces, i), alike) << elements << " elements, chunk " << i;
    }
  }
}

TEST(Chunking, NeededChunkIsTheLastThatSharesBytes) {
  // Random pairs of runs of random layouts, compared with a look at every chunk.
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    Schedule schedule({CollectiveKind::all_reduce, 2, {}}, "test", "test");
    for (std::uint64_t i = 1 + random.below(5); i > 0; --i) {
      const std::int64_t length = random.between(1, 5);
      schedule.slices.push_back({schedule.units, length, {}, {}});
      schedule.units += length;
    }
    const Bytes size{random.between(0, 60) * 2};
    const Chunking chunking(*Layout::make(schedule, size, 2), random.between(1, 20));
    const std::size_t slices = schedule.slices.size();
    const auto pick = [&] {
      Transfer transfer;
      transfer.first_slice = SliceId(random.below(slices));
      transfer.slice_count = static_cast<std::uint32_t>(1 + random.below(slices - transfer.first_slice.index()));
      return transfer;
    };
    const Transfer earlier = pick();
    const Transfer later = pick();
    const Pieces theirs = chunking.pieces(earlier);
    const Pieces mine = chunking.pieces(later);
    for (std::uint32_t i = 0; i < mine.count; ++i) {
      const ByteRange bytes = chunking.chunk(mine, i);
      std::uint32_t expected = no_chunk;
      for (std::uint32_t k = 0; k < theirs.count; ++k) {
        const ByteRange other = chunking.chunk(theirs, k);
        if (std::max(bytes.begin, other.begin) < std::min(bytes.end, other.end)) expected = k;
      }
      EXPECT_EQ(chunking.needed_chunk(earlier, later, bytes, i), expected);
    }
  }
}

}  // namespace
}  // namespace espalier
