#pragma once

// Tested by: tests/property/schedule/formats_test.cpp

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedule/collective.h"
#include "schedule/formats/msccl_chunks.h"

namespace espalier {

/// Chunks that lie side by side in a buffer of a rank.
struct MscclppCells {
  std::size_t rank = 0;
  MscclChunk first;
  std::int64_t count = 0;
};

/// An operation of a thread block, as far as it moves data or waits.
struct MscclppOp {
  enum class Kind : std::uint8_t { nothing, signal, wait, acquire, release, barrier, move, reduce };
  Kind kind = Kind::nothing;
  bool signals = false;                  ///< A move that signals its channels when it is done.
  bool awaits_sources = false;           ///< It reads packets: what comes to scratch is waited for.
  std::vector<MscclppCells> sources;     ///< reduce: what is added. move: one per target, or one for all.
  std::vector<MscclppCells> targets;     ///< reduce: all get the sum.
  std::vector<std::size_t> channels;     ///< signal, wait: places in the rank's channels.
  std::vector<std::int64_t> semaphores;  ///< acquire, release.
  std::int64_t barrier = 0, barrier_blocks = 0;
  std::string place;  ///< In the file: "gpus[0].threadblocks[1].ops[2]".
};

/// A channel as one of its two ranks has it. The k-th channel of a kind from a to b goes with the k-th from b to a.
struct MscclppChannel {
  bool is_port = false;
  std::size_t peer = 0;
  std::size_t number = 0;  ///< Among those of its kind to that peer.
};

struct MscclppRank {
  std::vector<MscclppChannel> channels;
  std::vector<std::int64_t> semaphores;  ///< Their first values.
  std::int64_t scratch = 0;              ///< Chunks.
  std::vector<std::vector<MscclppOp>> blocks;
};

/// What a plan of MSCCL++ says, checked as far as one value shows. Chunks are cut finer than in the file where thread
/// blocks share them.
struct MscclppProgram {
  std::string name;
  Collective collective;
  bool in_place = false;
  std::int64_t chunks = 0;  ///< Of a rank's larger buffer.
  std::vector<MscclppRank> ranks;
};

/// Errors: invalid_input with the place in the file; unsupported for operations and collectives that a schedule has no
/// word for, naming them; too_large.
Result<MscclppProgram> read_mscclpp_program(std::string_view text, const std::string& file);

}  // namespace espalier
