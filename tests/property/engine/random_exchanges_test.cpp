// Whatever the counts, the order of the blocks, the type, the memory and the transport: in all_to_alls with counts per
// peer ranks receive what was sent to them, and nothing else changes.
#include <gtest/gtest.h>

#include "engine/program/direct_program.h"
#include "tests/support/exchange/counted_exchange.h"
#include "tests/support/local_ranks.h"

namespace espalier {
namespace {

using test::CountedExchange;
using test::Memory;

TEST(RandomExchanges, BringWhatWasSent) {
  for (const TransportChoice transport : {TransportChoice::shm, TransportChoice::tcp}) {
    for (std::uint32_t ranks = 1; ranks <= 7; ++ranks) {
      JobOptions options;
      options.transport = transport;
      options.sockets_per_peer = 1 + ranks % 3;
      options.checksum = ranks % 2 == 1;
      test::PlannedSource planned("flat");
      run_ranks(ranks, planned.source(), std::move(options), [&](Communicator& world) {
        for (std::uint64_t seed = 0; seed < 12; ++seed) {
          const std::int64_t most = seed % 4 == 0 ? 30'000 : seed % 4 == 1 ? 1 : 700;
          const auto exchange = CountedExchange::random(ranks, most, 100 * ranks + seed);
          const auto memory = static_cast<Memory>((seed + world.rank()) % 3);
          test::run_exchange(world, exchange, memory, (seed + world.rank()) % 4 == 0);
          if (::testing::Test::HasFailure()) return world.abort("a test failed");
        }
      });
    }
  }
}

/// Both ends of every pair cut the same block into the same ops on the same streams, and the pieces tile it.
TEST(RandomExchanges, HaveTwoEndsThatAgree) {
  Random random(3);
  for (int round = 0; round < 200; ++round) {
    const auto ranks = static_cast<std::uint32_t>(random.between(2, 6));
    const auto lanes = static_cast<std::uint32_t>(random.between(1, 3));
    const std::int64_t chunk = random.between(1, 500);
    const auto exchange = CountedExchange::random(ranks, 4000, static_cast<std::uint64_t>(round));
    std::vector<engine::RankProgram> programs;
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      const auto streams = [&](Rank from, Rank to) {
        std::vector<std::uint32_t> numbers;
        for (std::uint32_t lane = 0; lane < lanes; ++lane) numbers.push_back(lane + from.value() * 10 + to.value());
        return numbers;
      };
      engine::DirectBlocks blocks;
      for (std::uint32_t peer = 0; peer < ranks; ++peer) {
        blocks.sent.push_back({peer * 100'000, exchange.count(rank, peer)});
        blocks.received.push_back({peer * 200'000, exchange.count(peer, rank)});
      }
      programs.push_back(engine::make_direct_program(ranks, Rank(rank), streams));
      engine::set_blocks(programs.back(), Rank(rank), blocks, chunk, 1);
    }
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      for (const engine::Stream& out : programs[rank].streams) {
        if (!out.is_outgoing) continue;
        const engine::RankProgram& theirs = programs[out.peer.index()];
        const auto in = std::ranges::find_if(theirs.streams, [&](const engine::Stream& stream) {
          return !stream.is_outgoing && stream.peer == Rank(rank) && stream.number == out.number;
        });
        ASSERT_NE(in, theirs.streams.end());
        ASSERT_EQ(in->op_count, out.op_count);
        for (std::uint32_t i = 0; i < out.op_count; ++i) {
          const engine::Op& sent = programs[rank].ops[out.first_op + i];
          const engine::Op& received = theirs.ops[in->first_op + i];
          ASSERT_EQ(sent.transfer, received.transfer);
          ASSERT_EQ(sent.chunk, received.chunk);
          ASSERT_EQ(sent.bytes, received.bytes);
          if (sent.bytes == 0) continue;
          const engine::Piece& from = programs[rank].pieces[sent.first_piece];
          const engine::Piece& into = theirs.pieces[received.first_piece];
          EXPECT_EQ(from.target.offset, into.source.offset);  // Within the block, at either end.
          EXPECT_EQ(from.source.offset, out.peer.value() * 100'000 + from.target.offset);
          EXPECT_EQ(into.target.offset, rank * 200'000 + into.source.offset);
        }
      }
      for (std::uint32_t peer = 0; peer < ranks; ++peer) {
        std::int64_t moved = 0;
        for (const engine::Stream& stream : programs[rank].streams) {
          if (!stream.is_outgoing || stream.peer != Rank(peer)) continue;
          for (std::uint32_t i = 0; i < stream.op_count; ++i) moved += programs[rank].ops[stream.first_op + i].bytes;
        }
        EXPECT_EQ(moved, peer == rank ? 0 : exchange.count(rank, peer));
      }
    }
  }
}

}  // namespace
}  // namespace espalier
