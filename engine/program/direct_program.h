#pragma once

// Tested by: tests/property/engine/random_exchanges_test.cpp

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "engine/program/rank_program.h"

namespace espalier::engine {

/// The numbers of the streams that direct messages from one rank to another take, in the order in which their chunks
/// are dealt to them. Both ends have to agree.
using PairStreams = std::function<std::vector<std::uint32_t>(Rank from, Rank to)>;

/// A program with counts for an all_to_all by direct messages, as yet without any: all streams that it may need, those
/// to the next ranks first, and those from the ranks before first, so that at any time each rank sends to another one.
RankProgram make_direct_program(std::uint32_t ranks, Rank self, const PairStreams& streams);

/// The blocks of one call, by peer; they lie in the buffers as they will be called with.
struct DirectBlocks {
  std::vector<Block> sent;
  std::vector<Block> received;
};

/// Makes it the program of one call. Both ends cut a block into the same chunks, of about `chunk` bytes; the first
/// stream of a pair has at least one op, maybe of no bytes, so that its ends compare their counts. The program's rank
/// moves its own block. Allocates nothing where a call before was as large. Requires: a program of
/// `make_direct_program`, not under way; the rank's own blocks are as large as each other.
void set_blocks(RankProgram& program, Rank self, const DirectBlocks& blocks, std::int64_t chunk,
                std::int64_t element_size);

}  // namespace espalier::engine
